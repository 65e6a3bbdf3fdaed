// Sun and giant planets under gravity: nbody [STEPS]
// Prints the system's energy before, after each tenth of the steps, and the places of the bodies
// at the end. Energy should stay put: what it drifts is the error of the integration. The elements
// are rounded, so the orbits are those of a system like ours.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Astronomical units, years and solar masses: the constant of gravitation is then 4 pi squared.
static const double pi = 3.141592653589793;

struct body {
    const char* name;
    double mass;
    double place[3], speed[3];
};

// A planet on a circle of the given radius, inclined, at an angle in degrees along it.
static struct body planet(const char* name, double mass, double radius, double incline, double at) {
    double angle = at * pi / 180, tilt = incline * pi / 180, speed = 2 * pi / sqrt(radius);
    struct body body = {name, mass, {0}, {0}};
    body.place[0] = radius * cos(angle);
    body.place[1] = radius * sin(angle) * cos(tilt);
    body.place[2] = radius * sin(angle) * sin(tilt);
    body.speed[0] = -speed * sin(angle);
    body.speed[1] = speed * cos(angle) * cos(tilt);
    body.speed[2] = speed * cos(angle) * sin(tilt);
    return body;
}

enum { count = 5 };
static struct body bodies[count];

static double square(double x) { return x * x; }

static double distance(const struct body* a, const struct body* b) {
    double sum = 0;
    for (int i = 0; i < 3; i++) sum += square(a->place[i] - b->place[i]);
    return sqrt(sum);
}

static double energy(void) {
    double sum = 0;
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < 3; k++) sum += bodies[i].mass * square(bodies[i].speed[k]) / 2;
        for (int j = i + 1; j < count; j++)
            sum -= 4 * pi * pi * bodies[i].mass * bodies[j].mass / distance(&bodies[i], &bodies[j]);
    }
    return sum;
}

static void accelerate(double time) {
    for (int i = 0; i < count; i++)
        for (int j = i + 1; j < count; j++) {
            struct body *a = &bodies[i], *b = &bodies[j];
            double d = distance(a, b), pull = 4 * pi * pi * time / (d * d * d);
            for (int k = 0; k < 3; k++) {
                double along = (b->place[k] - a->place[k]) * pull;
                a->speed[k] += along * b->mass;
                b->speed[k] -= along * a->mass;
            }
        }
}

// Half a kick, a drift, half a kick: leapfrog, which keeps energy bounded for ever.
static void step(double time) {
    accelerate(time / 2);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 3; k++) bodies[i].place[k] += bodies[i].speed[k] * time;
    accelerate(time / 2);
}

// Takes the drift of the whole out, so that the centre of mass rests.
static void rest(void) {
    for (int k = 0; k < 3; k++) {
        double momentum = 0, mass = 0;
        for (int i = 0; i < count; i++) {
            momentum += bodies[i].mass * bodies[i].speed[k];
            mass += bodies[i].mass;
        }
        for (int i = 0; i < count; i++) bodies[i].speed[k] -= momentum / mass;
    }
}

int main(int argc, char** argv) {
    long steps = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    if (steps < 0) {
        fprintf(stderr, "nbody: %s: want a number of steps\n", argv[1]);
        return 2;
    }
    bodies[0] = (struct body){"sun", 1, {0}, {0}};
    bodies[1] = planet("jupiter", 9.548e-4, 5.203, 1.30, 34.4);
    bodies[2] = planet("saturn", 2.859e-4, 9.537, 2.49, 50.1);
    bodies[3] = planet("uranus", 4.366e-5, 19.191, 0.77, 313.2);
    bodies[4] = planet("neptune", 5.151e-5, 30.069, 1.77, 304.9);
    rest();
    printf("%8d %.12f\n", 0, energy());
    for (long i = 1; i <= steps; i++) {
        step(0.01);
        if (steps < 10 || i % (steps / 10) == 0) printf("%8ld %.12f\n", i, energy());
    }
    for (int i = 0; i < count; i++)
        printf("%-8s %14.9f %14.9f %14.9f\n", bodies[i].name, bodies[i].place[0],
               bodies[i].place[1], bodies[i].place[2]);
    return 0;
}
