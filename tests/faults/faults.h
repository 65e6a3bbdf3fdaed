// Faults of the host, injected: the n-th call of a kind fails. The functions in faults.cpp stand in
// for those of the C and C++ libraries in the program that is linked with them; gpu-run itself
// knows nothing of them.
#pragma once

#include <cerrno>

#include "base/ints.h"

namespace gpurun::faults {

enum class Kind : u32 { allocation, thread, open, read, write, rename, sync, map, driver, count };
const char* name_of(Kind kind);

enum class FailureMode : u32 {
    once,         // the n-th call fails
    lasting,      // and all after it
    interrupted,  // the n-th ends with EINTR
    partial,      // the n-th reads or writes one byte
};
const char* name_of(FailureMode failure);

struct Plan {
    Kind kind;
    u64 number = 0;  // 0: none fails
    FailureMode failure = FailureMode::once;
};

struct Seen {
    u64 calls = 0;  // of the kind
    u64 failed = 0;
};

// From arm() to disarm() calls of all threads are counted.
void arm(const Plan& plan);
Seen disarm();

// Whether a call of that kind is to fail now, which counts as one. Only a transfer of bytes can be
// interrupted or partial.
bool fails(Kind kind, bool is_transfer = false);

// While there is one, calls of this thread and of threads that it starts are not counted: those of
// a kind, or all.
class Off {
public:
    explicit Off(Kind kind = Kind::count);
    ~Off();
    Off(const Off&) = delete;

private:
    const Kind kind_;
};

// Blocks of memory that operator new made and that are still there.
s64 live_blocks();

}  // namespace gpurun::faults
