/* Preloaded into a program: opening and reading files whose names hold "training." or ".tar" fails while the file named
   by REFUSE is there. That file holds an error number, and the letter of what fails: o for open, r for read.

   MOVE is the letter of a call, o for open, l for link, which time it is, and two paths: in the moment in which the first
   of them is opened or linked for that time, it moves to the second.

   WRITES is the number of the first write to a `metadata.db` itself, from 1, that fails, as all after it do. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static int refused(const char *path, char what) {
    if (strstr(path, "training.") == NULL && strstr(path, ".tar") == NULL) return 0;
    const char *control = getenv("REFUSE");
    long file = control == NULL ? -1 : syscall(SYS_openat, AT_FDCWD, control, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    char text[16] = {0};
    long length = syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    int number = 0;
    char fails = 0;
    if (length <= 0 || sscanf(text, "%d %c", &number, &fails) != 2 || fails != what) return 0;
    errno = number;
    return 1;
}

static void moved(const char *path, char what) {
    static int times;
    char from[2048], to[2048], call;
    int time;
    const char *move = getenv("MOVE");
    if (move == NULL || sscanf(move, "%c %d %2047s %2047s", &call, &time, from, to) != 4) return;
    if (call != what || strcmp(path, from) != 0) return;
    if (__atomic_add_fetch(&times, 1, __ATOMIC_SEQ_CST) == time) syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

static int refused_descriptor(int fd) {
    if (fd < 3) return 0;
    int kept = errno;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    errno = kept;
    if (length <= 0) return 0;
    path[length] = 0;
    return refused(path, 'r');
}

static int open_at(int at, const char *path, int flags, mode_t mode) {
    moved(path, 'o');
    return refused(path, 'o') ? -1 : (int)syscall(SYS_openat, at, path, flags, mode);
}

#define MODE(flags, mode)                                     \
    mode_t mode = 0;                                          \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                    \
        va_list rest;                                         \
        va_start(rest, flags);                                \
        mode = (mode_t)va_arg(rest, unsigned int);            \
        va_end(rest);                                         \
    }

int open(const char *path, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags, mode) return open_at(AT_FDCWD, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, mode) return open_at(at, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, mode) return open_at(at, path, flags, mode); }

int linkat(int from, const char *path, int to, const char *name, int flags) {
    moved(path, 'l');
    return (int)syscall(SYS_linkat, from, path, to, name, flags);
}
int link(const char *path, const char *name) { return linkat(AT_FDCWD, path, AT_FDCWD, name, 0); }

static int unwritable(int fd) {
    static int writes;
    const char *first = getenv("WRITES");
    char link[64], path[4096];
    if (first == NULL || fd < 3) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    const char *name = strstr(path, "/metadata.");
    if (name == NULL || strchr(name, '-') != NULL) return 0;
    if (__atomic_add_fetch(&writes, 1, __ATOMIC_SEQ_CST) < atoi(first)) return 0;
    errno = EIO;
    return 1;
}

ssize_t pwrite(int fd, const void *from, size_t length, off_t at) {
    return unwritable(fd) ? -1 : syscall(SYS_pwrite64, fd, from, length, at);
}
ssize_t pwrite64(int fd, const void *from, size_t length, off_t at) {
    return unwritable(fd) ? -1 : syscall(SYS_pwrite64, fd, from, length, at);
}

ssize_t read(int fd, void *into, size_t length) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_read, fd, into, length);
}
ssize_t pread(int fd, void *into, size_t length, off_t at) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_pread64, fd, into, length, at);
}
ssize_t pread64(int fd, void *into, size_t length, off_t at) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_pread64, fd, into, length, at);
}
