// Images as bytes: what is kept of them, and shipped. Nothing that is read is trusted.
#include <cstring>
#include <iterator>

#include "codegen/codegen.h"

namespace gpurun::codegen {
namespace {

constexpr u64 magic = 0x31'47'4d'49'4e'52'47;  // "GRNIMG1"

class Writer {
public:
    void number(u64 n) {
        for (u32 i = 0; i < 8; i++) bytes.push_back(u8(n >> (8 * i)));
    }
    void text(std::string_view t) {
        number(t.size());
        bytes.insert(bytes.end(), t.begin(), t.end());
    }
    std::vector<u8> bytes;
};

class Reader {
public:
    explicit Reader(std::span<const u8> bytes) : bytes_(bytes) {}
    u64 number() {
        u64 n = 0;
        std::span<const u8> part = take(8);
        for (usize i = 0; i < part.size(); i++) n |= u64(part[i]) << (8 * i);
        return n;
    }
    std::span<const u8> take(u64 size) {
        is_bad |= size > bytes_.size();
        if (is_bad) return {};
        std::span<const u8> part = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return part;
    }
    bool is_at_end() const { return bytes_.empty(); }
    bool is_bad = false;

private:
    std::span<const u8> bytes_;
};

}  // namespace

const char* name_of(Target target) {
    static constexpr const char* names[] = {"host", "cuda-burst", "cuda-space", "cuda-machine"};
    static_assert(std::size(names) == std::size(targets));
    return names[usize(target)];
}

std::vector<u8> to_bytes(const Image& image) {
    Writer out;
    out.number(magic);
    out.number(image.functions);
    out.number(image.interpreted);
    out.number(image.pieces.size());
    for (const Image::Piece& piece : image.pieces) {
        out.text(piece.enter);
        out.number(piece.entries.size());
        for (u32 entry : piece.entries) out.number(entry);
        out.text({reinterpret_cast<const char*>(piece.object.data()), piece.object.size()});
    }
    return std::move(out.bytes);
}

Result<Image> from_bytes(std::span<const u8> bytes, u32 code_words) {
    const Error damaged{"the machine code is damaged"};
    Reader in(bytes);
    if (in.number() != magic) return damaged;
    Image image;
    image.functions = u32(in.number());
    image.interpreted = u32(in.number());
    for (u64 pieces = in.number(); pieces > 0 && !in.is_bad; pieces--) {
        Image::Piece& piece = image.pieces.emplace_back();
        std::span<const u8> name = in.take(in.number());
        piece.enter.assign(name.begin(), name.end());
        for (u64 entries = in.number(); entries > 0 && !in.is_bad; entries--) {
            const u64 position = in.number();
            in.is_bad |= position >= code_words;
            piece.entries.push_back(u32(position));
        }
        std::span<const u8> object = in.take(in.number());
        piece.object.assign(object.begin(), object.end());
    }
    if (in.is_bad || !in.is_at_end()) return damaged;
    return image;
}

}  // namespace gpurun::codegen
