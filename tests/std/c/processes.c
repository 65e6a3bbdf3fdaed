// The calls for processes of sdk/c/gpu.h: what they do, and which errors they have.
//   processes CASE            one of the cases below
//   processes --child ...     what the cases start
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "gpu.h"

static const char* const self = "c_processes";

static const char* name_of(int error) {
    switch (error) {
        case 0: return "success";
        case E2BIG: return "E2BIG";
        case EAGAIN: return "EAGAIN";
        case EBADF: return "EBADF";
        case ECHILD: return "ECHILD";
        case EFAULT: return "EFAULT";
        case EINVAL: return "EINVAL";
        case ENOENT: return "ENOENT";
        case EPERM: return "EPERM";
        case EPIPE: return "EPIPE";
        case ESRCH: return "ESRCH";
        default: return strerror(error);
    }
}

static void say(const char* what, int error) {
    printf("%s: %s\n", what, name_of(error));
    fflush(stdout);
}

static void must(const char* what, int error) {
    if (error == 0) return;
    say(what, error);
    exit(1);
}

static const char* endings[] = {"exited", "trapped", "killed", "out of fuel"};

static void show(const char* what, gpu_status status) {
    // The number of a trap is not the same everywhere.
    printf("%s: %s %u\n", what, status.ending < 4 ? endings[status.ending] : "?",
           status.ending == GPU_TRAPPED ? 0 : status.code);
    fflush(stdout);
}

// A child that does `what`, with these descriptors beside standard output and error.
static uint32_t start(const char* what, const char* with, const gpu_fd* more, uint32_t count) {
    const char* const argv[] = {self, "--child", what, with, NULL};
    gpu_fd fds[8] = {{1, 1}, {2, 2}};
    for (uint32_t i = 0; i < count; i++) fds[2 + i] = more[i];
    uint32_t pid;
    fflush(stdout);
    must("spawn", gpu_spawnve(self, argv, NULL, fds, 2 + count, &pid));
    return pid;
}

static gpu_status end_of(uint32_t pid) {
    gpu_status status;
    must("wait", gpu_waitpid(pid, &status));
    return status;
}

static void make_pipe(int ends[2]) { must("pipe", gpu_pipe(&ends[0], &ends[1])); }

// ---- what children do --------------------------------------------------------------

extern char** environ;

static unsigned checksum(unsigned sum, const char* bytes, size_t size) {
    for (size_t i = 0; i < size; i++) sum = sum * 31 + (unsigned char)bytes[i];
    return sum;
}

static int child(int argc, char** argv) {
    const char* const what = argv[2];
    const int number = argc > 3 ? atoi(argv[3]) : 0;
    char bytes[4096];
    if (strcmp(what, "exit") == 0) return number;
    if (strcmp(what, "trap") == 0) __builtin_trap();
    if (strcmp(what, "abort") == 0) abort();
    if (strcmp(what, "forever") == 0) {
        for (;;) sleep(1000);
    }
    if (strcmp(what, "spin") == 0) {
        for (volatile unsigned i = 0;; i++) {
        }
    }
    if (strcmp(what, "sleep") == 0) {
        const struct timespec time = {.tv_nsec = number * 1000000l};
        nanosleep(&time, NULL);
        return number;
    }
    if (strcmp(what, "read") == 0) {  // standard input to its end
        long size = 0;
        for (ssize_t n; (n = read(0, bytes, sizeof bytes)) > 0;) size += n;
        return size > 100 ? 100 : (int)size;
    }
    if (strcmp(what, "tell") == 0) {
        for (int i = 0; i < argc; i++) printf("%d: [%s]\n", i, argv[i]);
        for (char** at = environ; *at; at++) {
            // Native programs are told where programs are.
            if (strncmp(*at, "GPU_PROGRAMS=", 13)) printf("env: [%s]\n", *at);
        }
        return 0;
    }
    if (strcmp(what, "fds") == 0) {
        for (int fd = 0; fd < 12; fd++) {
            // 3 may be a directory.
            if (fd != 3) printf("%d%s", fd, fcntl(fd, F_GETFL) < 0 ? " no, " : " yes, ");
        }
        printf("%s", write(number, "written", 7) == 7 ? "can write\n" : "cannot write\n");
        return 0;
    }
    if (strcmp(what, "lines") == 0) {  // 50 lines of 1,000 bytes, each by one write
        memset(bytes, 'a' + number, 999);
        bytes[999] = '\n';
        for (int i = 0; i < 50; i++) {
            if (write(5, bytes, 1000) != 1000) return 1;
        }
        return 0;
    }
    if (strcmp(what, "megabyte") == 0) {
        unsigned sum = 0;
        for (int i = 0; i < 256; i++) {
            for (size_t k = 0; k < sizeof bytes; k++) bytes[k] = (char)(i * 7 + k * 13);
            sum = checksum(sum, bytes, sizeof bytes);
            for (size_t done = 0; done < sizeof bytes;) {
                const ssize_t n = write(5, bytes + done, sizeof bytes - done);
                if (n <= 0) return 1;
                done += (size_t)n;
            }
        }
        printf("sent: %u\n", sum);
        return 0;
    }
    if (strcmp(what, "parent") == 0) return gpu_getppid() == (uint32_t)number ? 0 : 1;
    if (strcmp(what, "kill_parent") == 0) {
        say("kill of the parent", gpu_kill(gpu_getppid(), GPU_SIGKILL));
        say("priority of the parent", gpu_set_priority(gpu_getppid(), GPU_HIGH));
        return 0;
    }
    if (strcmp(what, "leave_child") == 0) {  // one that has 5 and 6, and outlives this one
        const gpu_fd both[] = {{5, 5}, {6, 6}};
        start("outlive", "", both, 2);
        return 0;
    }
    if (strcmp(what, "outlive") == 0) {
        char c;
        return read(5, &c, 1) == 1 && write(6, "still here", 10) == 10 ? 0 : 1;
    }
    if (strcmp(what, "file") == 0) {
        FILE* file = fopen("parent.txt", "r");
        if (!file || !fgets(bytes, sizeof bytes, file)) return 1;
        fclose(file);
        printf("child reads: %s", bytes);
        file = fopen("child.txt", "w");
        if (!file) return 2;
        fputs("from the child\n", file);
        return fclose(file) || unlink("parent.txt") ? 3 : 0;
    }
    if (strcmp(what, "three") == 0) {
        if (read(5, bytes, 3) != 3) return 1;
        printf("child reads %.3s\n", bytes);
        return 0;
    }
    return 99;
}

// ---- cases -------------------------------------------------------------------------

static void exits(void) {
    static const char* const codes[] = {"0", "1", "42", "125", "200", "255"};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        show(codes[i], end_of(start("exit", codes[i], NULL, 0)));
    }
    show("trap", end_of(start("trap", "", NULL, 0)));
    show("abort", end_of(start("abort", "", NULL, 0)));
}

static void arguments(void) {
    static const char* const argv[] = {"any name", "--child", "tell",         "two words",
                                       "",         "a\nb",    "na\xc3\xafve", NULL};
    static const char* const env[] = {"A=1", "B=two words", "EMPTY=", "C=a=b", NULL};
    static const char* const none[] = {NULL};
    uint32_t pid;
    const char* const* const environments[] = {NULL, env, none};
    for (int i = 0; i < 3; i++) {
        fflush(stdout);
        must("spawn", gpu_spawnve(self, argv, environments[i], NULL, GPU_ALL_FDS, &pid));
        show("end", end_of(pid));
    }
}

static void wrong_spawns(void) {
    static const char* const argv[] = {"name", "--child", "exit", "0", NULL};
    static const gpu_fd closed[] = {{0, 77}};
    uint32_t pid = 12345;
    say("no such program", gpu_spawnve("nothing", argv, NULL, NULL, GPU_ALL_FDS, &pid));
    say("no name", gpu_spawnve("", argv, NULL, NULL, GPU_ALL_FDS, &pid));
    char long_name[5000];
    memset(long_name, 'x', sizeof long_name);
    long_name[sizeof long_name - 1] = 0;
    say("a long name", gpu_spawnve(long_name, argv, NULL, NULL, GPU_ALL_FDS, &pid));
    say("a closed descriptor", gpu_spawnve(self, argv, NULL, closed, 1, &pid));
    char* const much = malloc(200001);
    memset(much, 'x', 200000);
    much[200000] = 0;
    const char* const long_argv[] = {"name", "--child", "exit", "0", much, NULL};
    say("much too long", gpu_spawnve(self, long_argv, NULL, NULL, GPU_ALL_FDS, &pid));
    free(much);
    printf("pid is %u\n", pid);
    uint32_t any;
    gpu_status status;
    say("wait", gpu_wait(GPU_ANY_CHILD, 0, &any, &status));
}

static void waits(void) {
    uint32_t pid;
    gpu_status status;
    say("none", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
    say("none, not waiting", gpu_wait(GPU_ANY_CHILD, GPU_NO_HANG, &pid, &status));
    say("itself", gpu_wait(gpu_getpid(), 0, &pid, &status));
    int gate[2];
    make_pipe(gate);
    const gpu_fd input = {0, (uint32_t)gate[0]};
    const uint32_t first = start("read", "", &input, 1), second = start("exit", "3", NULL, 0);
    say("of one that has not ended", gpu_wait(first, GPU_NO_HANG, &pid, &status));
    must("wait", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
    printf("%s\n", pid == second ? "the second" : "not the second");
    show("second", status);
    say("the second again", gpu_wait(second, 0, &pid, &status));
    say("any that has not ended", gpu_wait(GPU_ANY_CHILD, GPU_NO_HANG, &pid, &status));
    if (write(gate[1], "1234567", 7) != 7) exit(1);
    close(gate[1]);
    must("wait", gpu_wait(first, 0, &pid, &status));
    printf("%s\n", pid == first ? "the first" : "not the first");
    show("first", status);
    say("none", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
}

static void kills(void) {
    uint32_t pid = start("forever", "", NULL, 0);
    say("asked", gpu_kill(pid, GPU_SIGNONE));
    say("SIGCHLD", gpu_kill(pid, GPU_SIGCHLD));
    say("SIGCONT", gpu_kill(pid, GPU_SIGCONT));
    say("no signal", gpu_kill(pid, 99));
    say("SIGTERM", gpu_kill(pid, GPU_SIGTERM));
    show("sleeping", end_of(pid));
    say("asked again", gpu_kill(pid, GPU_SIGNONE));
    pid = start("spin", "", NULL, 0);
    say("SIGKILL", gpu_kill(pid, GPU_SIGKILL));
    show("spinning", end_of(pid));
    int gate[2];
    make_pipe(gate);
    const gpu_fd input = {0, (uint32_t)gate[0]};
    pid = start("read", "", &input, 1);
    say("SIGINT", gpu_kill(pid, GPU_SIGINT));
    show("reading", end_of(pid));
    show("child", end_of(start("kill_parent", "", NULL, 0)));
    say("priority", gpu_set_priority(gpu_getpid(), GPU_LOW));
    say("no priority", gpu_set_priority(gpu_getpid(), 3));
    fflush(stdout);
    gpu_kill(gpu_getpid(), GPU_SIGTERM);
    printf("still here\n");
}

static void family(void) {
    char parent[12];
    snprintf(parent, sizeof parent, "%u", gpu_getpid());
    show("child", end_of(start("parent", parent, NULL, 0)));
    // A grandchild whose parent has ended goes on, and is nobody's child.
    int question[2], answer[2];
    make_pipe(question);
    make_pipe(answer);
    const gpu_fd both[] = {{5, (uint32_t)question[0]}, {6, (uint32_t)answer[1]}};
    show("its parent", end_of(start("leave_child", "", both, 2)));
    close(answer[1]);
    if (write(question[1], "?", 1) != 1) exit(1);
    char bytes[20];
    const ssize_t size = read(answer[0], bytes, sizeof bytes);
    printf("grandchild: %.*s\n", (int)size, bytes);
    printf("then: %zd\n", read(answer[0], bytes, sizeof bytes));
    uint32_t pid;
    gpu_status status;
    say("wait", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
}

static void descriptors(void) {
    int ends[2];
    make_pipe(ends);
    const gpu_fd as_seven = {7, (uint32_t)ends[1]};
    show("child", end_of(start("fds", "7", &as_seven, 1)));
    close(ends[1]);
    char bytes[20];
    ssize_t size = read(ends[0], bytes, sizeof bytes);
    printf("read: %.*s, then %zd\n", (int)size, bytes, read(ends[0], bytes, sizeof bytes));
    close(ends[0]);
    // Two that change places.
    int first[2], second[2];
    make_pipe(first);
    make_pipe(second);
    const gpu_fd swapped[] = {{(uint32_t)first[1], (uint32_t)second[1]},
                              {(uint32_t)second[1], (uint32_t)first[1]}};
    char number[12];
    snprintf(number, sizeof number, "%d", first[1]);
    const char* const argv[] = {self, "--child", "fds", number, NULL};
    uint32_t pid;
    must("spawn", gpu_spawnve(self, argv, NULL, swapped, 2, &pid));
    show("without standard output", end_of(pid));
    close(first[1]);
    close(second[1]);
    size = read(second[0], bytes, sizeof bytes);
    printf("second: %.*s; first: %zd\n", (int)size, bytes, read(first[0], bytes, sizeof bytes));
}

static void pipes(void) {
    int ends[2];
    make_pipe(ends);
    char bytes[4096] = {0};
    printf("write: %zd\n", write(ends[1], "hello", 5));
    printf("read: %zd", read(ends[0], bytes, 3));
    printf(" %.3s\n", bytes);
    printf("seek: %s\n", lseek(ends[0], 0, SEEK_SET) < 0 && errno == ESPIPE ? "ESPIPE" : "?");
    printf("read what is to write: %s\n", read(ends[1], bytes, 1) < 0 ? "an error" : "?");
    printf("write what is to read: %s\n", write(ends[0], bytes, 1) < 0 ? "an error" : "?");
    close(ends[1]);
    printf("the rest: %zd\n", read(ends[0], bytes, sizeof bytes));
    printf("the end: %zd, %zd\n", read(ends[0], bytes, 1), read(ends[0], bytes, 1));
    close(ends[0]);
    make_pipe(ends);
    close(ends[0]);
    say("nobody reads", write(ends[1], bytes, 1) < 0 ? errno : 0);
    close(ends[1]);
    make_pipe(ends);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    say("empty", read(ends[0], bytes, 1) < 0 ? errno : 0);
    long size = 0;
    for (ssize_t n; (n = write(ends[1], bytes, sizeof bytes)) > 0;) size += n;
    printf("full: %s after %ld\n", name_of(errno), size);
    printf("read: %zd\n", read(ends[0], bytes, sizeof bytes));
    printf("write: %zd\n", write(ends[1], bytes, sizeof bytes));
}

static void polls(void) {
    int ends[2];
    make_pipe(ends);
    struct pollfd fds[] = {{.fd = ends[0], .events = POLLIN}};
    printf("empty: %d\n", poll(fds, 1, 10));
    if (write(ends[1], "x", 1) != 1) exit(1);
    printf("with a byte: %d\n", poll(fds, 1, -1));
    char c;
    if (read(ends[0], &c, 1) != 1) exit(1);
    printf("empty: %d\n", poll(fds, 1, 0));
    // One that comes from a child, which first takes its time.
    const gpu_fd output = {5, (uint32_t)ends[1]};
    const uint32_t pid = start("lines", "0", &output, 1);
    printf("from a child: %d\n", poll(fds, 1, -1));
    close(ends[1]);
    long size = 0;
    char bytes[4096];
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0;) size += n;
    printf("read: %ld\n", size);
    printf("at its end: %d\n", poll(fds, 1, -1));
    show("child", end_of(pid));
}

static void writers(void) {
    enum { count = 8 };
    int ends[2];
    make_pipe(ends);
    const gpu_fd output = {5, (uint32_t)ends[1]};
    uint32_t pids[count];
    for (int i = 0; i < count; i++) {
        char number[12];
        snprintf(number, sizeof number, "%d", i);
        pids[i] = start("lines", number, &output, 1);
    }
    close(ends[1]);
    FILE* const file = fdopen(ends[0], "r");
    char line[2000];
    int lines[count] = {0}, torn = 0;
    while (fgets(line, sizeof line, file)) {
        const unsigned from = (unsigned)(line[0] - 'a');
        bool is_whole = strlen(line) == 1000 && from < count;
        for (size_t i = 0; is_whole && i < 999; i++) is_whole = line[i] == line[0];
        if (is_whole) {
            lines[from]++;
        } else {
            torn++;
        }
    }
    fclose(file);
    for (int i = 0; i < count; i++) {
        end_of(pids[i]);
        printf("%d%s", lines[i], i + 1 < count ? " " : "");
    }
    printf(" lines, %d torn\n", torn);
}

static void megabyte(void) {
    int ends[2];
    make_pipe(ends);
    const gpu_fd output = {5, (uint32_t)ends[1]};
    const uint32_t pid = start("megabyte", "", &output, 1);
    close(ends[1]);
    char bytes[3000];
    unsigned sum = 0;
    long size = 0;
    for (ssize_t n; (n = read(ends[0], bytes, sizeof bytes)) > 0; size += n) {
        sum = checksum(sum, bytes, (size_t)n);
    }
    const gpu_status status = end_of(pid);
    printf("received: %u, %ld bytes\n", sum, size);
    show("child", status);
}

static void files(void) {
    FILE* file = fopen("parent.txt", "w");
    fputs("from the parent\n", file);
    fclose(file);
    show("child", end_of(start("file", "", NULL, 0)));
    char line[100] = "";
    file = fopen("child.txt", "r");
    if (file && fgets(line, sizeof line, file)) printf("parent reads: %s", line);
    if (file) fclose(file);
    printf("parent.txt: %s\n", access("parent.txt", F_OK) ? "gone" : "there");
    // One position for both.
    const int fd = open("given.txt", O_RDONLY);
    const gpu_fd input = {5, (uint32_t)fd};
    show("child", end_of(start("three", "", &input, 1)));
    if (read(fd, line, 3) == 3) printf("parent reads %.3s\n", line);
    show("child", end_of(start("three", "", &input, 1)));
    close(fd);
}

static void many(void) {
    enum { count = 300 };
    static uint32_t pids[count];
    unsigned long sum = 0, killed = 0;
    for (int i = 0; i < count; i++) {  // one after the other
        char number[12];
        snprintf(number, sizeof number, "%d", i % 100);
        sum += end_of(start("exit", number, NULL, 0)).code;
    }
    printf("%d after each other: %lu\n", count, sum);
    sum = 0;
    for (int i = 0; i < count; i++) {  // all at once, asleep
        char number[12];
        snprintf(number, sizeof number, "%d", i % 50);
        pids[i] = start("sleep", number, NULL, 0);
    }
    for (int i = 0; i < count; i++) sum += end_of(pids[i]).code;
    printf("%d that sleep: %lu\n", count, sum);
    for (int i = 0; i < count; i++) pids[i] = start(i % 8 ? "forever" : "spin", "", NULL, 0);
    for (int i = 0; i < count; i++) must("kill", gpu_kill(pids[i], GPU_SIGKILL));
    for (int i = 0; i < count; i++) {
        const gpu_status status = end_of(pids[i]);
        killed += status.ending == GPU_KILLED && status.code == GPU_SIGKILL;
    }
    printf("%d that never end: %lu killed\n", count, killed);
}

// Memory that is not there.
static void faults(void) {
    static const char args[] = "name";
    char* const nowhere = (char*)(uintptr_t)0xfffffff0u;
    uint32_t pid;
    gpu_status status;
    say("name", gpu_spawn(nowhere, 32, args, sizeof args, NULL, 0, NULL, GPU_ALL_FDS, &pid));
    say("args", gpu_spawn(self, strlen(self), nowhere, 32, NULL, 0, NULL, GPU_ALL_FDS, &pid));
    say("env",
        gpu_spawn(self, strlen(self), args, sizeof args, nowhere, 32, NULL, GPU_ALL_FDS, &pid));
    say("fds",
        gpu_spawn(self, strlen(self), args, sizeof args, NULL, 0, (gpu_fd*)nowhere, 4, &pid));
    say("pid", gpu_spawn(self, strlen(self), args, sizeof args, NULL, 0, NULL, GPU_ALL_FDS,
                         (uint32_t*)nowhere + 3));
    say("pipe", gpu_pipe((int*)nowhere + 3, (int*)&pid));
    say("no child was made", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status));
}

static const struct {
    const char* name;
    void (*run)(void);
} cases[] = {{"exits", exits},
             {"arguments", arguments},
             {"wrong_spawns", wrong_spawns},
             {"waits", waits},
             {"kills", kills},
             {"family", family},
             {"pipes", pipes},
             {"descriptors", descriptors},
             {"polls", polls},
             {"writers", writers},
             {"megabyte", megabyte},
             {"files", files},
             {"many", many},
             {"faults", faults}};

int main(int argc, char** argv) {
    if (argc > 2 && strcmp(argv[1], "--child") == 0) return child(argc, argv);
    for (size_t i = 0; argc > 1 && i < sizeof cases / sizeof *cases; i++) {
        if (strcmp(argv[1], cases[i].name)) continue;
        cases[i].run();
        return 0;
    }
    fprintf(stderr, "usage: processes CASE\n");
    return 2;
}
