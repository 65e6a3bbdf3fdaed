// The IR promises LLVM nothing that a guest need not keep: its memory has no types, two addresses
// may be equal, shared memory changes, and loops may run for ever. So there is no TBAA in it, and
// functions have few attributes. The test looks at every instruction that computes or accesses
// memory, for every target.
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "base/format.h"
#include "codegen/codegen.h"
#include "text/assemble.h"
#include "translate/translate.h"

namespace gpurun::test {
namespace {

struct Row {
    const char *text, *immediates, *signature;
};
constexpr Row rows[] = {
#define OP(prefix, code, name, text, immediates, signature) {text, #immediates, signature},
#include "wasm/opcodes.def"
#undef OP
};

const char* type_of(char letter, bool is_64) {
    switch (letter) {
        case 'i': return "i32";
        case 'I': return "i64";
        case 'f': return "f32";
        case 'F': return "f64";
        case 'V': return "v128";
        default: return is_64 ? "i64" : "i32";
    }
}

// Returns a function that executes the row's instruction, or nothing if the test leaves it out.
// Accesses go to the memory with that number.
std::string function_of(const Row& row, u32 memory, bool is_64) {
    const std::string signature = row.signature, immediates = row.immediates, name = row.text;
    const bool is_access = immediates.find("mem") != immediates.npos && immediates.back() <= '4';
    const bool is_lane = immediates.starts_with("lane");
    const usize arrow = signature.find('>');
    if (arrow == 0 || arrow == signature.npos || signature.find('*') != signature.npos) return "";
    if (!is_access && (memory > 0 || (!is_lane && immediates != "none" && immediates != "shuffle")))
        return "";
    std::string text = "(func", body;
    for (usize i = 0; i < signature.size(); i++) {
        if (i == arrow) continue;
        text += format(" (%s %s)", i < arrow ? "param" : "result", type_of(signature[i], is_64));
        if (i < arrow) body += format(" local.get %zu", i);
    }
    body += " " + name;
    if (is_access) body += format(" %u", memory);
    if (is_lane || immediates.starts_with("lmem")) body += " 0";
    if (immediates == "shuffle")
        for (u32 i = 0; i < 16; i++) body += " 1";
    return text + body + ")\n";
}

std::string module_text() {
    std::string text = "(module (memory 1 2 shared) (memory i64 1 2)\n";
    for (const Row& row : rows) text += function_of(row, 0, false) + function_of(row, 1, true);
    return text +
           "(func (param i32) loop local.get 0 i32.const 1 i32.const 9 memory.fill br 0 end))";
}

Result<std::string> ir_for(codegen::Target target) {
    text::Assembled assembled = TRY(text::assemble(module_text(), "rows"));
    auto module = TRY(wasm::load(std::move(assembled.bytes)));
    const translate::Code code = TRY(translate::translate(*module, {.metered = true}));
    return codegen::emit_ir(*module, code, target);
}

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    std::string word;
    for (char c : text) {
        if (std::isalnum(c) || c == '_' || c == '.' || c == '!' || c == '#' || c == '@') {
            word += c;
        } else if (!word.empty()) {
            words.push_back(std::exchange(word, ""));
        }
    }
    if (!word.empty()) words.push_back(word);
    return words;
}

class Promises : public testing::TestWithParam<codegen::Target> {};

TEST_P(Promises, are_kept_by_every_guest) {
    const auto ir = ir_for(GetParam());
    ASSERT_TRUE(ir) << ir.error().to_string();
    const std::set<std::string> metadata = {"!tbaa",    "!tbaa.struct",    "!range",
                                            "!noundef", "!invariant.load", "!invariant.group",
                                            "!noalias", "!alias.scope",    "!dereferenceable",
                                            "!nonnull", "!align",          "!nontemporal"},
                                of_parameters = {"noundef",   "dereferenceable",
                                                 "readonly",  "readnone",
                                                 "writeonly", "captures",
                                                 "nonnull",   "align"},
                                of_functions = {"alwaysinline", "noinline", "nounwind",
                                                "convergent"},
                                of_pure = {"willreturn", "memory", "none"};
    // They compute something from their arguments alone (codegen/merge_checks.h).
    auto is_pure = [](const std::string& line) {
        return line.find("@gpurun_is_outside(") != line.npos ||
               line.find("@native_dirty(") != line.npos;
    };
    // A module's attribute groups are printed after its functions.
    std::map<std::string, std::string> used;  // by group: a function
    usize functions = 0;
    std::istringstream in(*ir);
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("; ModuleID")) used.clear();
        for (usize at = line.find('!'); at != line.npos; at = line.find('!', at + 1))
            EXPECT_FALSE(metadata.contains(line.substr(at, line.find(' ', at) - at))) << line;
        if (line.starts_with("attributes #")) {
            const std::string group = line.substr(11, line.find(' ', 11) - 11);
            if (!used.contains(group)) continue;
            for (const std::string& one : words_of(line.substr(0, line.find('"'))))
                EXPECT_TRUE(of_functions.contains(one) || one == "attributes" || one == group ||
                            (is_pure(used[group]) && of_pure.contains(one)))
                    << used[group] << " is " << one;
        }
        const bool is_function = line.starts_with("define ") || line.starts_with("declare ");
        if (!is_function || line.find("@llvm.") != line.npos) continue;
        functions++;
        usize aliases = 0;
        for (const std::string& word : words_of(line)) {
            EXPECT_FALSE(of_parameters.contains(word)) << line;
            if (word.starts_with('#')) used[word] = line;
            aliases += word == "noalias";
        }
        // Only the context may be noalias: nothing else points to it.
        EXPECT_TRUE(aliases == 0 || (aliases == 1 && line.find("(ptr noalias") != line.npos))
            << line;
    }
    EXPECT_GT(functions, 1000u);
}

INSTANTIATE_TEST_SUITE_P(Targets, Promises, testing::ValuesIn(codegen::targets),
                         [](const auto& info) {
                             std::string name = codegen::name_of(info.param);
                             for (char& c : name)
                                 if (c == '-' || c == ' ') c = '_';
                             return name;
                         });

}  // namespace
}  // namespace gpurun::test
