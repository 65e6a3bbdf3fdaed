// What programs that gpu-run runs may ask of it beyond WASI: the functions of the import module
// `gpu`, for C11 and C++, and thin helpers over them. Needs nothing to link with.
//
// Functions that can fail return 0, or an error number as <errno.h> has it. A process is named by
// its number, a pid; 0 is none. The functions for processes work in resident mode
// (docs/resident.md), which gpu-run takes by itself for a program that imports them; where many
// run that know nothing of each other (--instances, map), they fail with ENOSYS.
//
// Compiled for anything but WebAssembly, the functions are declared and not defined: whoever tests
// a guest on another machine can supply them.
#ifndef GPU_H
#define GPU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__
#define GPU_IMPORT(name) __attribute__((__import_module__("gpu"), __import_name__(#name)))
#else
#define GPU_IMPORT(name)
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- processes ---------------------------------------------------------------------

// A descriptor that a child is to have, and which of the caller's it is. Both then are the same
// open file, with one position.
typedef struct gpu_fd {
    uint32_t child;
    uint32_t caller;
} gpu_fd;

// The child has all descriptors of the caller, under the same numbers.
#define GPU_ALL_FDS UINT32_MAX

typedef enum gpu_ending {
    GPU_EXITED = 0,       // code: the exit code
    GPU_TRAPPED = 1,      // code: the number of the trap
    GPU_KILLED = 2,       // code: the signal
    GPU_OUT_OF_FUEL = 3,  // code: 0
} gpu_ending;

// How a process ended.
typedef struct gpu_status {
    uint32_t ending;  // a gpu_ending
    uint32_t code;
} gpu_status;

// WASI's numbers. From GPU_SIGCHLD on those of <signal.h> are others.
typedef enum gpu_signal {
    GPU_SIGNONE = 0,  // nothing is sent, but errors are told
    GPU_SIGHUP = 1,
    GPU_SIGINT = 2,
    GPU_SIGQUIT = 3,
    GPU_SIGILL = 4,
    GPU_SIGTRAP = 5,
    GPU_SIGABRT = 6,
    GPU_SIGBUS = 7,
    GPU_SIGFPE = 8,
    GPU_SIGKILL = 9,
    GPU_SIGUSR1 = 10,
    GPU_SIGSEGV = 11,
    GPU_SIGUSR2 = 12,
    GPU_SIGPIPE = 13,
    GPU_SIGALRM = 14,
    GPU_SIGTERM = 15,
    GPU_SIGCHLD = 16,
    GPU_SIGCONT = 17,
    GPU_SIGURG = 22,
    GPU_SIGWINCH = 27,
} gpu_signal;

typedef enum gpu_priority { GPU_HIGH = 0, GPU_NORMAL = 1, GPU_LOW = 2 } gpu_priority;

// Starts a process of the program that the machine knows by `name`.
//   args: its arguments, each ended by a NUL, the program's name first; args_size bytes in all.
//   env: its environment, likewise, as NAME=VALUE. NULL and 0: that which the caller began with.
//   fds: its descriptors, or fd_count GPU_ALL_FDS. Preopened directories are inherited in any case.
// It shares the caller's files. Errors: ENOENT, no program of that name; EBADF, one of `fds` is not
// open; E2BIG, too many arguments; EAGAIN, too many processes; ENOMEM. Then nothing has happened.
GPU_IMPORT(spawn)
int gpu_spawn(const char* name, size_t name_size, const char* args, size_t args_size,
              const char* env, size_t env_size, const gpu_fd* fds, uint32_t fd_count,
              uint32_t* pid);

// Waits until a child has ended, and forgets it: each is waited for once.
//   pid: of a child, or GPU_ANY_CHILD.
//   flags: 0, or GPU_NO_HANG: EAGAIN if it has not ended yet.
// Error: ECHILD, there is no such child.
#define GPU_ANY_CHILD UINT32_MAX
#define GPU_NO_HANG 1u
GPU_IMPORT(wait)
int gpu_wait(uint32_t pid, uint32_t flags, uint32_t* ended_pid, gpu_status* status);

// Ends the caller itself or a descendant of it. GPU_SIGCHLD, GPU_SIGCONT, GPU_SIGURG and
// GPU_SIGWINCH do nothing. Errors: ESRCH, no such process; EPERM, one that is not the caller's;
// EINVAL.
GPU_IMPORT(kill)
int gpu_kill(uint32_t pid, uint32_t signal);

// Makes a pipe that holds 64 KiB. To write what nobody can read any more is EPIPE; to read, when it
// is empty and nobody can write any more, gives 0 bytes. A write of up to 4 KiB is not mixed with
// others.
GPU_IMPORT(pipe)
int gpu_pipe(int* read_fd, int* write_fd);

GPU_IMPORT(getpid) uint32_t gpu_getpid(void);

// 0: none, for the host started it or its parent has ended.
GPU_IMPORT(getppid) uint32_t gpu_getppid(void);

// Of the caller itself or a descendant; errors as for gpu_kill.
GPU_IMPORT(set_priority)
int gpu_set_priority(uint32_t pid, uint32_t priority);

// ---- one of many -------------------------------------------------------------------

// Of `gpu-run --instances N`: this process's number, from 0, and how many there are.
GPU_IMPORT(instance_id) uint32_t gpu_instance_id(void);
GPU_IMPORT(instance_count) uint32_t gpu_instance_count(void);

// The hardware thread that it runs on at the moment; 0 on the CPU.
GPU_IMPORT(lane_id) uint32_t gpu_lane_id(void);

// Monotonic, in ns.
GPU_IMPORT(time) uint64_t gpu_time(void);

// ---- blocks of the device's heap ---------------------------------------------------

// Memory outside of the module's own, zeroed. Blocks are numbers from 1, the process's own, and go
// with it. 0: no memory.
GPU_IMPORT(alloc) uint32_t gpu_alloc(uint32_t size);

// The same number; block 0 is gpu_alloc, size 0 is gpu_free. 0: no memory, and nothing has changed.
GPU_IMPORT(realloc) uint32_t gpu_realloc(uint32_t block, uint32_t size);

GPU_IMPORT(free) void gpu_free(uint32_t block);

// Copies between a block and memory. Bytes copied: all of them, or 0.
GPU_IMPORT(read) uint32_t gpu_read(uint32_t block, uint32_t offset, void* to, uint32_t size);
GPU_IMPORT(write)
uint32_t gpu_write(uint32_t block, uint32_t offset, const void* from, uint32_t size);

// ---- debugging ---------------------------------------------------------------------

// A line for the host, with the process's number.
GPU_IMPORT(debug_i32) void gpu_debug_i32(int32_t value);
GPU_IMPORT(debug_i64) void gpu_debug_i64(int64_t value);
GPU_IMPORT(debug_f32) void gpu_debug_f32(float value);
GPU_IMPORT(debug_f64) void gpu_debug_f64(double value);
GPU_IMPORT(debug_bool) void gpu_debug_bool(int32_t value);

// The first 104 bytes are kept.
GPU_IMPORT(debug_str) void gpu_debug_str(const char* text, size_t size);

// ---- helpers -----------------------------------------------------------------------

// What a shell would show as exit code: 134 for a trap, 128 + signal.
static inline int gpu_shell_code(gpu_status status) {
    switch (status.ending) {
        case GPU_EXITED: return (int)status.code;
        case GPU_KILLED: return 128 + (int)status.code;
        default: return 134;
    }
}

static inline int gpu_succeeded(gpu_status status) {
    return status.ending == GPU_EXITED && status.code == 0;
}

// Waits for one child.
static inline int gpu_waitpid(uint32_t pid, gpu_status* status) {
    uint32_t ended_pid;
    return gpu_wait(pid, 0, &ended_pid, status);
}

#if !defined(__STDC_HOSTED__) || __STDC_HOSTED__
#ifdef __cplusplus
}
#endif
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif

// The strings of a list that ends with NULL, one behind the other, each ended by a NUL. NULL: no
// memory. free() takes it.
static inline char* gpu_joined(const char* const* list, size_t* size) {
    *size = 0;
    for (size_t i = 0; list[i]; i++) *size += strlen(list[i]) + 1;
    char* const bytes = (char*)malloc(*size ? *size : 1);
    char* end = bytes;
    for (size_t i = 0; bytes && list[i]; i++) {
        const size_t length = strlen(list[i]) + 1;
        memcpy(end, list[i], length);
        end += length;
    }
    return bytes;
}

// gpu_spawn with lists that end with NULL. env NULL: as there.
static inline int gpu_spawnve(const char* name, const char* const* argv, const char* const* env,
                              const gpu_fd* fds, uint32_t fd_count, uint32_t* pid) {
    size_t args_size, env_size = 0;
    char* const args = gpu_joined(argv, &args_size);
    char* const environment = env ? gpu_joined(env, &env_size) : NULL;
    const int error = !args || (env && !environment)
                          ? ENOMEM
                          : gpu_spawn(name, strlen(name), args, args_size, environment, env_size,
                                      fds, fd_count, pid);
    free(args);
    free(environment);
    return error;
}

// A child with the caller's environment and all of its descriptors; argv[0] names the program.
static inline int gpu_spawnv(const char* const* argv, uint32_t* pid) {
    return gpu_spawnve(argv[0], argv, NULL, NULL, GPU_ALL_FDS, pid);
}

// Runs it, and waits for its end.
static inline int gpu_run(const char* const* argv, gpu_status* status) {
    uint32_t pid;
    const int error = gpu_spawnv(argv, &pid);
    return error ? error : gpu_waitpid(pid, status);
}
#endif

#ifdef __cplusplus
}
#endif
#endif
