// Quicksort of 4096 integers in an array on the stack.
#include "suite.h"

enum { COUNT = 4096 };

static void swap(int32_t* a, int32_t* b) {
    int32_t t = *a;
    *a = *b;
    *b = t;
}

static void sort(int32_t* values, int first, int last) {
    while (last - first > 12) {
        int middle = first + (last - first) / 2;
        if (values[middle] < values[first]) swap(&values[middle], &values[first]);
        if (values[last] < values[first]) swap(&values[last], &values[first]);
        if (values[last] < values[middle]) swap(&values[last], &values[middle]);
        int32_t pivot = values[middle];
        int i = first, k = last;
        while (i <= k) {
            while (values[i] < pivot) i++;
            while (values[k] > pivot) k--;
            if (i <= k) swap(&values[i++], &values[k--]);
        }
        if (k - first < last - i) {
            sort(values, first, k);
            first = i;
        } else {
            sort(values, i, last);
            last = k;
        }
    }
    for (int i = first + 1; i <= last; i++) {
        int32_t value = values[i];
        int k = i;
        for (; k > first && values[k - 1] > value; k--) values[k] = values[k - 1];
        values[k] = value;
    }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    int32_t values[COUNT];
    for (int i = 0; i < COUNT; i++) values[i] = (int32_t)next_random(&random);
    sort(values, 0, COUNT - 1);
    uint32_t sum = 0;
    for (int i = 0; i < COUNT; i++) {
        if (i > 0 && values[i - 1] > values[i]) return 0;
        if (i % 16 == 0) sum = mix(sum, (uint32_t)values[i]);
    }
    return sum;
}
