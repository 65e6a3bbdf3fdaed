// What every job of the suite includes: its one entry, and how inputs and checksums are made. A job
// is ordinary C without global variables that change: it is compiled for wasm, for the host and for
// GPUs, where many threads run it in one address space.
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Makes the input of an instance from its number, does the job, returns a checksum of the result.
uint32_t run(uint32_t instance);

// The first state of an instance's random numbers. Never 0.
static inline uint32_t seed_of(uint32_t instance) {
    uint32_t x = instance + 0x9e3779b9u;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return (x ^ (x >> 16)) | 1;
}

// Returns the next random number (xorshift).
static inline uint32_t next_random(uint32_t* state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

// Adds a value to a checksum.
static inline uint32_t mix(uint32_t sum, uint32_t value) {
    sum = (sum ^ value) * 0x01000193u;
    return sum ^ (sum >> 15);
}

// Adds the bits of a number to a checksum.
static inline uint32_t mix_double(uint32_t sum, double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return mix(mix(sum, (uint32_t)bits), (uint32_t)(bits >> 32));
}
