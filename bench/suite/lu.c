// Solves 24 linear equations by LU decomposition with pivoting, f64.
#include <math.h>

#include "suite.h"

enum { N = 24 };

static int decompose(double a[N][N], int* order) {
    for (int i = 0; i < N; i++) order[i] = i;
    for (int k = 0; k < N; k++) {
        int pivot = k;
        for (int i = k + 1; i < N; i++)
            if (fabs(a[i][k]) > fabs(a[pivot][k])) pivot = i;
        if (a[pivot][k] == 0) return 0;
        if (pivot != k) {
            for (int j = 0; j < N; j++) {
                double t = a[k][j];
                a[k][j] = a[pivot][j];
                a[pivot][j] = t;
            }
            int t = order[k];
            order[k] = order[pivot];
            order[pivot] = t;
        }
        for (int i = k + 1; i < N; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < N; j++) a[i][j] -= a[i][k] * a[k][j];
        }
    }
    return 1;
}

static void solve(double a[N][N], const int* order, const double* b, double* x) {
    for (int i = 0; i < N; i++) {
        x[i] = b[order[i]];
        for (int j = 0; j < i; j++) x[i] -= a[i][j] * x[j];
    }
    for (int i = N - 1; i >= 0; i--) {
        for (int j = i + 1; j < N; j++) x[i] -= a[i][j] * x[j];
        x[i] /= a[i][i];
    }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    double a[N][N], b[N], x[N];
    int order[N];
    for (int i = 0; i < N; i++) {
        b[i] = (double)(next_random(&random) % 1000) / 100.0;
        for (int j = 0; j < N; j++) a[i][j] = (double)(next_random(&random) % 2001) / 1000.0 - 1.0;
    }
    if (!decompose(a, order)) return 0;
    solve(a, order, b, x);
    for (int i = 0; i < N; i++) sum = mix_double(sum, x[i]);
    return sum;
}
