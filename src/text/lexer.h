// Splits WebAssembly text into tokens. Never fails: what is not a token becomes an error token,
// which no grammar accepts, so that a script with one bad module can still be read past it.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/ints.h"
#include "text/assemble.h"

namespace gpurun::text {

struct Token {
    enum class Kind : u8 {
        left,
        right,     // parentheses
        keyword,   // starts with a lower-case letter, nan and inf included
        id,        // $name or $"name"
        string,    // its escapes are well-formed
        natural,   // an integer without a sign
        integer,   // one with a sign
        real,      // any other number, but for nan and inf without a sign
        reserved,  // looks like a token, means nothing
        error,
        end,
    };

    Kind kind = Kind::end;
    u32 begin = 0, length = 0;  // in the source
    Position position;
    u32 link = 0;  // left: index of the right that closes it, or of the end; else private
};

// An annotation that means something to the assembler: (@name …), (@custom …) or
// (@metadata.code.branch_hint …). All others are skipped by the lexer.
struct Annotation {
    enum class Kind : u8 { name, custom, branch_hint };

    Kind kind;
    u32 at;                       // index of the token it stands before
    std::vector<Token> contents;  // between the name and the closing parenthesis; links unset
    Position position;
};

const char* to_string(Annotation::Kind kind);

// The tokens of one source, `end` last. Refers to the source, which must outlive it.
class Tokens {
public:
    explicit Tokens(std::string_view source);

    const Token& operator[](u32 index) const { return tokens_[index]; }
    u32 size() const { return u32(tokens_.size()); }
    const std::vector<Annotation>& annotations() const { return annotations_; }  // sorted by `at`

    std::string_view text(const Token& token) const {
        return source_.substr(token.begin, token.length);
    }
    // The name of an id, without its dollar and with escapes resolved.
    std::string_view id(const Token& token) const;
    const char* error(const Token& token) const { return errors_[token.link]; }
    // Appends what the string stands for.
    void append_string(const Token& token, std::string& out) const;
    std::string string(const Token& token) const;

private:
    friend class Lexer;

    std::string_view source_;
    std::vector<Token> tokens_;
    std::vector<Annotation> annotations_;
    std::deque<std::string> quoted_ids_;
    std::vector<const char*> errors_;
};

}  // namespace gpurun::text
