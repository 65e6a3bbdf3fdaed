// Base64 of 3000 bytes, there and back.
#include "suite.h"

enum { SIZE = 3000, TEXT = SIZE / 3 * 4 };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(const uint8_t* from, int size, char* to) {
    for (int i = 0; i < size; i += 3) {
        uint32_t word = (uint32_t)from[i] << 16 | (uint32_t)from[i + 1] << 8 | from[i + 2];
        for (int k = 18; k >= 0; k -= 6) *to++ = letters[word >> k & 63];
    }
}

static int decode(const char* from, int size, uint8_t* to, const int8_t* values) {
    for (int i = 0; i < size; i += 4) {
        uint32_t word = 0;
        for (int k = 0; k < 4; k++) {
            int value = values[(uint8_t)from[i + k]];
            if (value < 0) return 0;
            word = word << 6 | (uint32_t)value;
        }
        *to++ = (uint8_t)(word >> 16);
        *to++ = (uint8_t)(word >> 8);
        *to++ = (uint8_t)word;
    }
    return 1;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    uint8_t data[SIZE], back[SIZE];
    char text[TEXT];
    int8_t values[256];
    for (int i = 0; i < SIZE; i++) data[i] = (uint8_t)(next_random(&random) >> 11);
    memset(values, -1, sizeof values);
    for (int i = 0; i < 64; i++) values[(uint8_t)letters[i]] = (int8_t)i;
    encode(data, SIZE, text);
    if (!decode(text, TEXT, back, values) || memcmp(data, back, SIZE) != 0) return 0;
    for (int i = 0; i < TEXT; i++) sum = mix(sum, (uint8_t)text[i]);
    return sum;
}
