// The planets' orbits, f64: 5 bodies, 200 steps, and the energy after that.
#include <math.h>

#include "suite.h"

enum { BODIES = 5, STEPS = 200 };

typedef struct {
    double x, y, z, vx, vy, vz, mass;
} Body;

static void advance(Body* bodies, double dt) {
    for (int i = 0; i < BODIES; i++) {
        Body* a = &bodies[i];
        for (int k = i + 1; k < BODIES; k++) {
            Body* b = &bodies[k];
            double dx = a->x - b->x, dy = a->y - b->y, dz = a->z - b->z;
            double squared = dx * dx + dy * dy + dz * dz;
            double magnitude = dt / (squared * sqrt(squared));
            a->vx -= dx * b->mass * magnitude;
            a->vy -= dy * b->mass * magnitude;
            a->vz -= dz * b->mass * magnitude;
            b->vx += dx * a->mass * magnitude;
            b->vy += dy * a->mass * magnitude;
            b->vz += dz * a->mass * magnitude;
        }
    }
    for (int i = 0; i < BODIES; i++) {
        bodies[i].x += dt * bodies[i].vx;
        bodies[i].y += dt * bodies[i].vy;
        bodies[i].z += dt * bodies[i].vz;
    }
}

static double energy(const Body* bodies) {
    double e = 0;
    for (int i = 0; i < BODIES; i++) {
        const Body* a = &bodies[i];
        e += 0.5 * a->mass * (a->vx * a->vx + a->vy * a->vy + a->vz * a->vz);
        for (int k = i + 1; k < BODIES; k++) {
            double dx = a->x - bodies[k].x, dy = a->y - bodies[k].y, dz = a->z - bodies[k].z;
            e -= a->mass * bodies[k].mass / sqrt(dx * dx + dy * dy + dz * dz);
        }
    }
    return e;
}

static double uniform(uint32_t* random) {
    return (double)(next_random(random) % 20001) / 10000.0 - 1.0;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    Body bodies[BODIES];
    for (int i = 0; i < BODIES; i++) {
        Body* body = &bodies[i];
        body->x = 10.0 * i + uniform(&random);
        body->y = 10.0 * uniform(&random);
        body->z = uniform(&random);
        body->vx = uniform(&random);
        body->vy = uniform(&random);
        body->vz = uniform(&random) / 10.0;
        body->mass = i == 0 ? 39.47 : 0.03 + 0.01 * uniform(&random);
    }
    for (int i = 0; i < STEPS; i++) advance(bodies, 0.01);
    return mix_double(0, energy(bodies));
}
