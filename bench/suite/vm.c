// A virtual machine of bytecodes with a stack, which runs a program of two nested loops.
#include "suite.h"

enum { PUSH, LOAD, STORE, ADD, SUB, MUL, XOR, SHIFT, LESS, JUMP, JUMP_IF, FETCH, KEEP, HALT };

typedef struct {
    int32_t stack[32];
    int32_t variables[8];
    int32_t memory[64];
} Vm;

static int32_t interpret(Vm* vm, const int32_t* program) {
    int32_t* top = vm->stack;  // one past
    const int32_t* at = program;
    for (;;) {
        switch (*at++) {
            case PUSH: *top++ = *at++; break;
            case LOAD: *top++ = vm->variables[*at++]; break;
            case STORE: vm->variables[*at++] = *--top; break;
            case ADD: top--, top[-1] = (int32_t)((uint32_t)top[-1] + (uint32_t)top[0]); break;
            case SUB: top--, top[-1] = (int32_t)((uint32_t)top[-1] - (uint32_t)top[0]); break;
            case MUL: top--, top[-1] = (int32_t)((uint32_t)top[-1] * (uint32_t)top[0]); break;
            case XOR: top--, top[-1] ^= top[0]; break;
            case SHIFT: top--, top[-1] = (int32_t)((uint32_t)top[-1] >> (top[0] & 31)); break;
            case LESS: top--, top[-1] = top[-1] < top[0]; break;
            case JUMP: at = program + *at; break;
            case JUMP_IF: at = *--top ? program + *at : at + 1; break;
            case FETCH: top[-1] = vm->memory[top[-1] & 63]; break;
            case KEEP: top -= 2, vm->memory[top[1] & 63] = top[0]; break;
            case HALT: return *--top;
        }
    }
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance);
    int32_t a = (int32_t)next_random(&random), b = (int32_t)(next_random(&random) | 1);
    int32_t inner = 30 + (int32_t)(next_random(&random) % 8);
    // s = a; for i in 0..40: for k in 0..inner: s = (s * b + memory[k]) ^ s >> 13; memory[i] = s
    const int32_t program[] = {
        PUSH,    a,     STORE, 0,     PUSH, 0,       STORE, 1,  // 0
        PUSH,    0,     STORE, 2,                               // 8
        LOAD,    0,     PUSH,  b,     MUL,  LOAD,    2,     FETCH, ADD, LOAD, 0,     PUSH,
        13,      SHIFT, XOR,   STORE, 0,  // 12
        LOAD,    2,     PUSH,  1,     ADD,  STORE,   2,     LOAD,  2,   PUSH, inner, LESS,
        JUMP_IF, 12,                                                                     // 29
        LOAD,    0,     LOAD,  1,     KEEP, LOAD,    1,     PUSH,  1,   ADD,  STORE, 1,  // 43
        LOAD,    1,     PUSH,  40,    LESS, JUMP_IF, 8,     LOAD,  0,   HALT};           // 55
    Vm vm;
    memset(&vm, 0, sizeof vm);
    uint32_t sum = (uint32_t)interpret(&vm, program);
    for (int i = 0; i < 64; i++) sum = mix(sum, (uint32_t)vm.memory[i]);
    return sum;
}
