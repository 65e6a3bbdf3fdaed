// Processes that end differently, by number: mixed NUMBER [LOOPER]. Every tenth traps, every
// seventh of the others exits with 3, LOOPER never ends, the rest count to their number and exit
// with 0.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
    long number = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    long looper = argc > 2 ? strtol(argv[2], NULL, 10) : -1;
    printf("process %ld begins\n", number);
    fflush(stdout);
    volatile long sum = 0;
    // `sum` is volatile: a loop without effects could be taken out.
    while (number == looper) sum++;
    if (number % 10 == 0) __builtin_trap();
    if (number % 7 == 0) exit(3);
    for (long i = 1; i <= number; i++) sum += i;
    printf("process %ld ends with %ld\n", number, sum);
    return 0;
}
