// Counts the primes below N: sieve [N [THREADS]]. Threads take pieces of the numbers from one
// counter and sieve each by the primes up to the root of N; how many there are changes nothing but
// the time.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 1 << 16,
    MAX_THREADS = 256
};  // numbers in a piece, of which the odd ones have a byte each

struct Sieve {
    unsigned long below;
    const unsigned* primes;  // the odd ones up to the root
    unsigned prime_count;
    atomic_ulong next_piece;
};

struct Worker {
    pthread_t thread;
    struct Sieve* sieve;
    unsigned long count, largest;
};

// Byte i of a piece stands for the number begin + 2i + 1.
static void sieve_piece(struct Worker* worker, unsigned long begin, unsigned char* composite) {
    const struct Sieve* sieve = worker->sieve;
    unsigned long end = begin + PIECE < sieve->below ? begin + PIECE : sieve->below;
    memset(composite, 0, PIECE / 2);
    for (unsigned i = 0; i < sieve->prime_count; i++) {
        unsigned long prime = sieve->primes[i], first = prime * prime;
        if (first >= end) break;
        if (first < begin) {
            first = (begin + prime - 1) / prime * prime;
            if (first % 2 == 0) first += prime;
        }
        for (unsigned long at = (first - begin) / 2; at < PIECE / 2; at += prime) composite[at] = 1;
    }
    for (unsigned long number = begin + 1; number < end; number += 2) {
        if (composite[(number - begin) / 2] || number == 1) continue;
        worker->count++;
        worker->largest = number;
    }
}

static void* work(void* argument) {
    struct Worker* worker = argument;
    unsigned char* composite = malloc(PIECE / 2);
    if (!composite) return worker;
    for (;;) {
        unsigned long begin = atomic_fetch_add(&worker->sieve->next_piece, 1) * PIECE;
        if (begin >= worker->sieve->below) break;
        sieve_piece(worker, begin, composite);
    }
    free(composite);
    return NULL;
}

// The odd primes whose square is below the limit, by trial.
static unsigned* small_primes(unsigned long below, unsigned* count) {
    unsigned room = 64;
    unsigned* primes = malloc(room * sizeof *primes);
    *count = 0;
    for (unsigned long number = 3; primes && number * number < below; number += 2) {
        unsigned i = 0;
        while (i < *count && (unsigned long)primes[i] * primes[i] <= number && number % primes[i])
            i++;
        if (i < *count && number % primes[i] == 0) continue;
        if (*count == room) primes = realloc(primes, (room *= 2) * sizeof *primes);
        if (primes) primes[(*count)++] = number;
    }
    return primes;
}

static unsigned long number_of(const char* text, unsigned long least, unsigned long most) {
    char* end;
    unsigned long number = strtoul(text, &end, 10);
    if (end == text || *end || number < least || number > most) {
        fprintf(stderr, "sieve: %s is no number from %lu to %lu\n", text, least, most);
        exit(2);
    }
    return number;
}

int main(int argc, char** argv) {
    if (argc > 3) {
        fprintf(stderr, "usage: sieve [N [THREADS]]\n");
        return 2;
    }
    struct Sieve sieve = {.below = argc > 1 ? number_of(argv[1], 0, 4000000000) : 1000000};
    unsigned long threads = argc > 2 ? number_of(argv[2], 1, MAX_THREADS) : 4;
    sieve.primes = small_primes(sieve.below, &sieve.prime_count);
    static struct Worker workers[MAX_THREADS];
    int failed = sieve.primes == NULL;
    for (unsigned long i = 0; i < threads; i++) {
        workers[i].sieve = &sieve;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0) {
            fprintf(stderr, "sieve: no thread %lu\n", i);
            return 1;
        }
    }
    unsigned long count = sieve.below > 2,
                  largest = count * 2;  // 2 itself, of which pieces know nothing
    for (unsigned long i = 0; i < threads; i++) {
        void* result;
        pthread_join(workers[i].thread, &result);
        failed |= result != NULL;
        count += workers[i].count;
        if (workers[i].largest > largest) largest = workers[i].largest;
    }
    if (failed) {
        fprintf(stderr, "sieve: out of memory\n");
        return 1;
    }
    printf("%lu primes below %lu", count, sieve.below);
    if (count) printf(", the largest %lu", largest);
    putchar('\n');
    return 0;
}
