// Errors of the text format, and the smallest rules of its grammar.
#include "text/cursor.h"

#include <unordered_set>

#include "base/format.h"
#include "base/utf8.h"
#include "text/number.h"
#include "wasm/instr.h"

namespace gpurun::text {

namespace {

constexpr usize max_quoted_text = 40;  // in a message; then "…"

std::string shorten(std::string_view text) {
    if (text.size() <= max_quoted_text) return std::string(text);
    usize length = max_quoted_text;
    while (length > 0 && (text[length] & 0xc0) == 0x80) length--;
    return std::string(text.substr(0, length)) + "…";
}

constexpr std::string_view other_keywords[] = {
    "i8",
    "i16",
    "i32",
    "i64",
    "f32",
    "f64",
    "v128",
    "mut",
    "i8x16",
    "i16x8",
    "i32x4",
    "i64x2",
    "f32x4",
    "f64x2",
    "any",
    "eq",
    "i31",
    "struct",
    "array",
    "none",
    "func",
    "nofunc",
    "extern",
    "noextern",
    "exn",
    "noexn",
    "anyref",
    "eqref",
    "i31ref",
    "structref",
    "arrayref",
    "nullref",
    "funcref",
    "nullfuncref",
    "externref",
    "nullexternref",
    "exnref",
    "nullexnref",
    "ref",
    "null",
    "type",
    "rec",
    "sub",
    "final",
    "field",
    "param",
    "result",
    "local",
    "module",
    "import",
    "export",
    "table",
    "memory",
    "global",
    "tag",
    "start",
    "elem",
    "data",
    "declare",
    "offset",
    "item",
    "shared",
    "then",
    "do",
    "catch_ref",
    "catch_all_ref",
    "nan",
    "inf",
    "nan:canonical",
    "nan:arithmetic",
    "binary",
    "quote",
    "definition",
    "instance",
    "register",
    "invoke",
    "get",
    "either",
    "thread",
    "wait",
    "ref.extern",
    "ref.host",
    "ref.any",
    "ref.struct",
    "ref.array",
    "ref.exn",
    "assert_return",
    "assert_trap",
    "assert_exhaustion",
    "assert_exception",
    "assert_suspension",
    "assert_malformed",
    "assert_malformed_custom",
    "assert_invalid",
    "assert_invalid_custom",
    "assert_unlinkable",
};

}  // namespace

bool is_known_keyword(std::string_view word) {
    static const std::unordered_set<std::string_view> known = [] {
        std::unordered_set<std::string_view> words(std::begin(other_keywords),
                                                   std::end(other_keywords));
        for (u32 op = 0; op < u32(wasm::Op::count); op++) {
            words.insert(wasm::op_info(wasm::Op(op)).text);
        }
        return words;
    }();
    if (known.contains(word)) return true;
    for (std::string_view prefix : {"offset=", "align=", "nan:"}) {
        if (!word.starts_with(prefix)) continue;
        std::string_view number = word.substr(prefix.size());
        bool is_hex = number.starts_with("0x");
        return classify_number(number) == Numeral::natural && (is_hex || prefix != "nan:");
    }
    return false;
}

std::string to_string(const SyntaxError& error, std::string_view file) {
    return format("%.*s:%u:%u: %s", int(file.size()), file.data(), error.position.line,
                  error.position.column, error.message.c_str());
}

void Cursor::fail_at(Position position, std::string message) {
    if (failed_) return;
    failed_ = true;
    error_ = {std::move(message), position};
    at_ = end_;
}

void Cursor::unexpected(const Token& token) {
    std::string text = shorten(tokens_.text(token));
    switch (token.kind) {
        case Kind::error: return fail(token, tokens_.error(token));
        case Kind::reserved: return fail(token, "unknown operator " + text);
        case Kind::keyword:
            return fail(token, (is_known_keyword(tokens_.text(token)) ? "unexpected token "
                                                                      : "unknown operator ") +
                                   text);
        case Kind::end: return fail(token, "unexpected token: end of text");
        default: return fail(token, "unexpected token " + text);
    }
}

const Token& Cursor::expect(Kind kind) {
    if (is(kind)) return take();
    unexpected();
    return stop_;
}

std::string Cursor::expect_id() {
    const Token& token = expect(Kind::id);
    return failed() ? std::string() : std::string(tokens_.id(token));
}

std::string Cursor::expect_string() {
    const Token& token = expect(Kind::string);
    return failed() ? std::string() : tokens_.string(token);
}

std::string Cursor::expect_name() {
    const Token& token = peek();
    std::string name = expect_string();
    if (!is_utf8(name)) fail(token, "malformed UTF-8 encoding");
    return name;
}

u32 Cursor::expect_u32(const char* type) {
    const Token& token = expect(Kind::natural);
    if (failed()) return 0;
    std::optional<u64> value = parse_natural(tokens_.text(token));
    u64 max = std::string_view(type) == "i8" ? 0xff : ~u32{0};
    if (value && *value <= max) return u32(*value);
    fail(token, format("%s constant out of range: %s", type, shorten(tokens_.text(token)).c_str()));
    return 0;
}

u64 Cursor::expect_u64() {
    const Token& token = expect(Kind::natural);
    if (failed()) return 0;
    std::optional<u64> value = parse_natural(tokens_.text(token));
    if (value) return *value;
    fail(token, "i64 constant out of range: " + shorten(tokens_.text(token)));
    return 0;
}

}  // namespace gpurun::text
