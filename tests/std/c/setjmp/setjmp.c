// What clang makes of setjmp and longjmp with -wasm-enable-sjlj: calls of these. In a file of its
// own, since the compiler declares them itself where setjmp is used.
#include "setjmp.h"

__asm__(
    ".globl __c_longjmp\n"
    ".tagtype __c_longjmp i32\n"
    "__c_longjmp:\n");

void __wasm_setjmp(jmp_buf buffer, unsigned label, void* activation) {
    buffer->activation = activation;
    buffer->label = label;
}

// 0 if the jump goes elsewhere: it is then thrown on.
unsigned __wasm_setjmp_test(jmp_buf buffer, void* activation) {
    return buffer->activation == activation ? buffer->label : 0;
}

_Noreturn void __wasm_longjmp(jmp_buf buffer, int value) {
    buffer->thrown.buffer = buffer;
    buffer->thrown.value = value ? value : 1;
    __builtin_wasm_throw(1, &buffer->thrown);
}
