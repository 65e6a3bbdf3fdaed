// The lexer: characters to tokens, with comments and annotations taken out.
#include "text/lexer.h"

#include "base/utf8.h"
#include "text/number.h"

namespace gpurun::text {

namespace {

constexpr bool is_id_char(unsigned char c) {
    if (c >= '0' && c <= '9') return true;
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return true;
    return c != 0 &&
           std::string_view("!#$%&'*+-./:<=>?@\\^_`|~").find(char(c)) != std::string_view::npos;
}

constexpr bool is_hex(char c) {
    return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'f');
}
constexpr u32 hex_value(char c) { return c <= '9' ? u32(c - '0') : u32((c | 0x20) - 'a') + 10; }

struct CharTable {
    bool id[256] = {};
    constexpr CharTable() {
        for (u32 c = 0; c < 256; c++) id[c] = is_id_char(static_cast<unsigned char>(c));
    }
};
constexpr CharTable chars;

void append_utf8(u32 code, std::string& out) {
    if (code < 0x80) {
        out += char(code);
    } else if (code < 0x800) {
        out += char(0xc0 | code >> 6);
        out += char(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        out += char(0xe0 | code >> 12);
        out += char(0x80 | (code >> 6 & 0x3f));
        out += char(0x80 | (code & 0x3f));
    } else {
        out += char(0xf0 | code >> 18);
        out += char(0x80 | (code >> 12 & 0x3f));
        out += char(0x80 | (code >> 6 & 0x3f));
        out += char(0x80 | (code & 0x3f));
    }
}

// What the text between two quotes stands for. The lexer has checked its escapes.
void unescape(std::string_view text, std::string& out) {
    for (usize i = 0; i < text.size();) {
        if (text[i] != '\\') {
            usize end = text.find('\\', i);
            if (end == text.npos) end = text.size();
            out.append(text, i, end - i);
            i = end;
            continue;
        }
        char c = text[i + 1];
        i += 2;
        switch (c) {
            case 't': out += '\t'; break;
            case 'n': out += '\n'; break;
            case 'r': out += '\r'; break;
            case '"':
            case '\'':
            case '\\': out += c; break;
            case 'u': {
                u32 code = 0;
                for (i++; text[i] != '}'; i++) {
                    if (text[i] != '_') code = code << 4 | hex_value(text[i]);
                }
                i++;
                append_utf8(code, out);
                break;
            }
            default: out += char(hex_value(c) << 4 | hex_value(text[i++]));
        }
    }
}

}  // namespace

const char* to_string(Annotation::Kind kind) {
    switch (kind) {
        case Annotation::Kind::name: return "@name";
        case Annotation::Kind::custom: return "@custom";
        case Annotation::Kind::branch_hint: return "@metadata.code.branch_hint";
    }
    return "";
}

class Lexer {
public:
    explicit Lexer(Tokens& out) : out_(out), source_(out.source_) {}

    void run() {
        out_.tokens_.reserve(source_.size() / 6 + 16);
        while (true) {
            skip_space();
            if (at_ == source_.size()) break;
            if (looking_at("(@")) {
                annotation();
            } else {
                push(next());
            }
        }
        u32 end = out_.size();
        for (u32 left : open_) out_.tokens_[left].link = end;
        push(start(Token::Kind::end));
    }

private:
    static constexpr const char* bad_utf8 = "malformed UTF-8 encoding";

    bool looking_at(std::string_view text) const { return source_.substr(at_).starts_with(text); }
    char peek(u32 ahead = 0) const {
        return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
    }

    Token start(Token::Kind kind) const {
        return {kind, at_, 0, {line_, at_ - line_begin_ + 1}, 0};
    }

    Token fail(const char* message, Token token) {
        token.kind = Token::Kind::error;
        token.length = at_ - token.begin;
        token.link = u32(out_.errors_.size());
        out_.errors_.push_back(message);
        return token;
    }

    void push(const Token& token) {
        u32 index = out_.size();
        out_.tokens_.push_back(token);
        if (token.kind == Token::Kind::left) {
            open_.push_back(index);
        } else if (token.kind == Token::Kind::right && !open_.empty()) {
            out_.tokens_[open_.back()].link = index;
            open_.pop_back();
        }
    }

    void newline() {
        bool crlf = peek() == '\r' && peek(1) == '\n';
        at_ += crlf ? 2 : 1;
        line_++;
        line_begin_ = at_;
    }

    // One character of a comment: any, as long as it is UTF-8.
    void skip_comment_char() {
        if (peek() == '\n' || peek() == '\r') return newline();
        u32 length = utf8_length(source_.substr(at_));
        Token bad = start(Token::Kind::error);
        at_ += length ? length : 1;
        if (!length) push(fail(bad_utf8, bad));
    }

    void skip_block_comment() {
        Token begin = start(Token::Kind::error);
        u32 depth = 0;
        while (at_ < source_.size()) {
            if (looking_at("(;")) {
                depth++;
                at_ += 2;
            } else if (looking_at(";)")) {
                at_ += 2;
                if (--depth == 0) return;
            } else {
                skip_comment_char();
            }
        }
        push(fail("unclosed comment", begin));
    }

    void skip_space() {
        while (at_ < source_.size()) {
            char c = peek();
            if (c == ' ' || c == '\t') {
                at_++;
            } else if (c == '\n' || c == '\r') {
                newline();
            } else if (looking_at(";;")) {
                while (at_ < source_.size() && peek() != '\n' && peek() != '\r')
                    skip_comment_char();
            } else if (looking_at("(;")) {
                skip_block_comment();
            } else {
                return;
            }
        }
    }

    // Moves past a string that starts here; a message if it is malformed, and then stands at the
    // character that is wrong.
    const char* skip_string() {
        at_++;
        while (true) {
            char c = peek();
            if (at_ == source_.size() || c == '\n' || c == '\r') return "unclosed string literal";
            if (c == '"') break;
            if (c == '\\') {
                if (const char* error = skip_escape()) return error;
                continue;
            }
            if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
                return "illegal character in string literal";
            u32 length = utf8_length(source_.substr(at_));
            if (!length) return bad_utf8;
            at_ += length;
        }
        at_++;
        return nullptr;
    }

    const char* skip_escape() {
        char c = peek(1);
        if (c != '\0' && std::string_view("tnr\"'\\").find(c) != std::string_view::npos) {
            at_ += 2;
            return nullptr;
        }
        if (is_hex(c) && is_hex(peek(2))) {
            at_ += 3;
            return nullptr;
        }
        if (c != 'u' || peek(2) != '{' || !is_hex(peek(3))) return "illegal escape";
        u32 code = 0;
        for (at_ += 3; is_hex(peek()) || (peek() == '_' && is_hex(peek(1))); at_++) {
            if (peek() == '_') continue;
            code = code << 4 | hex_value(peek());
            if (code > 0x10ffff) return "illegal escape: code point out of range";
        }
        if (peek() != '}') return "illegal escape";
        if (code >= 0xd800 && code < 0xe000) return "illegal escape: surrogate code point";
        at_++;
        return nullptr;
    }

    Token next() {
        Token token = start(Token::Kind::reserved);
        char c = peek();
        if (c == '(' || c == ')') {
            at_++;
            token.kind = c == '(' ? Token::Kind::left : Token::Kind::right;
            token.length = 1;
            return token;
        }
        if (c == '"' || chars.id[static_cast<unsigned char>(c)]) return word(token);
        if (c != '\0' && std::string_view(",;[]{}").find(c) != std::string_view::npos) {
            at_++;
            token.length = 1;
            return token;
        }
        u32 length = utf8_length(source_.substr(at_));
        at_ += length ? length : 1;
        return fail(length ? "illegal character" : bad_utf8, token);
    }

    // A maximal run of id characters and strings: one token, reserved if it is none of the others.
    Token word(Token token) {
        char first = peek();
        u32 strings = 0;
        while (at_ < source_.size()) {
            if (chars.id[static_cast<unsigned char>(peek())]) {
                at_++;
            } else if (peek() == '"') {
                bool is_quoted_id = first == '$' && at_ == token.begin + 1;
                const char* error = skip_string();
                if (error && is_quoted_id && error != bad_utf8) error = "empty identifier";
                if (error) return fail(error, token);
                strings++;
            } else {
                break;
            }
        }
        token.length = at_ - token.begin;
        std::string_view text = out_.text(token);
        if (first == '$') return id(token, text, strings);
        if (strings) {
            bool alone = first == '"' && strings == 1 && skip_one_string(text) == text.size();
            if (alone) token.kind = Token::Kind::string;
            return token;
        }
        if (first >= 'a' && first <= 'z') {
            token.kind = Token::Kind::keyword;
        } else {
            switch (classify_number(text)) {
                case Numeral::none: break;
                case Numeral::natural: token.kind = Token::Kind::natural; break;
                case Numeral::integer: token.kind = Token::Kind::integer; break;
                case Numeral::real: token.kind = Token::Kind::real; break;
            }
        }
        return token;
    }

    static usize skip_one_string(std::string_view text) {
        usize i = 1;
        while (text[i] != '"') i += text[i] == '\\' ? 2 : 1;
        return i + 1;
    }

    Token id(Token token, std::string_view text, u32 strings) {
        if (text.size() == 1) return fail("empty identifier", token);
        if (strings == 0) {
            token.kind = Token::Kind::id;
            return token;
        }
        if (text[1] != '"' || skip_one_string(text.substr(1)) != text.size() - 1) return token;
        std::string name;
        unescape(text.substr(2, text.size() - 3), name);
        if (name.empty()) return fail("empty identifier", token);
        if (!is_utf8(name)) return fail(bad_utf8, token);
        token.kind = Token::Kind::id;
        out_.quoted_ids_.push_back(std::move(name));
        token.link = u32(out_.quoted_ids_.size());
        return token;
    }

    // The name after "(@"; empty if there is none.
    std::string annotation_name(const char*& error) {
        std::string name;
        u32 begin = at_;
        if (peek() == '"') {
            error = skip_string();
            if (error && error != bad_utf8)
                error = nullptr;
            else if (!error)
                unescape(source_.substr(begin + 1, at_ - begin - 2), name);
            if (!is_utf8(name)) error = bad_utf8;
        } else {
            while (at_ < source_.size() && chars.id[static_cast<unsigned char>(peek())]) at_++;
            name = source_.substr(begin, at_ - begin);
        }
        return name;
    }

    void annotation() {
        Token begin = start(Token::Kind::error);
        at_ += 2;
        const char* error = nullptr;
        std::string name = annotation_name(error);
        if (error) return push(fail(error, begin));
        if (name.empty()) return push(fail("empty annotation id", begin));

        Annotation found{Annotation::Kind::name, out_.size(), {}, begin.position};
        bool is_known = true;
        if (name == "custom")
            found.kind = Annotation::Kind::custom;
        else if (name == "metadata.code.branch_hint")
            found.kind = Annotation::Kind::branch_hint;
        else if (name != "name")
            is_known = false;

        // Inside, anything goes that is made of tokens; only parentheses matter.
        for (u32 depth = 1;;) {
            skip_space();
            if (at_ == source_.size()) return push(fail("unclosed annotation", begin));
            Token token = next();
            if (token.kind == Token::Kind::error) {
                // An id that is empty elsewhere is a mere run of characters here.
                if (out_.error(token) != std::string_view("empty identifier")) push(token);
                token.kind = Token::Kind::reserved;
            }
            if (token.kind == Token::Kind::left) depth++;
            if (token.kind == Token::Kind::right && --depth == 0) break;
            if (is_known) found.contents.push_back(token);
        }
        if (is_known) {
            found.at = out_.size();
            out_.annotations_.push_back(std::move(found));
        }
    }

    Tokens& out_;
    std::string_view source_;
    u32 at_ = 0, line_ = 1, line_begin_ = 0;
    std::vector<u32> open_;
};

Tokens::Tokens(std::string_view source) : source_(source) { Lexer(*this).run(); }

std::string_view Tokens::id(const Token& token) const {
    return token.link ? std::string_view(quoted_ids_[token.link - 1]) : text(token).substr(1);
}

void Tokens::append_string(const Token& token, std::string& out) const {
    std::string_view quoted = text(token);
    unescape(quoted.substr(1, quoted.size() - 2), out);
}

std::string Tokens::string(const Token& token) const {
    std::string out;
    append_string(token, out);
    return out;
}

}  // namespace gpurun::text
