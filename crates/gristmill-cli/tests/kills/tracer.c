/* Runs a command, and kills it at one of the calls by which it changes the disk below a folder.
 *
 *   tracer FOLDER N REPORT COMMAND...
 *
 * Call number N, from 1, is not carried out: the whole process dies before it. With N = 0 the command runs to its end.
 * REPORT gets a line for each call: its name, and the file that it is about without its folder. Linux only.
 *
 * A filter of the kernel stops the command at these calls alone: to stop it at every call would take as long as the command itself. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <linux/filter.h>
#include <linux/ptrace.h>
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* What a call names its file by. */
enum { BY_NUMBER, BY_PATH, BY_PATH_AT, BY_OPENING, BY_OPENING_AT };

static const struct { long number; const char *name; int by; } calls[] = {
    {SYS_write, "write", BY_NUMBER},
    {SYS_writev, "writev", BY_NUMBER},
    {SYS_pwrite64, "pwrite", BY_NUMBER},
    {SYS_pwritev, "pwritev", BY_NUMBER},
    {SYS_ftruncate, "ftruncate", BY_NUMBER},
    {SYS_fallocate, "fallocate", BY_NUMBER},
    {SYS_fsync, "fsync", BY_NUMBER},
    {SYS_fdatasync, "fdatasync", BY_NUMBER},
    {SYS_fchmod, "fchmod", BY_NUMBER},
    {SYS_unlinkat, "unlinkat", BY_PATH_AT},
    {SYS_mkdirat, "mkdirat", BY_PATH_AT},
    {SYS_renameat, "renameat", BY_PATH_AT},
    {SYS_renameat2, "renameat2", BY_PATH_AT},
    {SYS_linkat, "linkat", BY_PATH_AT},
    {SYS_openat, "create", BY_OPENING_AT},
#ifdef SYS_open
    {SYS_open, "create", BY_OPENING},
    {SYS_unlink, "unlink", BY_PATH},
    {SYS_rmdir, "rmdir", BY_PATH},
    {SYS_mkdir, "mkdir", BY_PATH},
    {SYS_rename, "rename", BY_PATH},
    {SYS_link, "link", BY_PATH},
#endif
    /* The second file of these is the one that is written. */
    {SYS_copy_file_range, "copy_file_range", -1},
    {SYS_sendfile, "sendfile", BY_NUMBER},
};

#define COUNT (sizeof calls / sizeof *calls)

/* Lets the kernel stop this process and those of its threads at each of these calls, and carry out all others. */
static int filter(void) {
    struct sock_filter program[5 * COUNT + 2];
    unsigned short n = 0;
    struct sock_filter stop = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE), pass = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < COUNT; i++) {
        int opens = calls[i].by == BY_OPENING || calls[i].by == BY_OPENING_AT;
        program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, opens ? 4 : 1);
        if (opens) {
            int flags = calls[i].by == BY_OPENING ? 1 : 2;
            program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[flags]));
            program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_CREAT | O_TRUNC, 0, 1);
        }
        program[n++] = stop;
        if (opens) program[n++] = pass;
    }
    program[n++] = pass;
    struct sock_fprog all = {n, program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all, 0, 0);
}

static void text_of(pid_t thread, uint64_t at, char *text, size_t size) {
    struct iovec to = {text, size - 1}, from = {(void *)(uintptr_t)at, size - 1};
    ssize_t n = process_vm_readv(thread, &to, 1, &from, 1, 0);
    if (n < 0) {
        /* The text ends near the end of what can be read. */
        size_t rest = 4096 - at % 4096;
        to.iov_len = from.iov_len = rest < size - 1 ? rest : size - 1;
        n = process_vm_readv(thread, &to, 1, &from, 1, 0);
    }
    text[n < 0 ? 0 : n] = 0;
}

static void file_of(pid_t thread, int number, char *text, size_t size) {
    char link[64];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", thread, number);
    ssize_t n = readlink(link, text, size - 1);
    text[n < 0 ? 0 : n] = 0;
}

/* Whether a call changes something below the folder; its name and file then. */
static int counts(pid_t thread, struct ptrace_syscall_info *info, const char *folder, const char **name, char *path) {
    char above[4096], below[4096];
    uint64_t *args = (uint64_t *)info->seccomp.args;
    for (size_t i = 0; i < COUNT; i++) {
        if (calls[i].number != (long)info->seccomp.nr) continue;
        *name = calls[i].name;
        int by = calls[i].by;
        if (by == BY_NUMBER || by == -1) {
            file_of(thread, (int)args[by == -1 ? 2 : 0], path, 4096);
        } else {
            int at = by == BY_PATH_AT || by == BY_OPENING_AT;
            text_of(thread, args[at], below, sizeof below);
            above[0] = 0;
            if (at && below[0] != '/') file_of(thread, (int)args[0], above, sizeof above);
            snprintf(path, 4096, "%.2000s%s%.2000s", above, above[0] ? "/" : "", below);
        }
        return strncmp(path, folder, strlen(folder)) == 0;
    }
    return 0;
}

int main(int count, char **words) {
    if (count < 5) return 2;
    const char *folder = words[1];
    long wanted = atol(words[2]), seen = 0;
    FILE *report = fopen(words[3], "w");
    pid_t child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(125);
        raise(SIGSTOP);
        if (filter() != 0) _exit(125);
        execv(words[4], words + 4);
        _exit(127);
    }
    int status;
    if (!report || waitpid(child, &status, 0) < 0 || !WIFSTOPPED(status)) return 125;
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, options) != 0) return 125;
    ptrace(PTRACE_CONT, child, 0, 0);
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) {
            if (errno == EINTR) continue;
            return 124;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread != child) continue;
            fclose(report);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        int signal = WSTOPSIG(status);
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8)) {
            struct ptrace_syscall_info info;
            const char *name;
            char path[4096];
            if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) > 0 && info.op == PTRACE_SYSCALL_INFO_SECCOMP &&
                counts(thread, &info, folder, &name, path)) {
                fprintf(report, "%s %s\n", name, path + strlen(folder));
                if (++seen == wanted) {
                    fclose(report);
                    kill(child, SIGKILL);
                    /* All threads are ours to wait for, or the process stays. */
                    while (waitpid(-1, &status, __WALL) > 0) {}
                    return 137;
                }
            }
            signal = 0;
        } else if (signal == SIGTRAP || (signal == SIGSTOP && thread != child)) {
            /* A new thread, or the new program. */
            signal = 0;
        }
        ptrace(PTRACE_CONT, thread, 0, (void *)(long)signal);
    }
}
