// What a compiler made of tests/programs: loads, cannot be cut short anywhere, and is listed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "engine/objdump.h"
#include "engine/store.h"
#include "wasm/module.h"
#include "wasm/reader.h"

using namespace gpurun;
namespace fs = std::filesystem;

namespace {

class Programs : public testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const char* build = std::getenv("GPURUN_BUILD");
        fs::path path = fs::path(build ? build : "build") / "tests/programs" / GetParam();
        std::ifstream file(path, std::ios::binary);
        if (!file)
            GTEST_SKIP() << path << " is not there; scripts/install-deps test brings what makes it";
        bytes_.assign(std::istreambuf_iterator<char>(file), {});
    }
    wasm::Bytes bytes_;
};

// Where a module may end: after its header and after each section.
std::set<usize> section_ends(const wasm::Bytes& bytes) {
    std::set<usize> ends = {8};
    wasm::BinaryReader in(bytes.data(), 8, u32(bytes.size()));
    while (!in.at_end()) {
        in.byte();
        in.skip(in.leb_u32());
        ends.insert(in.position());
    }
    return ends;
}

TEST_P(Programs, refuse_to_be_cut_at_any_byte) {
    const std::set<usize> ends = section_ends(bytes_);
    for (usize size = 0; size < bytes_.size(); size++) {
        auto cut = wasm::load(wasm::Bytes(bytes_.begin(), bytes_.begin() + std::ptrdiff_t(size)));
        if (cut) {
            EXPECT_TRUE(ends.count(size)) << "cut at " << size;
        } else {
            EXPECT_LE(cut.error().offset, size) << cut.error().to_string();
            EXPECT_FALSE(cut.error().message.empty());
        }
    }
}

TEST_P(Programs, are_listed_to_the_end) {
    auto module = wasm::load(bytes_);
    ASSERT_TRUE(module.ok()) << module.error().to_string();
    std::string text;
    auto take = [&](std::string_view piece) {
        text += piece;
        return true;
    };
    ASSERT_TRUE(engine::objdump(**module, {}, take).ok());
    usize functions = 0;
    for (usize at = text.find("\nfunc "); at != text.npos; at = text.find("\nfunc ", at + 1))
        functions++;
    EXPECT_EQ(functions, (*module)->funcs.size() - (*module)->imported_funcs);
    EXPECT_NE(text.find("\ninstantiate: "), text.npos);
}

TEST_P(Programs, are_not_listed_for_nobody) {
    auto module = wasm::load(bytes_);
    ASSERT_TRUE(module.ok());
    usize pieces = 0;
    ASSERT_TRUE(
        engine::objdump(**module, {}, [&](std::string_view) { return ++pieces, false; }).ok());
    EXPECT_EQ(pieces, 1u);
}

TEST_P(Programs, run_where_they_import_nothing) {
    auto module = wasm::load(bytes_);
    ASSERT_TRUE(module.ok());
    if (!(*module)->imports.empty()) return;
    auto store = engine::Store::create({});
    ASSERT_TRUE(store.ok());
    auto made = (*store)->instantiate(*module, {}, {});
    ASSERT_TRUE(made.ok());
    auto alive = (*store)->find_export(*made->instance, "alive");
    ASSERT_TRUE(alive.has_value());
    const engine::Value generations = engine::Value::i32(100);
    auto completion = (*store)->call(*alive, {&generations, 1}, {});
    ASSERT_TRUE(completion.ok());
    ASSERT_EQ(completion->results.size(), 1u) << completion->to_string();
    EXPECT_EQ(completion->results[0].low(), 121u);  // what is known of the r-pentomino
}

INSTANTIATE_TEST_SUITE_P(All, Programs, testing::Values("words.wasm", "sha256.wasm", "life.wasm"),
                         [](const auto& info) {
                             std::string name = info.param;
                             return name.substr(0, name.find('.'));
                         });

}  // namespace
