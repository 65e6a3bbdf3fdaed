// Monte Carlo with PCG: the area of a circle, and random walks until they leave an interval.
#include "suite.h"

typedef struct {
    uint64_t state, increment;
} Pcg;

static uint32_t pcg_next(Pcg* pcg) {
    uint64_t old = pcg->state;
    pcg->state = old * 6364136223846793005ull + pcg->increment;
    uint32_t shifted = (uint32_t)((old >> 18 ^ old) >> 27), turn = (uint32_t)(old >> 59);
    return shifted >> turn | shifted << (-turn & 31);
}

static double pcg_uniform(Pcg* pcg) { return pcg_next(pcg) * (1.0 / 4294967296.0); }

uint32_t run(uint32_t instance) {
    Pcg pcg = {seed_of(instance), (uint64_t)instance << 1 | 1};
    uint32_t inside = 0, steps = 0;
    for (int i = 0; i < 4000; i++) {
        double x = pcg_uniform(&pcg), y = pcg_uniform(&pcg);
        inside += x * x + y * y < 1.0;
    }
    for (int i = 0; i < 20; i++) {
        double at = 0;
        while (at > -4.0 && at < 4.0) {
            at += pcg_uniform(&pcg) - 0.5;
            steps++;
        }
    }
    return mix(inside, steps);
}
