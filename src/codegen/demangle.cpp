// LLVM demangles; here is what keeps names that a module made up from taking all time and memory.
#include "codegen/demangle.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/Demangle/ItaniumDemangle.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/ints.h"

namespace gpurun::codegen {
namespace {

// LLVM's parsers recurse: a name may nest as deep as it is long.
constexpr usize max_mangled = 2048;
// What names refer back to is written out again: one of a hundred letters can stand for gigabytes.
constexpr usize max_readable = 8192, max_back_references = 32;

struct Free {
    void operator()(char* text) const { std::free(text); }
};
using Text = std::unique_ptr<char, Free>;

// Stops printing a name once it is too long.
class LimitedBuffer final : public llvm::itanium_demangle::OutputBuffer {
public:
    void printLeft(const llvm::itanium_demangle::Node& node) override {
        if (getCurrentPosition() < max_readable) OutputBuffer::printLeft(node);
    }
    void printRight(const llvm::itanium_demangle::Node& node) override {
        if (getCurrentPosition() < max_readable) OutputBuffer::printRight(node);
    }
};

std::string demangled_itanium(const std::string& name) {
    llvm::ItaniumPartialDemangler parsed;
    if (parsed.partialDemangle(name.c_str())) return name;
    LimitedBuffer buffer;
    const char* end = parsed.finishDemangle(&buffer);
    const Text text(buffer.getBuffer());
    const bool is_whole = end && buffer.getCurrentPosition() < max_readable;
    return is_whole ? std::string(text.get()) : name;
}

std::string demangled_rust(const std::string& name) {
    if (usize(std::ranges::count(name, 'B')) > max_back_references) return name;
    const Text text(llvm::rustDemangle(name));
    const std::string_view readable = text ? text.get() : "";
    return readable.empty() || readable.size() > max_readable ? name : std::string(readable);
}

// Turns "$LT$" and the like, and ".." for "::", in an identifier of Rust into what they stand for.
std::string unescaped(std::string_view text) {
    static constexpr std::pair<std::string_view, char> named[] = {
        {"SP", '@'}, {"BP", '*'}, {"RF", '&'}, {"LT", '<'},
        {"GT", '>'}, {"LP", '('}, {"RP", ')'}, {"C", ','}};
    std::string result;
    if (text.starts_with("_$")) text.remove_prefix(1);
    while (!text.empty()) {
        usize end = text[0] == '$' ? text.find('$', 1) : text.npos;
        std::string_view inner = end == text.npos ? "" : text.substr(1, end - 1);
        auto same = [&](const auto& row) { return row.first == inner; };
        auto row = std::ranges::find_if(named, same);
        u32 code = 0;
        bool is_hex =
            inner.size() > 1 && inner.size() < 8 && inner[0] == 'u' &&
            std::from_chars(inner.data() + 1, inner.data() + inner.size(), code, 16).ptr ==
                inner.data() + inner.size();
        if (row != std::end(named)) {
            result += row->second;
        } else if (is_hex && code >= 0x20 && code < 0x7f) {
            result += char(code);
        } else if (text.starts_with("..")) {
            result += "::";
            end = 1;
        } else {
            result += text[0];
            end = 0;
        }
        text.remove_prefix(end + 1);
    }
    return result;
}

// Rust's first scheme is that of C++ with a hash as the last part: "a::b::h0123456789abcdef".
std::string without_rust_hash(const std::string& name) {
    constexpr usize hash_size = 19;
    if (name.size() <= hash_size) return name;
    const std::string_view hash = std::string_view(name).substr(name.size() - hash_size);
    if (!hash.starts_with("::h") || hash.find_first_not_of("0123456789abcdef", 3) != hash.npos)
        return name;
    std::string result;
    std::string_view left = std::string_view(name).substr(0, name.size() - hash_size);
    for (usize end = 0; end != left.npos; left.remove_prefix(std::min(left.size(), end + 2))) {
        end = left.find("::");
        result += (result.empty() ? "" : "::") + unescaped(left.substr(0, end));
        if (end == left.npos) break;
    }
    return result;
}

}  // namespace

std::string demangled(std::string_view name) {
    const std::string whole(name);
    auto is_control = [](char c) { return u8(c) < 0x20 || c == 0x7f; };
    if (name.size() > max_mangled || std::ranges::any_of(name, is_control)) return whole;
    if (name.starts_with("_R")) return demangled_rust(whole);
    return name.starts_with("_Z") ? without_rust_hash(demangled_itanium(whole)) : whole;
}

}  // namespace gpurun::codegen
