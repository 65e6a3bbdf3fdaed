// Splits a text into words, sorts them by merging, and counts how often each occurs.
#include "suite.h"

enum { TEXT = 2048, WORDS = 512 };

static void merge_sort(char** words, char** other, int count) {
    if (count < 2) return;
    int half = count / 2, i = 0, k = half, to = 0;
    merge_sort(words, other, half);
    merge_sort(words + half, other, count - half);
    while (i < half && k < count)
        other[to++] = strcmp(words[k], words[i]) < 0 ? words[k++] : words[i++];
    while (i < half) other[to++] = words[i++];
    while (k < count) other[to++] = words[k++];
    memcpy(words, other, (size_t)count * sizeof *words);
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    char text[TEXT];
    char *words[WORDS], *other[WORDS];
    for (int i = 0; i < TEXT - 1; i++) text[i] = "abcdea bc ed  ab"[next_random(&random) >> 28];
    text[TEXT - 1] = 0;
    int count = 0;
    for (char* at = text; *at && count < WORDS;) {
        while (*at == ' ') at++;
        if (!*at) break;
        size_t length = 0;
        while (at[length] && at[length] != ' ') length++;
        char* word = malloc(length + 1);
        if (!word) return 0;
        memcpy(word, at, length);
        word[length] = 0;
        words[count++] = word;
        at += length;
    }
    merge_sort(words, other, count);
    for (int i = 0; i < count;) {
        int times = 1;
        while (i + times < count && strcmp(words[i], words[i + times]) == 0) times++;
        for (char* at = words[i]; *at; at++) sum = mix(sum, (uint8_t)*at);
        sum = mix(sum, (uint32_t)times);
        i += times;
    }
    for (int i = 0; i < count; i++) free(words[i]);
    return sum;
}
