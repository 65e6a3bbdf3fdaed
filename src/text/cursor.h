// Walks over a range of tokens. The first error sticks: from then on the cursor stands at the
// end, where no grammar rule matches, so that callers may check once.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/ints.h"
#include "text/lexer.h"

namespace gpurun::text {

struct SyntaxError {
    std::string message;  // the suite's wording, then what was found
    Position position;
};

// "file.wat:3:7: unknown operator i32.foo"
std::string to_string(const SyntaxError& error, std::string_view file);

class Cursor {
public:
    using Kind = Token::Kind;

    Cursor(const Tokens& tokens, u32 begin, u32 end) : tokens_(tokens), at_(begin), end_(end) {
        stop_.position = tokens[end].position;
        stop_.begin = tokens[end].begin;
    }

    const Tokens& tokens() const { return tokens_; }
    u32 at() const { return at_; }
    void move_to(u32 index) {
        if (!failed_) at_ = index < end_ ? index : end_;
    }

    const Token& peek(u32 ahead = 0) const {
        return ahead < end_ - at_ ? tokens_[at_ + ahead] : stop_;
    }
    bool is(Kind kind, u32 ahead = 0) const { return peek(ahead).kind == kind; }
    bool is_keyword(std::string_view word, u32 ahead = 0) const {
        const Token& token = peek(ahead);
        return token.kind == Kind::keyword && tokens_.text(token) == word;
    }
    bool is_left(std::string_view word) const { return is(Kind::left) && is_keyword(word, 1); }
    bool is_index() const { return is(Kind::natural) || is(Kind::id); }
    bool at_end() const { return at_ == end_; }
    std::string_view text(u32 ahead = 0) const { return tokens_.text(peek(ahead)); }

    const Token& take() {
        const Token& token = peek();
        if (at_ < end_) at_++;
        return token;
    }
    bool accept(Kind kind) { return is(kind) && (take(), true); }
    bool accept_keyword(std::string_view word) { return is_keyword(word) && (take(), true); }
    bool accept_left(std::string_view word) { return is_left(word) && (take(), take(), true); }
    // Takes one token of the kind, or fails and returns the end.
    const Token& expect(Kind kind);
    void expect_right() { expect(Kind::right); }
    std::string expect_id();  // without its dollar
    std::string expect_string();
    std::string expect_name();  // a string that is UTF-8
    u32 expect_u32(const char* type = "i32");
    u64 expect_u64();

    bool failed() const { return failed_; }
    const SyntaxError& error() const { return error_; }
    void fail(const Token& token, std::string message) {
        fail_at(token.position, std::move(message));
    }
    void fail_at(Position position, std::string message);
    // Fails with what the suite says of a token that does not belong here.
    void unexpected() { unexpected(peek()); }
    void unexpected(const Token& token);

private:
    const Tokens& tokens_;
    u32 at_, end_;
    Token stop_;
    bool failed_ = false;
    SyntaxError error_;
};

// Whether a word means something somewhere in the text format or in scripts.
bool is_known_keyword(std::string_view word);

}  // namespace gpurun::text
