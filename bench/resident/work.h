// What guests of this folder compute and write, in C and C++: the host knows their answers by it.
#ifndef WORK_H
#define WORK_H

#include <stdint.h>

static inline uint32_t work_random(uint32_t* state) {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

// An exit code. The seed is not 0.
static inline uint32_t work_compute(uint32_t seed, uint32_t rounds) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < rounds; i++) sum += work_random(&seed);
    return sum & 127;
}

// The next byte of output.
static inline uint8_t work_byte(uint32_t* state) {
    return (uint8_t)(' ' + work_random(state) % 64);
}

#endif
