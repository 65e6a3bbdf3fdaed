// A fast Fourier transform of 256 complex numbers, f64, there and back.
#include "suite.h"

enum { COUNT = 256 };

typedef struct {
    double re, im;
} Complex;

static Complex multiply(Complex a, Complex b) {
    return (Complex){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Returns the sine for -pi/2 to pi/2, by its series.
static double sine(double x) {
    double term = x, sum = x;
    for (int k = 1; k < 10; k++) {
        term = -term * x * x / ((2 * k) * (2 * k + 1));
        sum += term;
    }
    return sum;
}

static void transform(Complex* values, const Complex* roots, int inverse) {
    for (int i = 1, k = 0; i < COUNT; i++) {
        int bit = COUNT >> 1;
        for (; k & bit; bit >>= 1) k ^= bit;
        k ^= bit;
        if (i < k) {
            Complex t = values[i];
            values[i] = values[k];
            values[k] = t;
        }
    }
    for (int size = 2; size <= COUNT; size *= 2)
        for (int first = 0; first < COUNT; first += size)
            for (int i = 0; i < size / 2; i++) {
                Complex root = roots[i * (COUNT / size)];
                if (inverse) root.im = -root.im;
                Complex a = values[first + i];
                Complex b = multiply(values[first + i + size / 2], root);
                values[first + i] = (Complex){a.re + b.re, a.im + b.im};
                values[first + i + size / 2] = (Complex){a.re - b.re, a.im - b.im};
            }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    Complex values[COUNT], roots[COUNT / 2];
    const double half_pi = 1.5707963267948966;
    for (int i = 0; i < COUNT / 2; i++) {
        double angle = 4 * half_pi * i / COUNT;  // 0 to pi
        roots[i] =
            (Complex){sine(half_pi - angle), -sine(angle <= half_pi ? angle : 2 * half_pi - angle)};
    }
    for (int i = 0; i < COUNT; i++)
        values[i] = (Complex){(double)(next_random(&random) % 1000) / 500.0 - 1.0, 0};
    transform(values, roots, 0);
    for (int i = 0; i < COUNT; i += 8) sum = mix_double(sum, values[i].re + values[i].im);
    for (int i = COUNT / 8; i < COUNT - COUNT / 8; i++) values[i] = (Complex){0, 0};
    transform(values, roots, 1);
    for (int i = 0; i < COUNT; i += 8) sum = mix_double(sum, values[i].re);
    return sum;
}
