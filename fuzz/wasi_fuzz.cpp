// Random sequences of system calls against a model of the file system, or with wild numbers.
#include "wasi_sequence.h"

using namespace gpurun;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size) {
    if (size == 0) return 0;
    std::span<const u8> rest(data + 1, size - 1);
    data[0] % 4 == 3 ? fuzz::run_wild_sequence(rest) : fuzz::run_sequence(rest);
    return 0;
}
