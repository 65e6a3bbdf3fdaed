// The calls for processes of sdk/c/gpu.h, made of those of this machine, so that examples which use
// them can show what is right: programs are executables in the folder $GPU_PROGRAMS. Priorities
// mean nothing here, and who may do what to whom is only looked at where a test asks.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../sdk/c/gpu.h"

enum { max_fds = 64, high_fd = 512, max_spawn_bytes = 64 << 10, not_executable = 126 };

// Guests have no signals that come by themselves: a write that nobody reads is an error and no
// more.
__attribute__((constructor)) static void ignore_sigpipe(void) { signal(SIGPIPE, SIG_IGN); }

// The strings in `bytes` as a list that ends with NULL, and with `last` before that if it is one.
static char** list_of(const char* bytes, size_t size, const char* last) {
    size_t count = 0;
    for (size_t i = 0; i < size; i++) count += bytes[i] == 0;
    char** const list = calloc(count + 2, sizeof(char*));
    for (size_t i = 0; i < count; i++, bytes += strlen(bytes) + 1) list[i] = strdup(bytes);
    if (last) list[count] = strdup(last);
    return list;
}

static void free_list(char** list) {
    for (size_t i = 0; list[i]; i++) free(list[i]);
    free(list);
}

// In the child: first all aside, so that none is overwritten before it was taken.
static void take_fds(const gpu_fd* fds, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) dup2((int)fds[i].caller, high_fd + (int)i);
    for (int fd = 0; fd < high_fd; fd++) close(fd);
    for (uint32_t i = 0; i < count; i++) dup2(high_fd + (int)i, (int)fds[i].child);
    for (uint32_t i = 0; i < count; i++) close(high_fd + (int)i);
}

int gpu_spawn(const char* name, size_t name_size, const char* args, size_t args_size,
              const char* env, size_t env_size, const gpu_fd* fds, uint32_t fd_count,
              uint32_t* pid) {
    const char* const folder = getenv("GPU_PROGRAMS");
    char path[4096], programs[4096];
    snprintf(path, sizeof path, "%s/%.*s", folder, (int)name_size, name);
    if (name_size == 0 || access(path, X_OK)) return ENOENT;
    if (args_size + env_size > max_spawn_bytes) return E2BIG;
    snprintf(programs, sizeof programs, "GPU_PROGRAMS=%s", folder);
    if (fd_count != GPU_ALL_FDS) {
        if (fd_count > max_fds) return E2BIG;
        for (uint32_t i = 0; i < fd_count; i++) {
            if (fcntl((int)fds[i].caller, F_GETFD) < 0) return EBADF;
        }
    }
    char** const argv = list_of(args, args_size, NULL);
    char** const envp = env ? list_of(env, env_size, programs) : environ;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        if (fd_count != GPU_ALL_FDS) take_fds(fds, fd_count);
        execve(path, argv, envp);
        _exit(not_executable);
    }
    free_list(argv);
    if (env) free_list(envp);
    if (child < 0) return errno;
    *pid = (uint32_t)child;
    return 0;
}

int gpu_wait(uint32_t pid, uint32_t flags, uint32_t* ended_pid, gpu_status* status) {
    int how;
    const pid_t child = waitpid((pid_t)pid, &how, flags & GPU_NO_HANG ? WNOHANG : 0);
    if (child < 0) return errno;
    if (child == 0) return EAGAIN;
    *ended_pid = (uint32_t)child;
    if (WIFEXITED(how)) {
        *status = (gpu_status){GPU_EXITED, (uint32_t)WEXITSTATUS(how)};
        return 0;
    }
    switch (WTERMSIG(how)) {
        case SIGILL:
        case SIGTRAP:
        case SIGABRT:
        case SIGFPE:
        case SIGSEGV: *status = (gpu_status){GPU_TRAPPED, 0}; break;
        default: *status = (gpu_status){GPU_KILLED, (uint32_t)WTERMSIG(how)};
    }
    return 0;
}

int gpu_kill(uint32_t pid, uint32_t signal) {
    enum { most = 30 };
    if (signal > most) return EINVAL;
    if (pid == gpu_getppid()) return EPERM;
    // From 16 on the numbers are others; those that are used do nothing.
    if (signal >= GPU_SIGCHLD) signal = 0;
    return kill((pid_t)pid, (int)signal) ? errno : 0;
}

int gpu_set_priority(uint32_t pid, uint32_t priority) {
    return priority > GPU_LOW ? EINVAL : gpu_kill(pid, GPU_SIGNONE);
}

int gpu_pipe(int* read_fd, int* write_fd) {
    int fds[2];
    if (pipe(fds)) return errno;
    *read_fd = fds[0];
    *write_fd = fds[1];
    return 0;
}

uint32_t gpu_getpid(void) { return (uint32_t)getpid(); }
uint32_t gpu_getppid(void) { return (uint32_t)getppid(); }
