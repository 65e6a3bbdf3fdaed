// Fibonacci numbers by recursion, of 17 to 20.
#include "suite.h"

static uint32_t fib(uint32_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

uint32_t run(uint32_t instance) { return mix(fib(17 + instance % 4), instance); }
