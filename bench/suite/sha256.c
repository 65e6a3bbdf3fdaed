// SHA-256 of 16 KiB in a buffer of the heap.
#include "sha256_core.h"

enum { SIZE = 16384 };

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    uint8_t* data = malloc(SIZE);
    if (!data) return 0;
    for (int i = 0; i < SIZE; i += 4) {
        uint32_t value = next_random(&random);
        memcpy(data + i, &value, 4);
    }
    Sha256 sha;
    uint8_t digest[32];
    sha256_init(&sha);
    sha256_update(&sha, data, SIZE);
    sha256_final(&sha, digest);
    free(data);
    return mix_digest(digest);
}
