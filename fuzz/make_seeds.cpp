// make-seeds SOURCES OUT: what the fuzzers start from, as text (OUT/text) and as modules
// (OUT/wasm). One module for each row of the opcode table whose signature says how to use it;
// for the others, the files of SOURCES. Each exports a function "run".
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/format.h"
#include "text/assemble.h"
#include "wasm/instr.h"

using namespace gpurun;
namespace fs = std::filesystem;

// The text of an immediate that needs no declaration; nullptr for the rest.
static const char* immediate(wasm::Imm imm) {
    using enum wasm::Imm;
    switch (imm) {
        case none:
        case zero:
        case mem0:
        case mem1:
        case mem2:
        case mem3:
        case mem4:
        case amem0:
        case amem1:
        case amem2:
        case amem3: return "";
        case wasm::Imm::i32:
        case wasm::Imm::i64: return "-7";
        case wasm::Imm::f32:
        case wasm::Imm::f64: return "1.5";
        case v128: return "i16x8 1 2 3 4 -5 -6 -7 -8";
        case shuffle: return "0 16 1 17 2 18 3 19 31 30 29 28 15 14 13 12";
        case lane2:
        case lane4:
        case lane8:
        case lane16:
        case lmem0:
        case lmem1:
        case lmem2:
        case lmem3: return "1";
        default: return nullptr;
    }
}

static const char* operand(char type) {
    switch (type) {
        case 'a': return "(i32.const 16)";
        case 'i': return "(i32.const -3)";
        case 'I': return "(i64.const 1000)";
        case 'f': return "(f32.const 2.5)";
        case 'F': return "(f64.const 0.75)";
        default: return "(v128.const i16x8 0x8000 7 -1 300 0x7f80 5 0x3fc0 9)";
    }
}

static const char* result(char type) {
    switch (type) {
        case 'i': return " (result i32)";
        case 'I': return " (result i64)";
        case 'f': return " (result f32)";
        case 'F': return " (result f64)";
        default: return " (result v128)";
    }
}

// A module that executes one instruction; empty if the row does not say enough.
static std::string module_text(const wasm::OpInfo& op) {
    std::string_view signature = op.signature;
    const char* imm = immediate(op.imm);
    if (signature == "*" || !imm) return "";
    usize arrow = signature.find('>');
    std::string operands, results;
    for (char type : signature.substr(0, arrow)) operands += operand(type);
    for (char type : signature.substr(arrow + 1)) results += result(type);
    return format("(module (memory 1 1 shared)\n  (func (export \"run\")%s\n    (%s %s %s)))\n",
                  results.c_str(), op.text, imm, operands.c_str());
}

static bool write(const fs::path& out, const std::string& name, const std::string& source) {
    std::ofstream(out / "text" / (name + ".wat")) << source;
    auto module = text::assemble(source, name + ".wat");
    if (!module) {
        std::fprintf(stderr, "%s\n", module.error().to_string().c_str());
        return false;
    }
    std::ofstream(out / "wasm" / (name + ".wasm"), std::ios::binary)
        .write(reinterpret_cast<const char*>(module->bytes.data()),
               std::streamsize(module->bytes.size()));
    return true;
}

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: make-seeds SOURCES OUT\n");
        return 2;
    }
    fs::path sources = argv[1], out = argv[2];
    fs::create_directories(out / "text");
    fs::create_directories(out / "wasm");
    bool good = true;
    for (u32 op = 0; op < u32(wasm::Op::count); op++) {
        std::string source = module_text(wasm::op_info(wasm::Op(op)));
        if (!source.empty()) good &= write(out, format("op_%03u", op), source);
    }
    for (const auto& entry : fs::directory_iterator(sources)) {
        std::stringstream source;
        source << std::ifstream(entry.path()).rdbuf();
        if (entry.path().extension() == ".wat") {
            good &= write(out, entry.path().stem(), source.str());
        } else {
            std::ofstream(out / "text" / entry.path().filename()) << source.str();
        }
    }
    return good ? 0 : 1;
}
