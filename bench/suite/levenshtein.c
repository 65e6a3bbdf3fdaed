// The edit distance of two strings of about 200 letters, one of them a changed copy.
#include "suite.h"

enum { MOST = 256 };

static int distance(const char* a, int a_length, const char* b, int b_length) {
    uint16_t row[MOST + 1];
    for (int k = 0; k <= b_length; k++) row[k] = (uint16_t)k;
    for (int i = 1; i <= a_length; i++) {
        int diagonal = row[0];
        row[0] = (uint16_t)i;
        for (int k = 1; k <= b_length; k++) {
            int best = diagonal + (a[i - 1] != b[k - 1]);
            if (row[k] + 1 < best) best = row[k] + 1;
            if (row[k - 1] + 1 < best) best = row[k - 1] + 1;
            diagonal = row[k];
            row[k] = (uint16_t)best;
        }
    }
    return row[b_length];
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    char a[MOST], b[MOST];
    int a_length = 180 + (int)(next_random(&random) % 20), b_length = 0;
    for (int i = 0; i < a_length; i++) a[i] = (char)('a' + next_random(&random) % 26);
    for (int i = 0; i < a_length && b_length < MOST - 2; i++) {
        uint32_t change = next_random(&random) % 16;
        if (change == 0) continue;
        b[b_length++] = change == 1 ? (char)('a' + next_random(&random) % 26) : a[i];
        if (change == 2) b[b_length++] = '-';
    }
    return mix(mix(1, (uint32_t)distance(a, a_length, b, b_length)), instance);
}
