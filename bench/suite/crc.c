// CRC-32 by a table and Adler-32 of 8 KiB of text.
#include "suite.h"

enum { SIZE = 8192 };

static uint32_t crc32(const uint32_t* table, const uint8_t* data, int size) {
    uint32_t crc = 0xffffffffu;
    for (int i = 0; i < size; i++) crc = table[(crc ^ data[i]) & 255] ^ crc >> 8;
    return ~crc;
}

static uint32_t adler32(const uint8_t* data, int size) {
    uint32_t a = 1, b = 0;
    for (int i = 0; i < size; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    uint32_t table[256];
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int k = 0; k < 8; k++) value = value & 1 ? 0xedb88320u ^ value >> 1 : value >> 1;
        table[i] = value;
    }
    uint8_t* text = malloc(SIZE);
    if (!text) return 0;
    for (int i = 0; i < SIZE; i++) text[i] = "etaoin shrdlu.\n,"[next_random(&random) >> 28];
    uint32_t sum = mix(crc32(table, text, SIZE), adler32(text, SIZE));
    free(text);
    return sum;
}
