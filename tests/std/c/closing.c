// A pipe's descriptor that one thread closes while another waits there: it waits no longer.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

static int pipe_ends[2];

static pthread_t start_thread(void* (*run)(void*), intptr_t argument) {
    pthread_t thread;
    const int error = pthread_create(&thread, NULL, run, (void*)argument);
    if (error) {
        printf("pthread_create: %s\n", strerror(error));
        exit(1);
    }
    return thread;
}

static intptr_t join(pthread_t thread) {
    void* result;
    pthread_join(thread, &result);
    return (intptr_t)result;
}

static void make_pipe(void) {
    const int error = gpu_pipe(&pipe_ends[0], &pipe_ends[1]);
    if (error) printf("pipe: %s\n", strerror(error));
}

static void* read_byte(void* argument) {
    char byte;
    return (void*)(intptr_t)(read((int)(intptr_t)argument, &byte, 1) == -1 ? errno : 0);
}

static void* fill_pipe(void* argument) {
    static char bytes[4096];
    for (;;)
        if (write((int)(intptr_t)argument, bytes, sizeof bytes) == -1)
            return (void*)(intptr_t)errno;
}

static void* poll_pipes(void* argument) {
    const int* const fds = argument;
    struct pollfd list[] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    if (poll(list, 2, -1) != 1) return (void*)99;
    return (void*)(intptr_t)(list[0].revents | list[1].revents << 8);
}

static const char* closed_under(void* (*run)(void*), int number) {
    make_pipe();
    const pthread_t thread = start_thread(run, pipe_ends[number]);
    usleep(20000);
    close(pipe_ends[number]);
    const intptr_t error = join(thread);
    close(pipe_ends[!number]);
    return error == EBADF ? "EBADF" : error ? strerror((int)error) : "nothing";
}

int main(void) {
    printf("read: %s\n", closed_under(read_byte, 0));
    printf("write: %s\n", closed_under(fill_pipe, 1));
    make_pipe();
    int polled[2] = {pipe_ends[0], 0};
    const int writer = pipe_ends[1];
    make_pipe();
    polled[1] = pipe_ends[0];
    const pthread_t poller = start_thread(poll_pipes, (intptr_t)polled);
    usleep(20000);
    close(polled[1]);
    printf("poll: %s\n", join(poller) == POLLNVAL << 8 ? "POLLNVAL" : "something else");
    close(polled[0]);
    close(pipe_ends[1]);
    close(writer);
    // Whether it waits already or is about to.
    int wrong = 0;
    for (int i = 0; i < 300; i++) {
        make_pipe();
        const pthread_t thread = start_thread(read_byte, pipe_ends[0]);
        for (volatile int k = 0; k < i % 30 * 20; k++) {
        }
        close(pipe_ends[0]);
        wrong += join(thread) != EBADF;
        close(pipe_ends[1]);
    }
    printf("at any time: %d wrong\n", wrong);
    return 0;
}
