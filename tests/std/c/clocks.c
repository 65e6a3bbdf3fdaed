// Clocks, calendars and sleeping. What a clock says is compared, never printed.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static double now(clockid_t clock) {
    struct timespec time = {0};
    if (clock_gettime(clock, &time) != 0) printf("clock_gettime failed\n");
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(void) {
    struct timespec resolution = {-1, -1};
    printf("resolution %d %d\n", clock_getres(CLOCK_MONOTONIC, &resolution),
           resolution.tv_sec == 0 && resolution.tv_nsec > 0);
    int back = 0;
    double last = now(CLOCK_MONOTONIC);
    for (int i = 0; i < 300; i++) {
        double next = now(CLOCK_MONOTONIC);
        back += next < last;
        last = next;
    }
    printf("steps back %d\n", back);
    struct timeval day;
    printf("gettimeofday %d\n", gettimeofday(&day, NULL));
    double real = now(CLOCK_REALTIME);
    printf("agree %d %d\n", real - (double)day.tv_sec < 60, real - (double)time(NULL) < 60);
    printf("this century %d\n", real > 1.5778e9 && real < 4.1e9);

    double start = now(CLOCK_MONOTONIC);
    struct timespec pause = {0, 20000000};
    printf("nanosleep %d %d\n", nanosleep(&pause, NULL), now(CLOCK_MONOTONIC) - start >= 0.02);
    start = now(CLOCK_MONOTONIC);
    printf("usleep %d %d\n", usleep(5000), now(CLOCK_MONOTONIC) - start >= 0.005);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += 10000000;
    if (until.tv_nsec >= 1000000000) until.tv_sec++, until.tv_nsec -= 1000000000;
    int result = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    printf("until %d %d\n", result,
           now(CLOCK_MONOTONIC) >= (double)until.tv_sec + (double)until.tv_nsec / 1e9 - 1e-6);

    time_t moments[] = {0, 951782400, 1709600461, 4102444799, -1};
    for (int i = 0; i < 5; i++) {
        struct tm parts;
        char text[64];
        gmtime_r(&moments[i], &parts);
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %a %b %j %U %p %%", &parts);
        puts(text);
    }
    struct tm date = {.tm_year = 124, .tm_mon = 13, .tm_mday = -3, .tm_hour = 25};
    printf("mktime %lld\n", (long long)timegm(&date));
    printf("%04d-%02d-%02d %d\n", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday, date.tm_wday);
    struct tm read = {0};
    printf("strptime %s\n",
           strptime("2024-02-29 13:14", "%Y-%m-%d %H:%M", &read) ? "all" : "failed");
    printf("%d %d %d\n", read.tm_year, read.tm_mon, read.tm_mday);
    printf("difftime %g\n", difftime(100, 58));
    return 0;
}
