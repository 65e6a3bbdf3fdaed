// .gpu files: whatever their bytes, they load as what was put into them or are refused.
#include "engine/package.h"

#include <gtest/gtest.h>

#include <random>

#include "base/hash.h"
#include "engine/load.h"

namespace gpurun::engine {
namespace {

constexpr u8 empty_module[] = {0, 'a', 's', 'm', 1, 0, 0, 0};

Package example() {
    Package package;
    package.module.assign(std::begin(empty_module), std::end(empty_module));
    codegen::Image image;
    image.functions = 2;
    image.all_functions = 3;
    image.pieces.push_back({{1, 2, 3}, "enter", {0, 7}, {2}});
    package.images.push_back({codegen::Target::host, "x86-64", "a key", codegen::to_bytes(image)});
    package.images.push_back(
        {codegen::Target::cuda_space, "", "another", codegen::to_bytes(image)});
    return package;
}

// As if whoever changed it had meant it.
void set_checksum(std::vector<u8>& bytes) {
    const std::string_view content(reinterpret_cast<const char*>(bytes.data()) + 20,
                                   bytes.size() - 20);
    const u64 hash = gpurun::hash(content);
    for (u32 i = 0; i < 8; i++) bytes[12 + i] = u8(hash >> (8 * i));
}

TEST(Package, BecomesWhatItWas) {
    const Package package = example();
    const std::vector<u8> bytes = to_bytes(package);
    EXPECT_EQ(bytes, to_bytes(example()));
    Result<Package> read = package_from_bytes(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->module, package.module);
    ASSERT_EQ(read->images.size(), 2u);
    EXPECT_EQ(read->images[0].cpu, "x86-64");
    EXPECT_EQ(read->images[1].target, codegen::Target::cuda_space);
    EXPECT_EQ(read->images[1].key, "another");
    EXPECT_EQ(read->images[1].bytes, package.images[1].bytes);
    EXPECT_TRUE(load_bytes(bytes, "x.gpu"));
}

TEST(Package, EveryLengthAndEveryByteMatters) {
    const std::vector<u8> bytes = to_bytes(example());
    for (usize size = 0; size < bytes.size(); size++)
        EXPECT_FALSE(load_bytes({bytes.begin(), bytes.begin() + s64(size)}, "x.gpu")) << size;
    for (usize at = 0; at < bytes.size(); at++) {
        std::vector<u8> changed = bytes;
        changed[at] ^= 0x10;
        EXPECT_FALSE(load_bytes(changed, "x.gpu")) << at;
    }
    std::vector<u8> longer = bytes;
    longer.push_back(0);
    EXPECT_FALSE(load_bytes(longer, "x.gpu"));
    set_checksum(longer);
    EXPECT_FALSE(load_bytes(longer, "x.gpu"));
}

// Lengths that lie, with a checksum that does not.
TEST(Package, IsRefusedOrReadWhateverIsInIt) {
    const std::vector<u8> bytes = to_bytes(example());
    std::mt19937_64 random(1);
    for (u32 i = 0; i < 20'000; i++) {
        std::vector<u8> changed = bytes;
        for (u64 count = 1 + random() % 4; count > 0; count--)
            changed[20 + random() % (changed.size() - 20)] = u8(random());
        if (random() % 4 == 0) changed.resize(20 + random() % (changed.size() - 20));
        set_checksum(changed);
        Result<Package> read = package_from_bytes(changed);
        if (!read) continue;
        for (const ShippedImage& image : read->images) (void)codegen::from_bytes(image.bytes, 8);
    }
}

// What names a target of a later version is left out.
TEST(Package, HasImagesOfTargetsThatAreKnown) {
    std::vector<u8> bytes = to_bytes(example());
    const std::string name = "cuda-space";
    auto found = std::search(bytes.begin(), bytes.end(), name.begin(), name.end());
    ASSERT_NE(found, bytes.end());
    *found = 'r';
    set_checksum(bytes);
    Result<Package> read = package_from_bytes(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->images.size(), 1u);
}

TEST(Package, HasAModuleInIt) {
    Package package = example();
    package.module = {'(', 'm', 'o', 'd', 'u', 'l', 'e', ')'};
    EXPECT_FALSE(load_bytes(to_bytes(package), "x.gpu"));
    package.module = to_bytes(example());
    EXPECT_FALSE(load_bytes(to_bytes(package), "x.gpu"));
    package.module.clear();
    EXPECT_FALSE(load_bytes(to_bytes(package), "x.gpu"));
}

}  // namespace
}  // namespace gpurun::engine
