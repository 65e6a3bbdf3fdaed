// The product of two f32 matrices, 64 x 64.
#include "suite.h"

enum { N = 64 };

static void multiply(const float* a, const float* b, float* c) {
    for (int i = 0; i < N; i++)
        for (int k = 0; k < N; k++) {
            float sum = 0;
            for (int j = 0; j < N; j++) sum += a[i * N + j] * b[j * N + k];
            c[i * N + k] = sum;
        }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    float* a = malloc(N * N * sizeof(float));
    float* b = malloc(N * N * sizeof(float));
    float* c = malloc(N * N * sizeof(float));
    if (!a || !b || !c) return 0;
    for (int i = 0; i < N * N; i++) {
        a[i] = (float)(next_random(&random) % 2000) / 1000.0f - 1.0f;
        b[i] = (float)(next_random(&random) % 2000) / 1000.0f - 1.0f;
    }
    multiply(a, b, c);
    uint32_t sum = 0;
    for (int i = 0; i < N * N; i++) {
        uint32_t bits;
        memcpy(&bits, &c[i], sizeof bits);
        sum = mix(sum, bits);
    }
    free(a);
    free(b);
    free(c);
    return sum;
}
