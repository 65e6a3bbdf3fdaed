// Compresses 4 KiB of words with an LZ77 of bytes, expands it, and compares.
#include "suite.h"

enum { SIZE = 4096, HASHES = 1024, MIN_MATCH = 4, MAX_MATCH = 131, MAX_DISTANCE = 65535 };

static void make_text(uint8_t* text, uint32_t random) {
    uint8_t words[64][8];
    int lengths[64], at = 0;
    for (int i = 0; i < 64; i++) {
        lengths[i] = 2 + (int)(next_random(&random) % 6);
        for (int k = 0; k < lengths[i]; k++)
            words[i][k] = (uint8_t)('a' + next_random(&random) % 26);
        words[i][lengths[i]++] = ' ';
    }
    while (at < SIZE) {
        uint32_t word = next_random(&random) % 64 & next_random(&random);
        for (int k = 0; k < lengths[word] && at < SIZE; k++) text[at++] = words[word][k];
    }
}

static uint32_t hash(const uint8_t* at) {
    uint32_t word = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    return word * 2654435761u >> 22;
}

static int put_literals(const uint8_t* from, int count, uint8_t* to) {
    int size = 0;
    while (count > 0) {
        int part = count < 128 ? count : 128;
        to[size++] = (uint8_t)(part - 1);
        memcpy(to + size, from, (size_t)part);
        size += part, from += part, count -= part;
    }
    return size;
}

// A byte below 128 begins that many literals and one; another is a length, with a distance behind.
static int compress(const uint8_t* from, int size, uint8_t* to) {
    uint16_t last[HASHES];  // where a hash was seen, plus one
    memset(last, 0, sizeof last);
    int at = 0, literals = 0, out = 0;
    while (at + MIN_MATCH <= size) {
        uint32_t h = hash(from + at);
        int candidate = last[h] - 1;
        last[h] = (uint16_t)(at + 1);
        if (candidate < 0 || at - candidate > MAX_DISTANCE ||
            memcmp(from + candidate, from + at, MIN_MATCH) != 0) {
            at++;
            continue;
        }
        int length = MIN_MATCH;
        while (at + length < size && length < MAX_MATCH &&
               from[candidate + length] == from[at + length])
            length++;
        out += put_literals(from + literals, at - literals, to + out);
        to[out++] = (uint8_t)(128 + length - MIN_MATCH);
        to[out++] = (uint8_t)(at - candidate);
        to[out++] = (uint8_t)((at - candidate) >> 8);
        at += length;
        literals = at;
    }
    return out + put_literals(from + literals, size - literals, to + out);
}

static int expand(const uint8_t* from, int size, uint8_t* to) {
    int at = 0, out = 0;
    while (at < size) {
        int code = from[at++];
        if (code < 128) {
            memcpy(to + out, from + at, (size_t)code + 1);
            at += code + 1, out += code + 1;
        } else {
            int distance = from[at] | from[at + 1] << 8, length = code - 128 + MIN_MATCH;
            at += 2;
            for (int i = 0; i < length; i++, out++) to[out] = to[out - distance];
        }
    }
    return out;
}

uint32_t run(uint32_t instance) {
    uint32_t sum = 0;
    uint8_t* text = malloc(SIZE);
    uint8_t* packed = malloc(SIZE + SIZE / 64);
    uint8_t* back = malloc(SIZE);
    if (!text || !packed || !back) return 0;
    make_text(text, seed_of(instance));
    int size = compress(text, SIZE, packed);
    int same = expand(packed, size, back) == SIZE && memcmp(text, back, SIZE) == 0;
    for (int i = 0; i < size; i++) sum = mix(sum, packed[i]);
    free(text);
    free(packed);
    free(back);
    return same ? mix(sum, (uint32_t)size) : 0;
}
