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
struct fd_op {
    uint8_t cmd;
    uint32_t fd, src_fd;
    const char* path;
    size_t path_len;
    uint32_t dirflags;
    uint16_t oflags;
    uint64_t rights_base, rights_inheriting;
    uint16_t fdflags, fdflagsext;
};
struct signal_disposition {
    uint8_t sig, disp;
};
_Static_assert(sizeof(struct fd_op) == 56, "as in wasix_32v1");
_Static_assert(sizeof(struct process_handles) == 28, "as in wasix_32v1");
_Static_assert(sizeof(struct option_pid) == 8, "as in wasix_32v1");
_Static_assert(sizeof(struct join_status) == 6, "as in wasix_32v1");

enum { piped, inherit, null_stream };                 // stdio_mode
enum { nothing, exit_normal, exit_signal, stopped };  // join_status
enum { non_blocking = 1 };
enum { op_close, op_dup2, op_open, op_chdir, op_fchdir };  // fd_op
enum { oflags_creat = 1, oflags_trunc = 8, fdflags_append = 1 };
enum { rights_read = 2, rights_write = 64 };
enum { sigkill = 9, sigterm = 15, sigchld = 17 };  // those of Linux, unlike WASI's

WASIX(proc_spawn)
int proc_spawn(const char* name, size_t name_size, int chroot, const char* args, size_t args_size,
               const char* preopen, size_t preopen_size, int input, int output, int error,
               const char* working_dir, size_t working_dir_size, struct process_handles* handles);
WASIX(proc_spawn2)
int proc_spawn2(const char* name, size_t name_size, const char* args, size_t args_size,
                const char* envs, size_t envs_size, const struct fd_op* ops, size_t op_count,
                const struct signal_disposition* signals, size_t signal_count, int search_path,
                const char* path, size_t path_size, uint32_t* pid);
WASIX(proc_spawn3)
int proc_spawn3(const char* name, size_t name_size, const char* const* argv, size_t argc,
                const char* const* envp, size_t envc, const struct fd_op* ops, size_t op_count,
                const struct signal_disposition* signals, size_t signal_count, int search_path,
                const char* path, size_t path_size, uint32_t* pid);
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

static const char* is_open(int fd) {
    return lseek(fd, 0, SEEK_CUR) == -1 && errno == EBADF ? "closed" : "open";
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
    if (strcmp(what, "has") == 0) {  // which descriptors, of those named
        for (int i = 3; i < argc; i++) printf("%s: %s\n", argv[i], is_open(atoi(argv[i])));
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

// With a list of what is done with descriptors.
static int try_spawn2(const char* args, const struct fd_op* ops, size_t op_count, uint32_t* pid) {
    fflush(stdout);
    return proc_spawn2("c_wasix", 7, args, strlen(args), NULL, 0, ops, op_count, NULL, 0, 1,
                       "/bin:/usr/bin", 13, pid);
}

static void run_with(const char* args, const struct fd_op* ops, size_t op_count) {
    uint32_t pid;
    must("proc_spawn2", try_spawn2(args, ops, op_count, &pid));
    join(pid);
}

static void spawn2(void) {
    run_with("any name\n--child\ntell\ntwo words\n\r\nlast\n", NULL, 0);
    const char* const envs = "NAME=another\nEMPTY=\n";
    const struct signal_disposition signals[] = {{sigterm, 0}, {sigchld, 1}};
    uint32_t pid;
    fflush(stdout);
    must("proc_spawn2", proc_spawn2("/bin/c_wasix.wasm", 17, "x\n--child\ntell", 14, envs,
                                    strlen(envs), NULL, 0, signals, 2, 0, NULL, 0, &pid));
    join(pid);
    fflush(stdout);
    must("proc_spawn2", proc_spawn2("c_wasix", 7, "x\n--child\ntell", 14, "", 0, NULL, 0, NULL, 0,
                                    0, NULL, 0, &pid));
    join(pid);
}

static void spawn3(void) {
    const char* const argv[] = {"any name", "--child", "tell", "two\nlines", "", "last"};
    const char* const envp[] = {"NAME=two\nlines", "A=b=c"};
    uint32_t pid;
    fflush(stdout);
    must("proc_spawn3",
         proc_spawn3("c_wasix", 7, argv, 6, NULL, 0, NULL, 0, NULL, 0, 1, "/bin", 4, &pid));
    join(pid);
    fflush(stdout);
    must("proc_spawn3",
         proc_spawn3("./c_wasix", 9, argv, 3, envp, 2, NULL, 0, NULL, 0, 0, NULL, 0, &pid));
    join(pid);
}

static void show(const char* name) {
    char bytes[1000];
    FILE* const file = fopen(name, "r");
    if (file == NULL) {
        printf("%s: %s\n", name, strerror(errno));
        return;
    }
    printf("%s: [%.*s]\n", name, (int)fread(bytes, 1, sizeof bytes, file), bytes);
    fclose(file);
}

static struct fd_op opens(uint32_t fd, const char* path, uint16_t oflags, uint64_t rights) {
    return (struct fd_op){.cmd = op_open,
                          .fd = fd,
                          .path = path,
                          .path_len = strlen(path),
                          .dirflags = 1,
                          .oflags = oflags,
                          .rights_base = rights};
}

static void fd_ops(void) {
    // What `upper <given.txt >made.txt` becomes.
    const struct fd_op files[] = {opens(0, "given.txt", 0, rights_read),
                                  opens(1, "/made.txt", oflags_creat | oflags_trunc, rights_write)};
    run_with("c_wasix\n--child\nupper", files, 2);
    show("made.txt");
    struct fd_op append = opens(1, "./made.txt", oflags_creat, rights_write);
    append.fdflags = fdflags_append;
    const struct fd_op again[] = {opens(0, "given.txt", 0, rights_read), append};
    run_with("c_wasix\n--child\nupper", again, 2);
    show("made.txt");
    // A pipe: the child writes to its end and has no other.
    uint32_t ends[2];
    must("fd_pipe", fd_pipe(&ends[0], &ends[1]));
    const struct fd_op pipe[] = {{.cmd = op_dup2, .fd = 1, .src_fd = ends[1]},
                                 {.cmd = op_dup2, .fd = 30, .src_fd = ends[0]},
                                 {.cmd = op_dup2, .fd = 30, .src_fd = 30},
                                 {.cmd = op_close, .fd = ends[0]},
                                 {.cmd = op_close, .fd = ends[1]},
                                 {.cmd = op_close, .fd = 77}};
    char args[100];
    snprintf(args, sizeof args, "c_wasix\n--child\nhas\n0\n1\n2\n3\n%u\n%u\n30\n77", ends[0],
             ends[1]);
    uint32_t pid;
    must("proc_spawn2", try_spawn2(args, pipe, 6, &pid));
    close((int)ends[1]);
    char bytes[200];
    ssize_t size = 0;
    for (ssize_t more; (more = read((int)ends[0], bytes + size, sizeof bytes - (size_t)size)) > 0;)
        size += more;
    for (ssize_t i = 0, line = 0; i < size;
         i++) {  // the numbers of the ends are not for us to know
        if (bytes[i] == ':') printf("%s", line++ == 4 ? "first" : line == 6 ? "second" : "");
        if (line == 4 || line == 5 ? bytes[i] < '0' || bytes[i] > '9' : 1) putchar(bytes[i]);
    }
    join(pid);
    close((int)ends[0]);
    // To close a preopen is skipped.
    const struct fd_op preopen[] = {{.cmd = op_close, .fd = 3}};
    run_with("c_wasix\n--child\nhas\n3", preopen, 1);
}

static const char* name_of(int error) {
    switch (error) {
        case 0: return "none";
        case EFAULT: return "EFAULT";
        case EINVAL: return "EINVAL";
        case ENOTSUP: return "ENOTSUP";
        case ENOENT: return "ENOENT";
        case EBADF: return "EBADF";
        case E2BIG: return "E2BIG";
        default: return strerror(error);
    }
}

static void try_op(const char* what, struct fd_op op) {
    uint32_t pid = 77;
    printf("%s: %s", what, name_of(try_spawn2("c_wasix\n--child\nexit\n0", &op, 1, &pid)));
    printf(", %u\n", pid);
}

static void wrong_spawns(void) {
    const char* const far = (const char*)0xfffffff0;
    const char* const args = "x\n--child\nexit\n0";
    const size_t size = strlen(args);
    const char* const argv[] = {"x", "--child", "exit", far};
    uint32_t pid = 77;
    printf("name: %s\n",
           name_of(proc_spawn2(far, 100, args, size, NULL, 0, NULL, 0, NULL, 0, 0, NULL, 0, &pid)));
    printf("args: %s\n", name_of(proc_spawn2("c_wasix", 7, far, 100, NULL, 0, NULL, 0, NULL, 0, 0,
                                             NULL, 0, &pid)));
    printf("envs: %s\n", name_of(proc_spawn2("c_wasix", 7, args, size, far, 100, NULL, 0, NULL, 0,
                                             0, NULL, 0, &pid)));
    printf("ops: %s\n", name_of(proc_spawn2("c_wasix", 7, args, size, NULL, 0, (void*)far, 1, NULL,
                                            0, 0, NULL, 0, &pid)));
    printf("signals: %s\n", name_of(proc_spawn2("c_wasix", 7, args, size, NULL, 0, NULL, 0,
                                                (void*)far, 10, 0, NULL, 0, &pid)));
    printf("path: %s\n", name_of(proc_spawn2("c_wasix", 7, args, size, NULL, 0, NULL, 0, NULL, 0, 1,
                                             far, 100, &pid)));
    printf("pid: %s\n", name_of(proc_spawn2("c_wasix", 7, args, size, NULL, 0, NULL, 0, NULL, 0, 0,
                                            NULL, 0, (uint32_t*)0xfffffffd)));
    printf("argv: %s\n", name_of(proc_spawn3("c_wasix", 7, (void*)far, 9, NULL, 0, NULL, 0, NULL, 0,
                                             0, NULL, 0, &pid)));
    printf("argv[3]: %s\n", name_of(proc_spawn3("c_wasix", 7, argv, 4, NULL, 0, NULL, 0, NULL, 0, 0,
                                                NULL, 0, &pid)));
    printf("envp[3]: %s\n", name_of(proc_spawn3("c_wasix", 7, argv, 3, argv, 4, NULL, 0, NULL, 0, 0,
                                                NULL, 0, &pid)));
    const char* const no_variables[] = {"NAME=value", "=", "NAME"};
    printf("no variable: %s", name_of(proc_spawn2("c_wasix", 7, args, size, "A=b\nNAME", 8, NULL, 0,
                                                  NULL, 0, 0, NULL, 0, &pid)));
    printf(", %s\n", name_of(proc_spawn3("c_wasix", 7, argv, 3, no_variables, 3, NULL, 0, NULL, 0,
                                         0, NULL, 0, &pid)));
    char* const much = calloc(1, 70000);
    memset(much, 'x', 69999);
    const char* const long_argv[] = {"x", much};
    printf("too much: %s", name_of(proc_spawn2("c_wasix", 7, much, 69999, NULL, 0, NULL, 0, NULL, 0,
                                               0, NULL, 0, &pid)));
    printf(", %s\n", name_of(proc_spawn3("c_wasix", 7, long_argv, 2, NULL, 0, NULL, 0, NULL, 0, 0,
                                         NULL, 0, &pid)));
    printf("no such program: %s\n", name_of(proc_spawn2("nothing", 7, args, size, NULL, 0, NULL, 0,
                                                        NULL, 0, 0, NULL, 0, &pid)));
    try_op("what is not open", (struct fd_op){.cmd = op_dup2, .fd = 5, .src_fd = 77});
    try_op("a number that cannot be", (struct fd_op){.cmd = op_dup2, .fd = 100000, .src_fd = 1});
    try_op("over a preopen", (struct fd_op){.cmd = op_dup2, .fd = 3, .src_fd = 1});
    try_op("opened over a preopen", opens(3, "given.txt", 0, rights_read));
    try_op("no such file", opens(0, "no/such/file", 0, rights_read));
    try_op("out of it all", opens(0, "../given.txt", 0, rights_read));
    try_op("a folder to be written", opens(1, "/", 0, rights_write));
    try_op("no path", opens(1, "", 0, rights_write));
    try_op("a path that is not there", (struct fd_op){.cmd = op_open, .path = far, .path_len = 99});
    try_op("chdir", (struct fd_op){.cmd = op_chdir, .path = "/", .path_len = 1});
    try_op("fchdir", (struct fd_op){.cmd = op_fchdir, .fd = 3});
    try_op("what is no operation", (struct fd_op){.cmd = 5});
    struct option_pid any = {0, 0};
    struct join_status status;
    printf("children: %s\n", proc_join(&any, non_blocking, &status) == ECHILD ? "none" : "some");
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
    if (argc == 2 && strcmp(argv[1], "spawn2") == 0) spawn2();
    if (argc == 2 && strcmp(argv[1], "spawn3") == 0) spawn3();
    if (argc == 2 && strcmp(argv[1], "fd_ops") == 0) fd_ops();
    if (argc == 2 && strcmp(argv[1], "wrong_spawns") == 0) wrong_spawns();
    return 0;
}
