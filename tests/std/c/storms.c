// More processes, kills and pipes at once than a machine likes.
//   storms CASE [NUMBER]     one of the cases below
//   storms --child ...       what they start
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

static const char* const self = "c_storms";

static void must(const char* what, int error) {
    if (error == 0) return;
    printf("%s: %s\n", what, strerror(error));
    exit(1);
}

static int start(const char* what, const char* with, const gpu_fd* fds, uint32_t count,
                 uint32_t* pid) {
    const char* const argv[] = {self, "--child", what, with, NULL};
    return gpu_spawnve(self, argv, NULL, fds, count, pid);
}

static gpu_status end_of(uint32_t pid) {
    gpu_status status;
    must("wait", gpu_waitpid(pid, &status));
    return status;
}

static void make_pipe(int ends[2]) { must("pipe", gpu_pipe(&ends[0], &ends[1])); }

// Processes that stay, until there can be no more: then why.
static int start_all(uint32_t* pids, uint32_t most, uint32_t* count) {
    int error = 0;
    for (*count = 0; *count < most; (*count)++)
        if ((error = start("forever", "", NULL, 0, &pids[*count])) != 0) break;
    if (error != EAGAIN && error != ENOMEM) must("the last", error ? error : EINVAL);
    return error;
}

// Kills all and waits for them. False: not all of them were killed.
static int kill_all(const uint32_t* pids, uint32_t count) {
    uint32_t killed = 0;
    for (uint32_t i = 0; i < count; i++) must("kill", gpu_kill(pids[i], GPU_SIGKILL));
    for (uint32_t i = 0; i < count; i++) {
        const gpu_status status = end_of(pids[i]);
        killed += status.ending == GPU_KILLED && status.code == GPU_SIGKILL;
    }
    return killed == count;
}

// Starts as many as there can be when nobody writes 0 any more, tells how many by 1, and ends them
// when nobody writes 2.
static int spawner(uint32_t most) {
    uint32_t* const pids = malloc(most * sizeof *pids);
    if (!pids) return 1;
    uint32_t count;
    char byte;
    if (read(0, &byte, 1) != 0) return 1;
    start_all(pids, most, &count);
    if (write(1, &count, sizeof count) != sizeof count) return 2;
    if (read(2, &byte, 1) != 0) return 3;
    return kill_all(pids, count) ? 0 : 4;
}

static int child(int argc, char** argv) {
    static char bytes[8192];
    const char* const what = argv[2];
    const int number = argc > 3 ? atoi(argv[3]) : 0;
    if (strcmp(what, "forever") == 0) {
        for (;;) sleep(1000);
    }
    if (strcmp(what, "spawner") == 0) return spawner((uint32_t)number);
    if (strcmp(what, "fill") == 0) {  // 1 with zeros, until nobody reads any more
        while (write(1, bytes, sizeof bytes) > 0) {
        }
        return 7;
    }
    if (strcmp(what, "breed") == 0) {  // two such, over and over, until nobody reads what is 1
        const gpu_fd pipe = {1, 1};
        char text[12];
        snprintf(text, sizeof text, "%d", number - 1);
        while (write(1, ".", 1) == 1) {
            uint32_t pid;
            gpu_status status;
            for (int i = 0; i < 2 && number > 0; i++) start("breed", text, &pipe, 1, &pid);
            if (number == 0) usleep(200);
            if (number > 0) gpu_wait(GPU_ANY_CHILD, 0, &pid, &status);
        }
        return 7;
    }
    return 99;
}

// ---- cases -------------------------------------------------------------------------

// Processes until there can be no more, twice: it is as many again. Several start them, each until
// it gets no more, and then one what the others kept from each other; each kills its own.
static void full(uint32_t most) {
    enum { spawners = 32 };
    char text[12];
    snprintf(text, sizeof text, "%u", most);
    uint32_t* const pids = malloc(most * sizeof *pids);
    if (!pids) must("table", ENOMEM);
    uint32_t before = 0;
    for (int turn = 0; turn < 2; turn++) {
        int begin[2], told[2], end[2];
        make_pipe(begin);
        make_pipe(told);
        make_pipe(end);
        const gpu_fd fds[] = {
            {0, (uint32_t)begin[0]}, {1, (uint32_t)told[1]}, {2, (uint32_t)end[0]}};
        uint32_t spawner[spawners], count = spawners;
        for (int i = 0; i < spawners; i++)
            must("spawner", start("spawner", text, fds, 3, &spawner[i]));
        close(begin[0]);
        close(told[1]);
        close(end[0]);
        close(begin[1]);
        for (int i = 0; i < spawners; i++) {
            uint32_t started;
            if (read(told[0], &started, sizeof started) != sizeof started) must("read", EPIPE);
            count += started;
        }
        uint32_t left = 0;
        const int error = start_all(pids, most, &left);
        count += left;
        uint32_t pid;
        if (start("forever", "", NULL, 0, &pid) != error) printf("another error the next time\n");
        close(end[1]);
        if (!kill_all(pids, left)) printf("not all were killed\n");
        for (int i = 0; i < spawners; i++) {
            const gpu_status status = end_of(spawner[i]);
            if (status.ending != GPU_EXITED || status.code != 0)
                printf("a spawner ended %u with %u\n", status.ending, status.code);
        }
        close(told[0]);
        printf("%s\n", count > 100 ? "many" : "few");
        if (turn > 0 && count != before) printf("%u, and %u the time before\n", count, before);
        before = count;
    }
    gpu_status status;
    uint32_t pid;
    printf("wait: %s\n", gpu_wait(GPU_ANY_CHILD, 0, &pid, &status) == ECHILD ? "ECHILD" : "?");
}

// Families that grow while their first is killed. Who is left has no parent and goes when nobody
// reads its pipe any more; gpu-run ends when all have gone.
static void families(uint32_t count) {
    uint32_t killed = 0;
    for (uint32_t i = 0; i < count; i++) {
        int ends[2];
        make_pipe(ends);
        const gpu_fd output = {1, (uint32_t)ends[1]};
        uint32_t pid;
        must("spawn", start("breed", "4", &output, 1, &pid));
        close(ends[1]);
        usleep(i % 16 * 50);
        must("kill", gpu_kill(pid, GPU_SIGKILL));
        killed += end_of(pid).ending == GPU_KILLED;
        close(ends[0]);
    }
    printf("%u families, %u of their first killed\n", count, killed);
}

// Pipes that are all full. Half of their writers are killed, the others go when nobody reads.
static void pipes(uint32_t count) {
    int (*const ends)[2] = calloc(count, sizeof *ends);
    uint32_t* const pids = calloc(count, sizeof *pids);
    if (!ends || !pids) must("table", ENOMEM);
    for (uint32_t i = 0; i < count; i++) {
        make_pipe(ends[i]);
        const gpu_fd output = {1, (uint32_t)ends[i][1]};
        must("spawn", start("fill", "", &output, 1, &pids[i]));
        close(ends[i][1]);
    }
    static char bytes[65536];
    uint32_t killed = 0, broken = 0;
    for (uint32_t i = 0; i < count; i++) {
        // Full: what it holds can be read at once, and then more comes.
        for (size_t size = 0; size < 100000;) {
            const ssize_t n = read(ends[i][0], bytes, sizeof bytes);
            if (n <= 0) must("read", n ? errno : EPIPE);
            size += (size_t)n;
        }
    }
    for (uint32_t i = 0; i < count; i += 2) must("kill", gpu_kill(pids[i], GPU_SIGTERM));
    for (uint32_t i = 1; i < count; i += 2) close(ends[i][0]);
    for (uint32_t i = 0; i < count; i++) {
        const gpu_status status = end_of(pids[i]);
        killed += status.ending == GPU_KILLED;
        broken += status.ending == GPU_EXITED && status.code == 7;
    }
    // What the killed wrote is still there, then comes the end.
    uint32_t ended = 0;
    for (uint32_t i = 0; i < count; i += 2) {
        ssize_t n;
        while ((n = read(ends[i][0], bytes, sizeof bytes)) > 0) {
        }
        ended += n == 0;
        close(ends[i][0]);
    }
    printf("%u killed, %u saw that nobody reads, %u ends\n", killed, broken, ended);
}

// All descriptors there can be.
static void descriptors(uint32_t most) {
    for (int turn = 0; turn < 2; turn++) {
        uint32_t count = 0;
        int ends[2], error = 0, last = 0;
        while (count < most && (error = gpu_pipe(&ends[0], &ends[1])) == 0) count++, last = ends[1];
        printf("%s: %s\n", count > 100 ? "many" : "few",
               error == EMFILE ? "EMFILE" : strerror(error));
        for (int fd = last; fd > 3; fd--) close(fd);
    }
}

int main(int argc, char** argv) {
    if (argc > 2 && strcmp(argv[1], "--child") == 0) return child(argc, argv);
    const char* const what = argc > 1 ? argv[1] : "";
    const uint32_t number = argc > 2 ? (uint32_t)atol(argv[2]) : 100;
    if (strcmp(what, "full") == 0) full(number);
    if (strcmp(what, "families") == 0) families(number);
    if (strcmp(what, "pipes") == 0) pipes(number);
    if (strcmp(what, "descriptors") == 0) descriptors(number);
    return 0;
}
