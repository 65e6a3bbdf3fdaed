// Powers modulo a number of 512 bits: products of limbs of 32 bits, reduced by Montgomery's method.
#include "suite.h"

enum { LIMBS = 16 };

typedef struct {
    uint32_t limb[LIMBS];
} Number;

static int subtract_if_not_less(uint32_t* a, uint32_t carry, const Number* b) {
    Number less;
    uint64_t borrow = 0;
    for (int i = 0; i < LIMBS; i++) {
        uint64_t difference = (uint64_t)a[i] - b->limb[i] - borrow;
        less.limb[i] = (uint32_t)difference;
        borrow = difference >> 63;
    }
    if (carry < borrow) return 0;
    memcpy(a, less.limb, sizeof less.limb);
    return 1;
}

// Sets to = a * b / 2^512 modulo m.
static void multiply(const Number* a, const Number* b, const Number* m, uint32_t inverse,
                     Number* to) {
    uint32_t t[LIMBS + 2] = {0};
    for (int i = 0; i < LIMBS; i++) {
        uint64_t carry = 0;
        for (int k = 0; k < LIMBS; k++) {
            carry += (uint64_t)a->limb[k] * b->limb[i] + t[k];
            t[k] = (uint32_t)carry;
            carry >>= 32;
        }
        carry += t[LIMBS];
        t[LIMBS] = (uint32_t)carry;
        t[LIMBS + 1] = (uint32_t)(carry >> 32);
        uint32_t factor = t[0] * inverse;
        carry = ((uint64_t)factor * m->limb[0] + t[0]) >> 32;
        for (int k = 1; k < LIMBS; k++) {
            carry += (uint64_t)factor * m->limb[k] + t[k];
            t[k - 1] = (uint32_t)carry;
            carry >>= 32;
        }
        carry += t[LIMBS];
        t[LIMBS - 1] = (uint32_t)carry;
        t[LIMBS] = t[LIMBS + 1] + (uint32_t)(carry >> 32);
    }
    subtract_if_not_less(t, t[LIMBS], m);
    memcpy(to->limb, t, sizeof to->limb);
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    Number modulus, base, result;
    for (int i = 0; i < LIMBS; i++) {
        modulus.limb[i] = next_random(&random);
        base.limb[i] = next_random(&random);
    }
    modulus.limb[0] |= 1;
    modulus.limb[LIMBS - 1] |= 0x80000000u;
    base.limb[LIMBS - 1] &= 0x7fffffffu;
    uint32_t inverse = modulus.limb[0];  // of the lowest limb, by Newton's method
    for (int i = 0; i < 5; i++) inverse *= 2 - modulus.limb[0] * inverse;
    inverse = 0 - inverse;
    result = base;
    uint64_t exponent = (uint64_t)next_random(&random) << 16 | 1;
    for (int bit = 47; bit >= 0; bit--) {
        multiply(&result, &result, &modulus, inverse, &result);
        if (exponent >> bit & 1) multiply(&result, &base, &modulus, inverse, &result);
    }
    for (int i = 0; i < LIMBS; i++) sum = mix(sum, result.limb[i]);
    return sum;
}
