/* gristmill.h: games of records, written while they are played.
 *
 *     struct row { int8_t board[42]; float value; } __attribute__((packed));
 *     const char *schema = "{\"layout\": \"[('board', '|i1', (42,)), ('value', '<f4')]\"}";
 *
 *     gristmill_writer *games = gristmill_open("games", schema, sizeof(struct row), 0);
 *     if (games == NULL) { fprintf(stderr, "%s\n", gristmill_error()); exit(1); }
 *     while (playing) gristmill_append(games, &row, 1);
 *     gristmill_end_game(games, NULL);
 *     gristmill_close(games);
 *
 * Then `gristmill pack games my-pack`. Any number of processes may write into one folder at once: each has files of its own.
 * A game is in its file when gristmill_end_game returns, all of it or nothing. Readers see the file by gristmill_flush, by
 * gristmill_close, or when it has its size. Where a process is killed, the next writer or pack job of the folder takes up its
 * file with all games that it had ended. A forked process begins a file of its own; rows of a game that was not ended when it
 * forked are in both.
 *
 * Calls with one writer from several threads wait for each other. A writer for each thread is faster.
 */
#ifndef GRISTMILL_H
#define GRISTMILL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What calls return. gristmill_error has the words for all but GRISTMILL_OK. */
enum {
    GRISTMILL_OK = 0,
    /* A null pointer, a text that is no UTF-8, a size or schema that cannot be, or a call out of turn. */
    GRISTMILL_ARGUMENT = 1,
    /* Rows or facts that do not fit the schema. The game stays as it was. */
    GRISTMILL_FORMAT = 2,
    /* A file or folder that cannot be written. */
    GRISTMILL_SYSTEM = 3,
    /* A bug of this library. The writer refuses all further calls but gristmill_close. */
    GRISTMILL_BUG = 4
};

typedef struct gristmill_writer gristmill_writer;

/* Opens a folder, which is made where it does not exist, and puts files of killed writers in place.
 *
 * folder: a path.
 * schema: a JSON object: `layout`, NumPy's `descr` of a row as text; and if wanted `identity`, `columns` and `facts`, as
 *     docs/format/records.md says. Rows have no padding: use a packed struct.
 * row_bytes: sizeof a row. Another size than that of `layout` is refused.
 * file_bytes: bytes of a file before the next one is begun; 0 for 64 MiB.
 *
 * Returns NULL where it fails. */
gristmill_writer *gristmill_open(const char *folder, const char *schema, size_t row_bytes, uint64_t file_bytes);

/* Games of killed writers that gristmill_open put in place. 0 where `writer` is NULL. */
uint64_t gristmill_recovered(gristmill_writer *writer);

/* Appends `count` rows, one after another, to the game that is being played. They are in memory until the game ends; a game has
 * at most 1 GiB. */
int gristmill_append(gristmill_writer *writer, const void *rows, size_t count);

/* Writes the game that is being played. `facts` is a JSON list with a value for each of the facts of the schema, null where it
 * is unknown; or NULL, where all are. Where this fails, the rows are kept: call it again, or gristmill_drop_game. */
int gristmill_end_game(gristmill_writer *writer, const char *facts);

/* Forgets the rows of the game that is being played. */
int gristmill_drop_game(gristmill_writer *writer);

/* Shows the games that were ended to readers, durably. The next game begins another file. */
int gristmill_flush(gristmill_writer *writer);

/* Flushes, and frees the writer whatever this returns: use it no more. GRISTMILL_ARGUMENT says that a game was not ended; it is
 * in no file. Does nothing where `writer` is NULL. No other call with this writer may be running. */
int gristmill_close(gristmill_writer *writer);

/* Why the last call of this thread that failed did so, in UTF-8. It is valid until the next one that fails; "" before the
 * first. */
const char *gristmill_error(void);

#ifdef __cplusplus
}
#endif

#endif
