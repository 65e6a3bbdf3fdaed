// Formats 400 numbers as decimal, hexadecimal and fixed-point text.
#include "suite.h"

static char* put_unsigned(char* to, uint64_t value, uint32_t base, int width, char fill) {
    char digits[24];
    int n = 0;
    do digits[n++] = "0123456789abcdef"[value % base];
    while (value /= base);
    while (width-- > n) *to++ = fill;
    while (n > 0) *to++ = digits[--n];
    return to;
}

static char* put_signed(char* to, int64_t value) {
    if (value < 0) *to++ = '-';
    return put_unsigned(to, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10, 1, ' ');
}

// With six digits behind the point, rounded.
static char* put_fixed(char* to, double value) {
    if (value < 0) {
        *to++ = '-';
        value = -value;
    }
    uint64_t scaled = (uint64_t)(value * 1e6 + 0.5);
    to = put_unsigned(to, scaled / 1000000, 10, 1, ' ');
    *to++ = '.';
    return put_unsigned(to, scaled % 1000000, 10, 6, '0');
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    char line[128];
    for (int i = 0; i < 100; i++) {
        uint32_t a = next_random(&random), b = next_random(&random);
        char* to = put_signed(line, (int32_t)a >> (i % 24));
        *to++ = ',';
        to = put_unsigned(to, (uint64_t)a << 32 | b, 10, 20, ' ');
        *to++ = ',';
        to = put_unsigned(to, b >> (i % 16), 16, 8, '0');
        *to++ = ',';
        to = put_fixed(to, (double)(int32_t)b / 997.0);
        *to++ = '\n';
        for (char* at = line; at < to; at++) sum = mix(sum, (uint8_t)*at);
    }
    return sum;
}
