// What jobs call of <string.h>, for a GPU, where there is no C library.
#pragma once

#include <stddef.h>

#define memcpy(to, from, size) __builtin_memcpy(to, from, size)
#define memset(to, value, size) __builtin_memset(to, value, size)

static inline int memcmp(const void* a, const void* b, size_t size) {
    const unsigned char *p = (const unsigned char*)a, *q = (const unsigned char*)b;
    for (size_t i = 0; i < size; i++)
        if (p[i] != q[i]) return p[i] - q[i];
    return 0;
}

static inline size_t strlen(const char* text) {
    size_t length = 0;
    while (text[length]) length++;
    return length;
}

static inline int strcmp(const char* a, const char* b) {
    while (*a && *a == *b) a++, b++;
    return (unsigned char)*a - (unsigned char)*b;
}
