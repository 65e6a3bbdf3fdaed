// Blurs a picture of 48 x 48 bytes twice with a kernel of 5 x 5, rows first, then columns.
#include "suite.h"

enum { SIDE = 48 };

static int clamp(int at) { return at < 0 ? 0 : at >= SIDE ? SIDE - 1 : at; }

static void blur(const uint8_t* from, uint8_t* to, int across) {
    static const int weights[5] = {1, 4, 6, 4, 1};
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int sum = 8;
            for (int k = -2; k <= 2; k++)
                sum += weights[k + 2] *
                       (across ? from[y * SIDE + clamp(x + k)] : from[clamp(y + k) * SIDE + x]);
            to[y * SIDE + x] = (uint8_t)(sum >> 4);
        }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    uint8_t picture[SIDE * SIDE], other[SIDE * SIDE];
    for (int i = 0; i < SIDE * SIDE; i++) picture[i] = (uint8_t)(next_random(&random) >> 9);
    for (int pass = 0; pass < 2; pass++) {
        blur(picture, other, 1);
        blur(other, picture, 0);
    }
    for (int i = 0; i < SIDE * SIDE; i++) sum = mix(sum, picture[i]);
    return sum;
}
