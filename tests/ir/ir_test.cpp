// Each *.wat here has the IR of its functions below it, before LLVM optimises it: one file a rule
// of codegen. With GPURUN_BLESS=1 what is made is written there: read the diff.
//
//   ;; metered                 code that counts fuel
//   ;; show f0 on on2          these blocks of that function; without any, all of f0
//
// Of PTX only facts are said, for it is long:
//
//   ;; ptx f0 calls native_left   these functions and no others
//   ;; ptx f0 has atom            these texts, each in some line of the function
//   ;; ptx f0 lacks ld.local      none of these
//
// What says nothing about a rule is left out: attributes, alignment, how blocks are reached. Values
// without a name are numbered as they appear.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "codegen/codegen.h"
#include "text/assemble.h"
#include "translate/translate.h"

namespace gpurun::test {
namespace {

constexpr const char* mark = ";; ---- IR";

std::vector<std::filesystem::path> files() {
    std::vector<std::filesystem::path> found;
    const char* source = std::getenv("GPURUN_SOURCE");
    const std::filesystem::path folder = std::filesystem::path(source ? source : ".") / "tests/ir";
    if (std::filesystem::is_directory(folder))
        for (const auto& entry : std::filesystem::directory_iterator(folder))
            if (entry.path().extension() == ".wat") found.push_back(entry.path());
    std::ranges::sort(found);
    return found;
}

std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
}

struct Shown {
    std::string function;
    std::set<std::string> blocks;  // empty: all
};

struct Fact {
    std::string function, verb;
    std::set<std::string> texts;
};

struct Directives {
    bool is_metered = false;
    std::vector<Shown> shown;
    std::vector<Fact> facts;  // of PTX; then nothing is shown
};

Directives directives_of(const std::string& text) {
    Directives found;
    for (const std::string& line : lines_of(text)) {
        std::istringstream words(line);
        std::string comment, what, word;
        words >> comment >> what;
        if (comment != ";;") continue;
        if (what == "metered") found.is_metered = true;
        if (what == "ptx") {
            Fact& fact = found.facts.emplace_back();
            words >> fact.function >> fact.verb;
            while (words >> word) fact.texts.insert(word);
        }
        if (what != "show") continue;
        Shown& shown = found.shown.emplace_back();
        words >> shown.function;
        while (words >> word) shown.blocks.insert(word);
    }
    if (found.shown.empty()) found.shown.push_back({"f0", {}});
    return found;
}

std::string without_noise(std::string line) {
    static const std::regex noise(
        R"(, align \d+|, !tbaa !\d+|, !noundef !\d+| #\d+|\s+; preds = .*| noundef| zeroext)"),
        rarely(R"(, !prof !\d+)");
    return std::regex_replace(std::regex_replace(line, noise, ""), rarely, "  ; rarely");
}

// Values that LLVM numbered, by the order in which they are shown.
class Numbers {
public:
    std::string of(const std::string& line) {
        static const std::regex value(R"(%(\d+)\b)");
        std::string text;
        auto at = line.begin();
        for (std::sregex_iterator match(line.begin(), line.end(), value), end; match != end;
             ++match) {
            const std::string number = (*match)[1];
            const auto [known, is_new] = numbers_.try_emplace(number, numbers_.size());
            text.append(at, line.begin() + match->position());
            text += "%" + std::to_string(known->second);
            at = line.begin() + match->position() + match->length();
        }
        return text.append(at, line.end());
    }

private:
    std::map<std::string, usize> numbers_;
};

Result<std::vector<std::string>> reduce(const std::vector<std::string>& ir, const Shown& shown) {
    std::vector<std::string> lines;
    Numbers numbers;
    bool is_inside = false, is_shown = false;
    std::set<std::string> missing = shown.blocks;
    for (const std::string& line : ir) {
        if (line.starts_with("define ") && line.find("@" + shown.function + "(") != line.npos)
            is_inside = is_shown = true;
        if (!is_inside) continue;
        const bool is_label = !line.empty() && line[0] != ' ' && line.find(':') != line.npos;
        if (is_label) {
            const std::string label = line.substr(0, line.find(':'));
            is_shown = shown.blocks.empty() || shown.blocks.contains(label);
            missing.erase(label);
        }
        if (line == "}") {
            lines.push_back(line);
            break;
        }
        if (is_shown && !line.empty()) lines.push_back(numbers.of(without_noise(line)));
    }
    if (lines.empty()) return Error{"there is no function " + shown.function};
    for (const std::string& block : missing)
        return Error{"there is no block " + block + " in " + shown.function};
    return lines;
}

Result<std::string> expectations_for(const std::string& text, const std::string& name) {
    const Directives directives = directives_of(text);
    text::Assembled assembled = TRY(text::assemble(text, name));
    auto module = TRY(wasm::load(std::move(assembled.bytes)));
    translate::Options options;
    options.metered = directives.is_metered;
    const translate::Code code = TRY(translate::translate(*module, options));
    const std::string emitted = TRY(codegen::emit_ir(*module, code, codegen::Target::host));
    const std::vector<std::string> ir = lines_of(emitted);
    std::string expected = std::string(mark) + "\n";
    for (const Shown& shown : directives.shown) {
        const std::vector<std::string> lines = TRY(reduce(ir, shown));
        for (const std::string& line : lines) expected += ";; " + line + "\n";
    }
    return expected;
}

// ---- PTX

std::vector<std::string> ptx_of(const std::vector<std::string>& ptx, const std::string& function) {
    std::vector<std::string> lines;
    bool is_body = false;
    for (usize i = 0; i < ptx.size(); i++) {
        const bool is_head = ptx[i].starts_with(".func") || ptx[i].starts_with(".visible .func");
        if (is_head && ptx[i].ends_with(" " + function + "(") && !is_body) {
            // A declaration ends with a semicolon, what is defined has a body.
            usize brace = i;
            while (brace < ptx.size() && ptx[brace] != "{" && ptx[brace] != ";") brace++;
            is_body = brace < ptx.size() && ptx[brace] == "{";
        }
        if (!is_body) continue;
        lines.push_back(ptx[i]);
        if (ptx[i] == "}") break;
    }
    return lines;
}

// Empty: it is so.
std::string problem_with(const Fact& fact, const std::vector<std::string>& lines) {
    static const std::vector<std::string> runtime = {
#define NATIVE_CALL(name) #name,
#include "abi/native_calls.def"
    };
    static const std::regex load(R"(ld\.b64 \t(%rd\d+), \[%rd\d+(?:\+(\d+))?\])");
    std::map<std::string, usize> loaded;  // registers, and which of such words they have
    static const std::regex call(R"(call(?:\.uni)? (?:\([^)]*\), )?([\w$%]+))");
    if (lines.empty()) return "there is no function " + fact.function;
    std::set<std::string> called, found;
    for (const std::string& line : lines) {
        std::smatch match;
        if (std::regex_search(line, match, load))
            loaded[match[1]] = match[2].matched ? usize(std::stoul(match[2])) / 8 : 0;
        if (std::regex_search(line, match, call)) {
            // The runtime's functions are called by the addresses that the context has of them.
            const auto address = loaded.find(match[1]);
            const bool is_runtime = address != loaded.end() && address->second < runtime.size();
            called.insert(is_runtime ? runtime[address->second] : match[1].str());
        }
        for (const std::string& text : fact.texts)
            if (line.find(text) != line.npos) found.insert(text);
    }
    const bool is_true = fact.verb == "calls"   ? called == fact.texts
                         : fact.verb == "has"   ? found == fact.texts
                         : fact.verb == "lacks" ? found.empty()
                                                : false;
    if (is_true) return "";
    std::string text = fact.function + " " + fact.verb + " other things:";
    for (const std::string& one : fact.verb == "calls" ? called : found) text += " " + one;
    return text;
}

Result<void> check_facts(const std::string& text, const std::string& name) {
    const Directives directives = directives_of(text);
    text::Assembled assembled = TRY(text::assemble(text, name));
    auto module = TRY(wasm::load(std::move(assembled.bytes)));
    const translate::Code code = TRY(translate::translate(*module, {}));
    codegen::Options options;
    options.target = codegen::Target::cuda_burst;
    const codegen::Image image = TRY(codegen::compile(*module, code, options));
    const std::vector<u8>& bytes = image.pieces[0].object;
    const std::vector<std::string> ptx = lines_of(std::string(bytes.begin(), bytes.end()));
    std::string problems;
    for (const Fact& fact : directives.facts)
        if (std::string problem = problem_with(fact, ptx_of(ptx, fact.function)); !problem.empty())
            problems += problem + "\n";
    if (!problems.empty()) return Error{problems};
    return {};
}

class Ir : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Ir, is_what_the_file_says) {
    std::ifstream in(GetParam());
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    if (!directives_of(text).facts.empty()) {
        auto checked = check_facts(text, GetParam().filename());
        EXPECT_TRUE(checked) << checked.error().to_string();
        return;
    }
    const usize at = std::min(text.find(mark), text.size());
    const std::string source = text.substr(0, at), said = text.substr(at);
    auto made = expectations_for(source, GetParam().filename());
    ASSERT_TRUE(made) << made.error().to_string();
    if (const char* bless = std::getenv("GPURUN_BLESS"); bless && *bless == '1') {
        std::ofstream(GetParam()) << source << *made;
    } else {
        EXPECT_EQ(said, *made) << "GPURUN_BLESS=1 writes it anew";
    }
}

INSTANTIATE_TEST_SUITE_P(Files, Ir, testing::ValuesIn(files()),
                         [](const auto& info) { return info.param.stem().string(); });

}  // namespace
}  // namespace gpurun::test
