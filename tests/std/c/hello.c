// The smallest program of a C library: what starting and ending a process costs.
#include <stdio.h>

int main(void) {
    puts("Hello, world!");
    return 0;
}
