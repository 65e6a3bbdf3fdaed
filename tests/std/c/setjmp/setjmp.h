// setjmp for wasm, where jumping is an exception: Debian's wasi-libc has none.
#pragma once

// Which call of setjmp, in which activation of its function, the buffer belongs to; and what is
// thrown, which the code of the compiler reads.
typedef struct {
    void* activation;
    unsigned label;
    struct {
        void* buffer;
        int value;
    } thrown;
} jmp_buf[1];

int setjmp(jmp_buf) __attribute__((returns_twice));
_Noreturn void longjmp(jmp_buf, int);
