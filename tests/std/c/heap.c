// malloc under stress: sizes from 1 byte to megabytes, freed in all orders, contents checked;
// then qsort, bsearch and random bytes.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint32_t state = 12345;
static uint32_t noise(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

struct block {
    unsigned char* at;
    size_t size;
    unsigned char mark;
};

static int intact(struct block block) {
    for (size_t i = 0; i < block.size; i++)
        if (block.at[i] != (unsigned char)(block.mark + i)) return 0;
    return 1;
}

static void paint(struct block* block, size_t from) {
    for (size_t i = from; i < block->size; i++) block->at[i] = (unsigned char)(block->mark + i);
}

static void stress(void) {
    enum { count = 300, turns = 12000 };
    static struct block blocks[count];
    int allocated = 0, freed = 0, resized = 0, broken = 0, misaligned = 0;
    for (int turn = 0; turn < turns; turn++) {
        struct block* block = &blocks[noise() % count];
        size_t size = 1 + noise() % (turn % 100 == 0 ? 50000 : turn % 10 == 0 ? 3000 : 100);
        if (!block->at) {
            block->at = turn % 2 ? malloc(size) : calloc(1, size);
            if (!block->at) {
                printf("out of memory at %d\n", turn);
                exit(1);
            }
            misaligned += (uintptr_t)block->at % 8 != 0;
            block->size = size;
            block->mark = (unsigned char)turn;
            paint(block, 0);
            allocated++;
        } else if (turn % 3 == 0) {
            broken += !intact(*block);
            block->at = realloc(block->at, size);
            size_t kept = size < block->size ? size : block->size;
            block->size = kept;
            broken += !intact(*block);
            block->size = size;
            paint(block, kept);
            resized++;
        } else {
            broken += !intact(*block);
            free(block->at);
            block->at = NULL;
            freed++;
        }
    }
    size_t left = 0;
    for (int i = 0; i < count; i++) {
        if (!blocks[i].at) continue;
        broken += !intact(blocks[i]);
        left += blocks[i].size;
        free(blocks[i].at);
    }
    printf("%d allocated, %d freed, %d resized, %zu bytes left, %d broken, %d misaligned\n",
           allocated, freed, resized, left, broken, misaligned);
}

static void large(void) {
    size_t size = 8 << 20;
    unsigned char* at = calloc(size, 1);
    size_t sum = 0;
    for (size_t i = 0; at && i < size; i += 4096) sum += at[i];
    printf("8 MiB %s, sum %zu\n", at ? "given" : "refused", sum);
    free(at);
    void* aligned = aligned_alloc(256, 512);
    void* other = NULL;
    printf("aligned %d %d\n", (int)((uintptr_t)aligned % 256),
           posix_memalign(&other, 4096, 100) + (int)((uintptr_t)other % 4096));
    free(aligned);
    free(other);
    volatile size_t impossible = SIZE_MAX / 2;
    printf("impossible %s\n", malloc(impossible) ? "given" : "refused");
    printf("overflow %s\n", calloc(impossible, 4) ? "given" : "refused");
    free(NULL);
    // Freed memory is used again: this does not need 4 GB.
    for (int i = 0; i < 1000; i++) {
        char* piece = malloc(4 << 20);
        if (!piece) {
            printf("lost memory by %d\n", i);
            return;
        }
        piece[i] = 1;
        free(piece);
    }
    printf("used again\n");
}

static int by_number(const void* a, const void* b) {
    uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return (x > y) - (x < y);
}

static int by_length(const void* a, const void* b) {
    const char *x = *(char* const*)a, *y = *(char* const*)b;
    size_t m = strlen(x), n = strlen(y);
    return m != n ? (m > n) - (m < n) : strcmp(x, y);
}

static void sorting(void) {
    enum { count = 5000 };
    static uint32_t numbers[count];
    uint64_t before = 0, after = 0;
    for (int i = 0; i < count; i++) before += numbers[i] = noise();
    qsort(numbers, count, sizeof numbers[0], by_number);
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        after += numbers[i];
        wrong += i > 0 && numbers[i - 1] > numbers[i];
    }
    printf("sorted, %d wrong, sum kept %d\n", wrong, before == after);
    uint32_t wanted = numbers[1234],
             *found = bsearch(&wanted, numbers, count, sizeof numbers[0], by_number);
    printf("found %d\n", found && *found == wanted);
    const char* words[] = {"pear", "fig", "apple", "kiwi", "date", "plum", "lime"};
    qsort(words, 7, sizeof words[0], by_length);
    for (int i = 0; i < 7; i++) printf("%s ", words[i]);
    puts("");
}

static void entropy(void) {
    unsigned char bytes[256] = {0}, more[256] = {0};
    printf("getentropy %d %d\n", getentropy(bytes, sizeof bytes), getentropy(more, sizeof more));
    int set = 0;
    for (int i = 0; i < 256; i++) set += __builtin_popcount(bytes[i]);
    // 1024 of 2048 bits, give or take what happens once in many millions of runs.
    printf("even %d differ %d\n", set > 850 && set < 1200, memcmp(bytes, more, sizeof bytes) != 0);
    printf("too much %d\n", getentropy(bytes, 257));
}

int main(void) {
    stress();
    large();
    sorting();
    entropy();
    return 0;
}
