// What was compressed comes back, and nothing else does.
#include "base/compress.h"

#include <gtest/gtest.h>

namespace gpurun {
namespace {

TEST(Compress, GivesBackWhatItGot) {
    for (usize size : {0, 1, 100, 1'000'000}) {
        std::vector<u8> bytes(size);
        for (usize i = 0; i < size; i++) bytes[i] = u8(i % 97 * (i / 1000));
        const std::vector<u8> small = compress(bytes, 9);
        if (size > 100) EXPECT_LT(small.size(), size / 2);
        std::vector<u8> again(size);
        EXPECT_TRUE(decompress(small, again));
        EXPECT_EQ(again, bytes);
    }
}

TEST(Compress, AnotherSizeIsWrong) {
    const std::vector<u8> bytes(1000, 7), small = compress(bytes, 9);
    std::vector<u8> less(999), more(1001);
    EXPECT_FALSE(decompress(small, less));
    EXPECT_FALSE(decompress(small, more));
}

TEST(Compress, OtherBytesAreWrong) {
    std::vector<u8> to(1000), small = compress(to, 9);
    EXPECT_FALSE(decompress(std::vector<u8>(50, 1), to));
    small.pop_back();
    EXPECT_FALSE(decompress(small, to));
}

}  // namespace
}  // namespace gpurun
