// Processes by the names that WASIX has for them, declared as its C library declares them.
//   wasix CASE            one of the cases below
//   wasix --child ...     what they start
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define WASIX(name) __attribute__((import_module("wasix_32v1"), import_name(#name)))

struct option_fd {
    uint8_t tag;  // 0: none
    uint32_t fd;
};
struct process_handles {
    uint32_t pid;
    struct option_fd input, output, error;
};
struct option_pid {
    uint8_t tag;  // 0: none
    uint32_t pid;
};
struct join_status {
    uint8_t tag;
    union {
        uint16_t exit_normal;
        struct {
            uint16_t exit_code;
            uint8_t signal;
        } exit_signal;
        uint8_t stopped;
    } u;
};
_Static_assert(sizeof(struct process_handles) == 28, "as in wasix_32v1");
_Static_assert(sizeof(struct option_pid) == 8, "as in wasix_32v1");
_Static_assert(sizeof(struct join_status) == 6, "as in wasix_32v1");

enum { piped, inherit, null_stream };                 // stdio_mode
enum { nothing, exit_normal, exit_signal, stopped };  // join_status
enum { non_blocking = 1 };
enum { sigkill = 9, sigterm = 15, sigchld = 17 };  // those of Linux, unlike WASI's

WASIX(proc_spawn)
int proc_spawn(const char* name, size_t name_size, int chroot, const char* args, size_t args_size,
               const char* preopen, size_t preopen_size, int input, int output, int error,
               const char* working_dir, size_t working_dir_size, struct process_handles* handles);
WASIX(proc_join) int proc_join(struct option_pid* pid, uint32_t flags, struct join_status* status);
WASIX(proc_signal) int proc_signal(uint32_t pid, uint32_t signal);
WASIX(fd_pipe) int fd_pipe(uint32_t* first, uint32_t* second);
WASIX(proc_id) int proc_id(uint32_t* pid);
WASIX(proc_parent) int proc_parent(uint32_t pid, uint32_t* parent);

static void must(const char* what, int error) {
    if (error == 0) return;
    printf("%s: %s\n", what, strerror(error));
    exit(1);
}

// args: entries separated by line feeds.
static struct process_handles start(const char* args, int input, int output) {
    struct process_handles handles;
    fflush(stdout);
    must("proc_spawn", proc_spawn("c_wasix", 7, 0, args, strlen(args), "", 0, input, output,
                                  inherit, ".", 1, &handles));
    return handles;
}

static void join(uint32_t pid) {
    struct option_pid which = {1, pid};
    struct join_status status = {0};
    must("proc_join", proc_join(&which, 0, &status));
    printf("%s, ", which.tag == 1 && which.pid == pid ? "that one" : "another");
    if (status.tag == exit_normal) printf("exit %u\n", status.u.exit_normal);
    if (status.tag == exit_signal) printf("signal %u\n", status.u.exit_signal.signal);
    if (status.tag != exit_normal && status.tag != exit_signal) printf("tag %u\n", status.tag);
    fflush(stdout);
}

static int child(int argc, char** argv) {
    const char* const what = argv[2];
    if (strcmp(what, "exit") == 0) return atoi(argv[3]);
    if (strcmp(what, "trap") == 0) __builtin_trap();
    if (strcmp(what, "forever") == 0) {
        for (;;) sleep(1000);
    }
    if (strcmp(what, "tell") == 0) {
        for (int i = 0; i < argc; i++) printf("%d: [%s]\n", i, argv[i]);
        const char* const name = getenv("NAME");
        printf("NAME: %s\n", name ? name : "none");
        return 0;
    }
    if (strcmp(what, "upper") == 0) {
        for (int c; (c = getchar()) != EOF;) putchar(c >= 'a' && c <= 'z' ? c - 32 : c);
        return 0;
    }
    if (strcmp(what, "parent") == 0) {
        uint32_t pid, parent;
        must("proc_id", proc_id(&pid));
        must("proc_parent", proc_parent(pid, &parent));
        return parent == (uint32_t)atoi(argv[3]) ? 0 : 1;
    }
    return 99;
}

static void spawns(void) {
    join(start("any name\n--child\ntell\ntwo words\n\nlast", inherit, inherit).pid);
    join(start("c_wasix\n--child\nexit\n42", inherit, inherit).pid);
    join(start("c_wasix\n--child\ntell\nunheard", null_stream, null_stream).pid);
    struct process_handles handles;
    const int error = proc_spawn("nothing", 7, 0, "nothing", 7, "", 0, inherit, inherit, inherit,
                                 ".", 1, &handles);
    printf("no such program: %s\n", error == ENOENT ? "ENOENT" : strerror(error));
}

static void pipes(void) {
    const struct process_handles handles = start("c_wasix\n--child\nupper", piped, piped);
    printf("tags: %u %u %u\n", handles.input.tag, handles.output.tag, handles.error.tag);
    if (write((int)handles.input.fd, "through a pipe", 14) != 14) exit(1);
    close((int)handles.input.fd);
    char bytes[100];
    ssize_t size = read((int)handles.output.fd, bytes, sizeof bytes);
    printf("%.*s\n", (int)size, bytes);
    printf("then %zd\n", read((int)handles.output.fd, bytes, sizeof bytes));
    join(handles.pid);
    uint32_t first, second;
    must("fd_pipe", fd_pipe(&first, &second));
    if (write((int)second, "own", 3) != 3) exit(1);
    close((int)second);
    size = read((int)first, bytes, sizeof bytes);
    printf("%.*s, then %zd\n", (int)size, bytes, read((int)first, bytes, sizeof bytes));
}

static void joins(void) {
    struct option_pid any = {0, 0};
    struct join_status status = {.tag = 77};
    printf("none: %s", proc_join(&any, 0, &status) == ECHILD ? "ECHILD" : "?");
    printf(", tags %u %u\n", any.tag, status.tag);
    const uint32_t pid = start("c_wasix\n--child\nforever", inherit, inherit).pid;
    struct option_pid one = {1, pid};
    must("proc_join", proc_join(&one, non_blocking, &status));
    printf("not yet: pid %u, status %u\n", one.pid, status.tag);
    any.tag = 2;
    printf("wrong tag: %s\n", proc_join(&any, 0, &status) == EINVAL ? "EINVAL" : "?");
    must("asked", proc_signal(pid, 0));
    must("chld", proc_signal(pid, sigchld));
    must("term", proc_signal(pid, sigterm));
    join(pid);
    const uint32_t last = start("c_wasix\n--child\nexit\n7", inherit, inherit).pid;
    any.tag = 0;
    must("proc_join", proc_join(&any, 0, &status));
    printf("any: %s, exit %u\n", any.tag == 1 && any.pid == last ? "that one" : "another",
           status.u.exit_normal);
}

static void ids(void) {
    uint32_t pid, parent;
    must("proc_id", proc_id(&pid));
    must("proc_parent", proc_parent(pid, &parent));
    printf("parent of the first: %u\n", parent);
    char args[64];
    snprintf(args, sizeof args, "c_wasix\n--child\nparent\n%u", pid);
    join(start(args, inherit, inherit).pid);
    printf("no such process: %s\n", proc_parent(123456789, &parent) ? "an error" : "?");
}

int main(int argc, char** argv) {
    if (argc > 2 && strcmp(argv[1], "--child") == 0) return child(argc, argv);
    if (argc == 2 && strcmp(argv[1], "spawns") == 0) spawns();
    if (argc == 2 && strcmp(argv[1], "pipes") == 0) pipes();
    if (argc == 2 && strcmp(argv[1], "joins") == 0) joins();
    if (argc == 2 && strcmp(argv[1], "ids") == 0) ids();
    return 0;
}
