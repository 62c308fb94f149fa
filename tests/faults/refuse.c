/* Preloaded into a program: opening and reading files whose names hold "training." or ".tar" fails while the file named
   by REFUSE is there. That file holds an error number, and the letter of what fails: o for open, r for read. */
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

ssize_t read(int fd, void *into, size_t length) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_read, fd, into, length);
}
ssize_t pread(int fd, void *into, size_t length, off_t at) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_pread64, fd, into, length, at);
}
ssize_t pread64(int fd, void *into, size_t length, off_t at) {
    return refused_descriptor(fd) ? -1 : syscall(SYS_pread64, fd, into, length, at);
}
