// Where a program with threads begins. Calls constructors itself: the linker would call them of
// every export, and so for every thread. Ends the process when main returns, whatever its other
// threads do.
#include <stdlib.h>

void __wasm_call_ctors(void);
int __original_main(void);

__attribute__((export_name("_start"))) void _start(void) {
    __wasm_call_ctors();
    exit(__original_main());
}
