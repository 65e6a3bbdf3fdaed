// Conway's life on a torus of 64 × 64: no library and no imports, so that a function of it can be
// called by itself. Compiled with vector instructions.
#include <stdint.h>

enum { size = 64 };
static uint8_t cells[2][size][size];

static int neighbours(const uint8_t from[size][size], int x, int y) {
    int count = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) count += from[(y + dy) & (size - 1)][(x + dx) & (size - 1)];
    return count;
}

// Cells alive after so many generations of the r-pentomino.
__attribute__((export_name("alive"))) int alive(int generations) {
    static const int8_t start[5][2] = {{1, 0}, {2, 0}, {0, 1}, {1, 1}, {1, 2}};
    for (int i = 0; i < size; i++)
        for (int k = 0; k < size; k++) cells[0][i][k] = 0;
    for (int i = 0; i < 5; i++) cells[0][32 + start[i][1]][32 + start[i][0]] = 1;
    int now = 0;
    for (; generations > 0; generations--, now = !now)
        for (int y = 0; y < size; y++)
            for (int x = 0; x < size; x++) {
                int count = neighbours(cells[now], x, y);
                cells[!now][y][x] = count == 3 || (count == 2 && cells[now][y][x]);
            }
    int sum = 0;
    for (int i = 0; i < size; i++)
        for (int k = 0; k < size; k++) sum += cells[now][i][k];
    return sum;
}
