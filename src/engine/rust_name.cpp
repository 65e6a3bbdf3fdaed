// Reads the grammar of RFC 2603. Its depth and its length are bounded: what names refer back to may
// be in them again and again.
#include "engine/rust_name.h"

#include "base/format.h"
#include "base/ints.h"

namespace gpurun::engine {
namespace {

constexpr u32 max_depth = 64;
constexpr usize max_length = 2000;  // of the result
constexpr u32 max_steps = 20'000;

class Reader {
public:
    explicit Reader(std::string_view text) : text_(text) {}

    std::optional<std::string> read() {
        path(false);
        // The crate that it was made for, and what a linker added, are not told.
        is_silent_ = true;
        if (peek() != 0 && peek() != '.') path(false);
        if (is_broken_ || (peek() != 0 && peek() != '.')) return std::nullopt;
        return out_;
    }

private:
    struct Depth {
        explicit Depth(Reader& reader) : reader(reader) {
            if (++reader.depth_ > max_depth || ++reader.steps_ > max_steps) reader.fail();
        }
        ~Depth() { reader.depth_--; }
        Reader& reader;
    };

    void fail() {
        is_broken_ = true;
        at_ = text_.size();
    }
    char peek() const { return at_ < text_.size() ? text_[at_] : 0; }
    char next() {
        if (at_ == text_.size()) fail();
        return is_broken_ ? 0 : text_[at_++];
    }
    bool take(char c) {
        if (peek() != c) return false;
        at_++;
        return true;
    }
    void put(std::string_view text) {
        if (is_silent_ || is_broken_) return;
        if (out_.size() + text.size() > max_length) return fail();
        out_ += text;
    }

    u64 base_62() {
        if (take('_')) return 0;
        u64 value = 0;
        while (!is_broken_ && !take('_')) {
            char c = next();
            u64 digit = 0;
            if (c >= '0' && c <= '9') {
                digit = u64(c - '0');
            } else if (c >= 'a' && c <= 'z') {
                digit = 10 + u64(c - 'a');
            } else if (c >= 'A' && c <= 'Z') {
                digit = 36 + u64(c - 'A');
            } else {
                fail();
            }
            value = value * 62 + digit;  // hashes may go round
        }
        return value + 1;
    }
    u64 disambiguator() { return take('s') ? base_62() + 1 : 0; }

    // Those with characters beyond ASCII stay as they are written.
    std::string_view identifier() {
        take('u');
        usize size = 0;
        if (peek() < '0' || peek() > '9') fail();
        if (!take('0'))
            while (peek() >= '0' && peek() <= '9' && size < max_length)
                size = size * 10 + usize(next() - '0');
        take('_');
        if (size > text_.size() - at_) fail();
        if (is_broken_) return "";
        at_ += size;
        return text_.substr(at_ - size, size);
    }

    template <class Read>
    void back_reference(Read read) {
        const usize behind = at_;
        u64 target = base_62();
        if (target >= behind - 1) return fail();  // only what stands before it
        const usize end = at_;
        at_ = usize(target);
        if (!is_silent_) read();
        if (!is_broken_) at_ = end;
    }

    // `in_type`: generic arguments without the "::" that expressions need.
    void path(bool in_type) {
        Depth depth(*this);
        switch (next()) {
            case 'C':
                disambiguator();
                put(identifier());
                break;
            case 'M':
                implementation();
                put("<");
                type();
                put(">");
                break;
            case 'X': implementation(); [[fallthrough]];
            case 'Y':
                put("<");
                type();
                put(" as ");
                path(true);
                put(">");
                break;
            case 'N': nested(in_type); break;
            case 'I':
                path(in_type);
                put(in_type ? "<" : "::<");
                list([&] { generic_argument(); }, ", ");
                put(">");
                break;
            case 'B': back_reference([&] { path(in_type); }); break;
            default: fail();
        }
    }

    void nested(bool in_type) {
        char space = next();
        path(in_type);
        u64 number = disambiguator();
        std::string_view name = identifier();
        if (space >= 'A' && space <= 'Z') {
            put(space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : "::{");
            if (!name.empty()) put(":"), put(name);
            put(format("#%llu}", (unsigned long long)number));
        } else if (!name.empty()) {
            put("::");
            put(name);
        }
    }

    // Where an impl stands is not told.
    void implementation() {
        bool was_silent = is_silent_;
        is_silent_ = true;
        disambiguator();
        path(false);
        is_silent_ = was_silent;
    }

    template <class Read>
    u32 list(Read read, const char* separator) {
        u32 count = 0;
        for (; !is_broken_ && !take('E'); count++) {
            if (count > 0) put(separator);
            read();
        }
        return count;
    }

    void generic_argument() {
        if (take('L')) {
            base_62();
            put("'_");
        } else if (take('K')) {
            constant();
        } else {
            type();
        }
    }

    static const char* basic_type(char c) {
        switch (c) {
            case 'a': return "i8";
            case 'b': return "bool";
            case 'c': return "char";
            case 'd': return "f64";
            case 'e': return "str";
            case 'f': return "f32";
            case 'h': return "u8";
            case 'i': return "isize";
            case 'j': return "usize";
            case 'l': return "i32";
            case 'm': return "u32";
            case 'n': return "i128";
            case 'o': return "u128";
            case 'p': return "_";
            case 's': return "i16";
            case 't': return "u16";
            case 'u': return "()";
            case 'v': return "...";
            case 'x': return "i64";
            case 'y': return "u64";
            case 'z': return "!";
            default: return nullptr;
        }
    }

    void type() {
        Depth depth(*this);
        if (const char* basic = basic_type(peek())) {
            at_++;
            return put(basic);
        }
        switch (peek()) {
            case 'A':
            case 'S': {
                bool is_array = next() == 'A';
                put("[");
                type();
                if (is_array) put("; "), constant();
                return put("]");
            }
            case 'T': {
                next();
                put("(");
                u32 count = list([&] { type(); }, ", ");
                return put(count == 1 ? ",)" : ")");
            }
            case 'R':
            case 'Q': {
                const char* text = next() == 'R' ? "&" : "&mut ";
                if (take('L')) base_62();
                put(text);
                return type();
            }
            case 'P':
            case 'O': put(next() == 'P' ? "*const " : "*mut "); return type();
            case 'F': next(); return function();
            case 'D': next(); return dynamic();
            case 'B': next(); return back_reference([&] { type(); });
            default: return path(true);
        }
    }

    void function() {
        if (take('G')) base_62();
        if (take('U')) put("unsafe ");
        if (take('K')) {
            put("extern \"");
            put(take('C') ? "C" : identifier());
            put("\" ");
        }
        put("fn(");
        list([&] { type(); }, ", ");
        put(")");
        if (take('u')) return;
        put(" -> ");
        type();
    }

    void dynamic() {
        if (take('G')) base_62();
        put("dyn ");
        list(
            [&] {
                path(true);
                while (take('p')) {
                    put(" with ");
                    put(identifier());
                    put(" = ");
                    type();
                }
            },
            " + ");
        if (take('L')) base_62();
    }

    void constant() {
        Depth depth(*this);
        if (take('p')) return put("_");
        if (take('B')) return back_reference([&] { constant(); });
        bool was_silent = is_silent_;
        is_silent_ = true;
        type();
        is_silent_ = was_silent;
        if (take('n')) put("-");
        std::string digits;
        while (!is_broken_ && !take('_')) digits += next();
        u64 value = 0;
        bool is_short = digits.size() <= 16;
        for (char c : digits) value = value * 16 + u64(c <= '9' ? c - '0' : c - 'a' + 10);
        put(is_short ? std::to_string(value) : "0x" + digits);
    }

    std::string_view text_;
    usize at_ = 0;
    std::string out_;
    u32 depth_ = 0, steps_ = 0;
    bool is_silent_ = false, is_broken_ = false;
};

}  // namespace

std::optional<std::string> rust_v0_name(std::string_view name) {
    if (!name.starts_with("_R")) return std::nullopt;
    return Reader(name.substr(2)).read();
}

}  // namespace gpurun::engine
