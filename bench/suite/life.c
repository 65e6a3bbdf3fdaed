// Conway's Game of Life on a torus of 32 x 32 cells, 16 generations.
#include "suite.h"

enum { SIDE = 32, GENERATIONS = 16 };

static void step(uint8_t from[SIDE][SIDE], uint8_t to[SIDE][SIDE]) {
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            int alive = 0;
            for (int dy = -1; dy <= 1; dy++)
                for (int dx = -1; dx <= 1; dx++)
                    if (dx || dy) alive += from[(y + dy + SIDE) % SIDE][(x + dx + SIDE) % SIDE];
            to[y][x] = alive == 3 || (alive == 2 && from[y][x]);
        }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    uint8_t cells[2][SIDE][SIDE];
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) cells[0][y][x] = next_random(&random) % 3 == 0;
    for (int i = 0; i < GENERATIONS; i++) step(cells[i % 2], cells[(i + 1) % 2]);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) sum = mix(sum, cells[GENERATIONS % 2][y][x]);
    return sum;
}
