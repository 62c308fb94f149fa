/* player FOLDER FIRST COUNT: writes games FIRST to FIRST + COUNT - 1, says `written` after each, then waits for a line and ends.
   player FOLDER refused: calls that have to fail, one line for each: what it returned, and why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gristmill.h"

struct row {
    int8_t board[4];
    float value;
    uint32_t number;
} __attribute__((packed));

#define SCHEMA \
    "{\"layout\": \"[('board', '|i1', (4,)), ('value', '<f4'), ('number', '<u4')]\", \"identity\": [\"board\", \"number\"], " \
    "\"columns\": [[\"result\", \"last\", \"value\"]], \"facts\": [[\"elo\", \"int\"], [\"who\", \"text\"]]}"

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, gristmill_error());
    return 1;
}

static struct row row_of(int game, int ply) {
    struct row row = {{(int8_t)game, (int8_t)ply, -1, 1}, (float)ply / 4, (uint32_t)(100 * game + ply)};
    return row;
}

static int play(const char *folder, int first, int count) {
    gristmill_writer *games = gristmill_open(folder, SCHEMA, sizeof(struct row), 600);
    if (games == NULL) return failed("open");
    for (int game = first; game < first + count; game++) {
        struct row row = row_of(game, 0), more[2] = {row_of(game, 1), row_of(game, 2)};
        if (gristmill_append(games, &row, 1)) return failed("append");
        if (game % 2 && gristmill_append(games, more, 2)) return failed("append");
        char facts[64];
        snprintf(facts, sizeof facts, "[%d, null]", 1000 + game);
        if (gristmill_end_game(games, facts)) return failed("end_game");
        printf("written\n");
        fflush(stdout);
    }
    struct row half = row_of(first, 9);
    if (gristmill_append(games, &half, 1)) return failed("append");
    getchar();
    if (gristmill_drop_game(games)) return failed("drop_game");
    return gristmill_close(games) ? failed("close") : 0;
}

static void said(int code) { printf("%d %s\n", code, gristmill_error()); }

static int refused(const char *folder) {
    struct row row = row_of(7, 0);
    char path[4096];
    snprintf(path, sizeof path, "%s/file", folder);
    printf("0 %s\n", gristmill_error());
    said(gristmill_open(NULL, SCHEMA, sizeof row, 0) != NULL);
    said(gristmill_open(folder, "{", sizeof row, 0) != NULL);
    said(gristmill_open(folder, "\xff", sizeof row, 0) != NULL);
    said(gristmill_open(folder, SCHEMA, sizeof row + 4, 0) != NULL);
    said(gristmill_open(path, SCHEMA, sizeof row, 0) != NULL);
    said(gristmill_append(NULL, &row, 1));
    said(gristmill_flush(NULL));
    gristmill_writer *games = gristmill_open(folder, SCHEMA, sizeof row, 0);
    if (games == NULL) return failed("open");
    said(gristmill_append(games, NULL, 1));
    said(gristmill_append(games, &row, SIZE_MAX));
    said(gristmill_append(games, &row, SIZE_MAX / sizeof row));
    said(gristmill_end_game(games, NULL));
    if (gristmill_append(games, NULL, 0) || gristmill_append(games, &row, 1)) return failed("append");
    said(gristmill_end_game(games, "[1]"));
    said(gristmill_end_game(games, "[\"\xff\", null]"));
    said(gristmill_end_game(games, "[\"strong\", null]"));
    if (gristmill_end_game(games, "[1, \"me\"]") || gristmill_append(games, &row, 1)) return failed("end_game");
    said(gristmill_close(games));
    return gristmill_close(NULL);
}

int main(int count, char **words) {
    if (count == 3) return refused(words[1]);
    return count == 4 ? play(words[1], atoi(words[2]), atoi(words[3])) : 2;
}
