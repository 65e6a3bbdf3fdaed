// A queue of jobs: keeps processes going until all are done, and checks how each of them ended.
//   jobs [JOBS [AT_ONCE]]    20,000 jobs, 10,000 at once
//   jobs --job NUMBER        what the processes are started as
//
// A job waits for its standard input to end: a pipe that is closed when as many jobs run as may, so
// that so many do run at once. Then it ends with an exit code that the queue knows how to find out.
// Some jobs trap, and some would never end and are killed: these endings are told as well.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

// How a job ends; of 32 in a row one traps and one is killed.
static gpu_status expected(uint32_t number) {
    if (number % 32 == 7) return (gpu_status){GPU_TRAPPED, 0};
    if (number % 32 == 19) return (gpu_status){GPU_KILLED, GPU_SIGTERM};
    uint32_t steps = 0;
    for (uint64_t n = number + 1; n != 1; n = n % 2 ? 3 * n + 1 : n / 2) steps++;
    return (gpu_status){GPU_EXITED, steps % 100};
}

static int do_job(uint32_t number) {
    char c;
    while (read(0, &c, 1) > 0) {
    }
    const gpu_status status = expected(number);
    if (status.ending == GPU_TRAPPED) __builtin_trap();
    while (status.ending == GPU_KILLED) sleep(1000);
    return (int)status.code;
}

static void fail(const char* what, int error) {
    fprintf(stderr, "jobs: %s: %s\n", what, strerror(error));
    exit(2);
}

static uint32_t number_of(const char* text) {
    char* end;
    const unsigned long number = strtoul(text, &end, 10);
    if (*end || end == text || number > 100000000) {
        fprintf(stderr, "usage: jobs [JOBS [AT_ONCE]]\n");
        exit(2);
    }
    return (uint32_t)number;
}

// ---- the jobs that run -------------------------------------------------------------

struct job {
    uint32_t pid, number;
    uint32_t next;  // in its list: index + 1
};

static struct job* jobs;
static uint32_t *lists, list_count;  // by pid: index + 1 of the first
static uint32_t first_free;          // index + 1

static void make_table(uint32_t at_once) {
    for (list_count = 1; list_count < at_once;) list_count *= 2;
    jobs = calloc(at_once, sizeof *jobs);
    lists = calloc(list_count, sizeof *lists);
    if (!jobs || !lists) fail("table", ENOMEM);
    for (uint32_t i = 0; i < at_once; i++) jobs[i].next = i + 1 < at_once ? i + 2 : 0;
    first_free = 1;
}

static void remember(uint32_t pid, uint32_t number) {
    struct job* const job = &jobs[first_free - 1];
    uint32_t* const list = &lists[pid % list_count];
    const uint32_t index = first_free;
    first_free = job->next;
    *job = (struct job){pid, number, *list};
    *list = index;
}

static uint32_t forget(uint32_t pid) {
    for (uint32_t* at = &lists[pid % list_count]; *at; at = &jobs[*at - 1].next) {
        struct job* const job = &jobs[*at - 1];
        if (job->pid != pid) continue;
        const uint32_t index = *at;
        *at = job->next;
        job->next = first_free;
        first_free = index;
        return job->number;
    }
    fprintf(stderr, "jobs: process %u was not started\n", pid);
    exit(2);
}

// ---- the queue ---------------------------------------------------------------------

static uint32_t running, most_running, wrong;
static uint32_t endings[4];
static int gate[2];  // read, write; -1: open for all

static void open_gate(void) {
    if (gate[1] >= 0) close(gate[1]);
    gate[1] = -1;
}

// 0, or the error of spawn.
static int start(uint32_t number) {
    char text[12];
    snprintf(text, sizeof text, "%u", number);
    const char* const argv[] = {"jobs", "--job", text, NULL};
    const gpu_fd fds[] = {{0, (uint32_t)gate[0]}, {1, 1}, {2, 2}};
    uint32_t pid;
    int error = gpu_spawnve("jobs", argv, NULL, fds, 3, &pid);
    if (error) return error;
    remember(pid, number);
    if (++running > most_running) most_running = running;
    if (expected(number).ending == GPU_KILLED) {
        error = gpu_kill(pid, GPU_SIGTERM);
        if (error) fail("kill", error);
    }
    return 0;
}

static void finish_one(void) {
    uint32_t pid;
    gpu_status status;
    const int error = gpu_wait(GPU_ANY_CHILD, 0, &pid, &status);
    if (error) fail("wait", error);
    running--;
    const uint32_t number = forget(pid);
    const gpu_status want = expected(number);
    if (status.ending <= GPU_OUT_OF_FUEL) endings[status.ending]++;
    // Which number a trap has is not the job's affair.
    if (status.ending == want.ending && (status.code == want.code || want.ending == GPU_TRAPPED))
        return;
    wrong++;
    printf("job %u: ending %u, code %u; expected %u, %u\n", number, status.ending, status.code,
           want.ending, want.code);
}

int main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[1], "--job") == 0) return do_job(number_of(argv[2]));
    const uint32_t count = number_of(argc > 1 ? argv[1] : "20000");
    const uint32_t at_once = number_of(argc > 2 ? argv[2] : "10000");
    if (argc > 3 || at_once == 0) number_of("");
    make_table(at_once);
    int error = gpu_pipe(&gate[0], &gate[1]);
    if (error) fail("pipe", error);
    for (uint32_t number = 0; number < count;) {
        if (running == at_once) {
            open_gate();
            finish_one();
            continue;
        }
        error = start(number);
        if (error == 0) {
            number++;
        } else if ((error == EAGAIN || error == ENOMEM) && running > 0) {
            // The machine is full: fewer at once, then.
            open_gate();
            finish_one();
        } else {
            fail("spawn", error);
        }
    }
    open_gate();
    while (running > 0) finish_one();
    printf("%u jobs, %u at once\n", count, most_running);
    printf("%u exited, %u trapped, %u killed; %u not as they should\n", endings[GPU_EXITED],
           endings[GPU_TRAPPED], endings[GPU_KILLED], wrong);
    return wrong ? 1 : 0;
}
