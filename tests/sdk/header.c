// Uses what sdk/c/gpu.h has, as C and as C++, with and without a C library.
#include "gpu.h"

int use_processes(const char* args, uint32_t args_size);
int use_processes(const char* args, uint32_t args_size) {
    const gpu_fd fds[] = {{0, 0}, {1, 2}};
    int read_fd, write_fd;
    uint32_t pid, ended_pid;
    gpu_status status;
    int error = gpu_pipe(&read_fd, &write_fd);
    error |= gpu_spawn("name", 4, args, args_size, NULL, 0, fds, 2, &pid);
    error |= gpu_spawn("name", 4, args, args_size, NULL, 0, NULL, GPU_ALL_FDS, &pid);
    error |= gpu_kill(pid, GPU_SIGTERM) | gpu_set_priority(gpu_getpid(), GPU_LOW);
    error |= gpu_wait(GPU_ANY_CHILD, GPU_NO_HANG, &ended_pid, &status);
    error |= gpu_waitpid(gpu_getppid(), &status);
    return error || !gpu_succeeded(status) ? gpu_shell_code(status) : 0;
}

uint32_t use_blocks(void);
uint32_t use_blocks(void) {
    char bytes[4] = {0};
    const uint32_t block = gpu_realloc(gpu_alloc(8), 16);
    const uint32_t size = gpu_write(block, 0, bytes, 4) + gpu_read(block, 0, bytes, 4);
    gpu_free(block);
    return size + gpu_instance_id() + gpu_instance_count() + gpu_lane_id() + (uint32_t)gpu_time();
}

void use_debug(void);
void use_debug(void) {
    gpu_debug_i32(-1);
    gpu_debug_i64(-1);
    gpu_debug_f32(0.5f);
    gpu_debug_f64(0.5);
    gpu_debug_bool(1);
    gpu_debug_str("text", 4);
}

#if __STDC_HOSTED__
int use_helpers(void);
int use_helpers(void) {
    static const char* const argv[] = {"name", "argument", NULL};
    static const char* const env[] = {"NAME=VALUE", NULL};
    uint32_t pid;
    gpu_status status;
    return gpu_run(argv, &status) | gpu_spawnv(argv, &pid) |
           gpu_spawnve("name", argv, env, NULL, GPU_ALL_FDS, &pid);
}
#endif
