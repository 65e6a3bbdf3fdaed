// Some of the sequences that fuzz/wasi_fuzz.cpp makes for as long as it likes.
#include <gtest/gtest.h>

#include <random>

#include "../../fuzz/wasi_sequence.h"

namespace gpurun::fuzz {
namespace {

std::vector<u8> bytes_from(u32 seed) {
    std::mt19937 random(seed);
    std::vector<u8> bytes(200 + random() % 3000);
    for (u8& byte : bytes) byte = u8(random());
    return bytes;
}

TEST(Sequences, DoWhatTheModelDoes) {
    for (u32 seed = 0; seed < 1000; seed++) run_sequence(bytes_from(seed));
}

TEST(Sequences, OfWildNumbersBreakNothing) {
    for (u32 seed = 0; seed < 500; seed++) run_wild_sequence(bytes_from(seed));
}

}  // namespace
}  // namespace gpurun::fuzz
