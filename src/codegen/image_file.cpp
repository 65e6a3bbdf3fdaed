// Images as bytes: what is kept of them, and shipped. Nothing that is read is trusted.
#include <cstring>
#include <iterator>

#include "base/byte_file.h"
#include "codegen/codegen.h"

namespace gpurun::codegen {
namespace {

constexpr u64 magic = 0x32'47'4d'49'4e'52'47;  // "GRNIMG2"

}  // namespace

const char* name_of(Target target) {
    static constexpr const char* names[] = {"host", "cuda-burst", "cuda-space", "cuda-machine",
                                            "cuda-interleaved"};
    static_assert(std::size(names) == std::size(targets));
    return names[usize(target)];
}

std::vector<u8> to_bytes(const Image& image) {
    ByteWriter out;
    out.number(magic);
    out.number(image.functions);
    out.number(image.interpreted);
    out.number(image.missing);
    out.number(image.all_functions);
    out.number(image.pieces.size());
    for (const Image::Piece& piece : image.pieces) {
        out.text(piece.enter);
        out.number(piece.entries.size());
        for (u32 entry : piece.entries) out.number(entry);
        out.number(piece.functions.size());
        for (u32 func : piece.functions) out.number(func);
        out.part(piece.object);
    }
    return std::move(out.bytes);
}

Result<Image> from_bytes(std::span<const u8> bytes, u32 code_words) {
    const Error damaged{"the machine code is damaged"};
    ByteReader in(bytes);
    bool is_bad = false;
    if (in.number() != magic) return damaged;
    Image image;
    image.functions = u32(in.number());
    image.interpreted = u32(in.number());
    image.missing = u32(in.number());
    image.all_functions = u32(in.number());
    for (u64 pieces = in.number(); pieces > 0 && !in.is_cut_off(); pieces--) {
        Image::Piece& piece = image.pieces.emplace_back();
        piece.enter = in.text();
        for (u64 entries = in.number(); entries > 0 && !in.is_cut_off(); entries--) {
            const u64 position = in.number();
            is_bad |= position >= code_words;
            piece.entries.push_back(u32(position));
        }
        for (u64 functions = in.number(); functions > 0 && !in.is_cut_off(); functions--) {
            const u64 func = in.number();
            is_bad |= func >= image.all_functions ||
                      (!piece.functions.empty() && func <= piece.functions.back());
            piece.functions.push_back(u32(func));
        }
        std::span<const u8> object = in.part();
        piece.object.assign(object.begin(), object.end());
    }
    if (is_bad || in.is_cut_off() || !in.is_at_end()) return damaged;
    return image;
}

}  // namespace gpurun::codegen
