// The Mandelbrot set, f64: 24 x 24 points of a window of its own, 256 iterations at most.
#include "suite.h"

enum { SIDE = 24, LIMIT = 256 };

static int iterations(double cx, double cy) {
    double x = 0, y = 0;
    int n = 0;
    while (n < LIMIT) {
        double xx = x * x, yy = y * y;
        if (xx + yy > 4.0) break;
        y = 2.0 * x * y + cy;
        x = xx - yy + cx;
        n++;
    }
    return n;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    double left = -2.0 + (double)(next_random(&random) % 2048) / 1024.0;
    double top = -1.0 + (double)(next_random(&random) % 1024) / 1024.0;
    uint32_t sum = 0;
    for (int row = 0; row < SIDE; row++)
        for (int column = 0; column < SIDE; column++)
            sum = mix(sum, (uint32_t)iterations(left + column / 48.0, top + row / 48.0));
    return sum;
}
