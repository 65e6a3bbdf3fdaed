// PBKDF2 with HMAC-SHA-256: 64 iterations for one block of 32 bytes.
#include "sha256_core.h"

enum { ITERATIONS = 64 };

static void hmac(const uint8_t* key, uint32_t key_size, const uint8_t* text, uint32_t text_size,
                 uint8_t digest[32]) {
    uint8_t pad[64];
    Sha256 sha;
    for (uint32_t i = 0; i < 64; i++) pad[i] = 0x36 ^ (i < key_size ? key[i] : 0);
    sha256_init(&sha);
    sha256_update(&sha, pad, 64);
    sha256_update(&sha, text, text_size);
    sha256_final(&sha, digest);
    for (int i = 0; i < 64; i++) pad[i] ^= 0x36 ^ 0x5c;
    sha256_init(&sha);
    sha256_update(&sha, pad, 64);
    sha256_update(&sha, digest, 32);
    sha256_final(&sha, digest);
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    uint8_t password[20], salt[20], u[32], result[32];
    for (int i = 0; i < 20; i++) password[i] = (uint8_t)('a' + next_random(&random) % 26);
    for (int i = 0; i < 16; i++) salt[i] = (uint8_t)next_random(&random);
    salt[16] = salt[17] = salt[18] = 0, salt[19] = 1;
    hmac(password, sizeof password, salt, sizeof salt, u);
    memcpy(result, u, 32);
    for (int i = 1; i < ITERATIONS; i++) {
        hmac(password, sizeof password, u, 32, u);
        for (int k = 0; k < 32; k++) result[k] ^= u[k];
    }
    return mix_digest(result);
}
