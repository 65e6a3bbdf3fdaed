// Lines of the source from .debug_line: versions 4 and 5, and what is broken.
#include "wasm/source_line.h"

#include <gtest/gtest.h>

#include "bytes.h"

namespace gpurun::wasm::test {
namespace {

Bytes fixed(u64 value, u32 size) {
    Bytes bytes;
    for (u32 i = 0; i < size; i++) bytes.push_back(u8(value >> (8 * i)));
    return bytes;
}
Bytes zero_ended(std::string_view s) { return Bytes(s.begin(), s.end()) + Bytes{0}; }

// Operands of the standard opcodes, with a base of 13 for the special ones.
const Bytes opcode_lengths = {0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};

// Least instruction 1, one operation, statements, line base -5, range 14.
Bytes header(u16 version, const Bytes& tables) {
    Bytes rest = Bytes{1, 1, 1, u8(-5), 14, 13} + opcode_lengths + tables;
    Bytes start = fixed(version, 2);
    if (version == 5) start = start + Bytes{4, 0};
    return start + fixed(rest.size(), 4) + rest;
}

// Line 1 + n at address 1 + 2n, for n from 1 to 3, in a sequence that begins at `address`.
Bytes program(u32 address) {
    Bytes bytes = Bytes{0, 5, 2} + fixed(address, 4) + Bytes{5, 9};
    for (int i = 0; i < 3; i++) bytes = bytes + Bytes{13 + 14 * 2 + 1 + 5};
    return bytes + Bytes{2, 2, 0, 1, 1};
}

Bytes unit(const Bytes& content) { return fixed(content.size(), 4) + content; }

Bytes unit_4(u32 address) {
    Bytes tables = zero_ended("src") + Bytes{0} + zero_ended("a.c") + Bytes{1, 0, 0} +
                   zero_ended("/b.h") + Bytes{1, 0, 0, 0};
    return unit(header(4, tables) + program(address));
}

Bytes unit_5(u32 address) {
    // Directories: a path each; files: a path in .debug_line_str, a directory, an MD5.
    Bytes tables = Bytes{1, 1, 8, 2} + zero_ended("/home") + zero_ended("lib") +
                   Bytes{3, 1, 0x1f, 2, 0x0b, 5, 0x1e, 2};
    tables = tables + fixed(0, 4) + Bytes{0} + Bytes(16) + fixed(4, 4) + Bytes{1} + Bytes(16);
    return unit(header(5, tables) + program(address));
}

std::shared_ptr<const Module> module_with(const Bytes& lines) {
    Bytes body = sized(Bytes{0, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x01, 0x0b});
    Bytes bytes = module_of({section(type_id, vec({{0x60, 0, 0}})), section(func_id, vec({{0}})),
                             section(code_id, vec({body})), custom(".debug_line", lines),
                             custom(".debug_line_str", zero_ended("x.c") + zero_ended("y.c"))});
    auto module = load(bytes);
    EXPECT_TRUE(module);
    return *module;
}

std::string at(const Module& module, u32 address) {
    return source_line(module, module.code_begin + address);
}

TEST(SourceLine, version_4) {
    auto module = module_with(unit_4(1));
    EXPECT_EQ(at(*module, 3), "src/a.c:2:9");
    EXPECT_EQ(at(*module, 4), "src/a.c:2:9");
    EXPECT_EQ(at(*module, 5), "src/a.c:3:9");
    EXPECT_EQ(at(*module, 8), "src/a.c:4:9");
    EXPECT_EQ(at(*module, 9), "");  // behind the sequence
    EXPECT_EQ(at(*module, 2), "");  // before its first row
    EXPECT_EQ(source_line(*module, 0), "");
}

TEST(SourceLine, version_5) {
    auto module = module_with(unit_5(1));
    // Files count from 0 there, and programs begin with 1.
    EXPECT_EQ(at(*module, 3), "/home/lib/y.c:2:9");
    EXPECT_EQ(at(*module, 8), "/home/lib/y.c:4:9");
}

TEST(SourceLine, functions_that_are_gone) {
    auto module = module_with(unit_4(0) + unit_5(1) + unit_4(0xffffffff) + unit_4(0xfffffffe));
    EXPECT_EQ(at(*module, 3), "/home/lib/y.c:2:9");
}

TEST(SourceLine, without) {
    auto module = module_with({});
    EXPECT_EQ(at(*module, 3), "");
}

// Whatever is in the section, there is an answer.
TEST(SourceLine, broken) {
    Bytes whole = unit_4(1) + unit_5(1);
    for (usize size = 0; size < whole.size(); size++)
        at(*module_with(Bytes(whole.begin(), whole.begin() + long(size))), 3);
    for (usize i = 0; i < whole.size(); i++) {
        for (u32 value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
            Bytes changed = whole;
            changed[i] = u8(value);
            at(*module_with(changed), 3);
        }
    }
}

}  // namespace
}  // namespace gpurun::wasm::test
