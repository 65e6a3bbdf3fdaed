// A file is: "\0gpu", the version of its form, a hash of what follows, the module, and the images,
// each with the name of its target. Numbers are 64 bits, the least significant byte first; bytes
// and text stand after their length. Images of targets that are not known here are left out.
#include "engine/package.h"

#include <string_view>

#include "base/format.h"
#include "image/cache.h"

namespace gpurun::engine {
namespace {

constexpr std::string_view magic("\0gpu", 4);
constexpr u64 version = 1;
constexpr usize prefix = 20;  // magic, version and hash

std::string_view as_text(std::span<const u8> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void append_number(std::vector<u8>& bytes, u64 number) {
    for (u32 i = 0; i < 8; i++) bytes.push_back(u8(number >> (8 * i)));
}

void append(std::vector<u8>& bytes, std::span<const u8> part) {
    append_number(bytes, part.size());
    bytes.insert(bytes.end(), part.begin(), part.end());
}

void append(std::vector<u8>& bytes, std::string_view text) {
    append(bytes, {reinterpret_cast<const u8*>(text.data()), text.size()});
}

// What is read, from the front; nothing and zeros once it has ended too early.
class Reader {
public:
    explicit Reader(std::span<const u8> bytes) : bytes_(bytes) {}
    u64 number() {
        u64 n = 0;
        std::span<const u8> part = take(8);
        for (usize i = 0; i < part.size(); i++) n |= u64(part[i]) << (8 * i);
        return n;
    }
    std::span<const u8> part() { return take(number()); }
    std::string text() { return std::string(as_text(part())); }
    bool is_cut_off() const { return is_cut_off_; }
    bool is_at_end() const { return bytes_.empty(); }

private:
    std::span<const u8> take(u64 size) {
        is_cut_off_ |= size > bytes_.size();
        if (is_cut_off_) return {};
        std::span<const u8> taken = bytes_.first(size);
        bytes_ = bytes_.subspan(size);
        return taken;
    }
    std::span<const u8> bytes_;
    bool is_cut_off_ = false;
};

}  // namespace

bool may_be_package(std::string_view start) {
    return start.substr(0, magic.size()) == magic.substr(0, start.size());
}

std::vector<u8> to_bytes(const Package& package) {
    std::vector<u8> content;
    append(content, package.module);
    append_number(content, package.images.size());
    for (const ShippedImage& image : package.images) {
        append(content, codegen::name_of(image.target));
        append(content, image.cpu);
        append(content, image.key);
        append(content, image.bytes);
    }
    std::vector<u8> bytes(magic.begin(), magic.end());
    append_number(bytes, version);
    append_number(bytes, image::hash(as_text(content)));
    bytes.insert(bytes.end(), content.begin(), content.end());
    return bytes;
}

Result<Package> package_from_bytes(std::span<const u8> bytes) {
    if (bytes.size() < prefix) return Error{"is cut off: a .gpu file begins with 20 bytes"};
    Reader start(bytes.subspan(magic.size(), prefix - magic.size()));
    if (const u64 found = start.number(); found != version)
        return Error{format("is a .gpu file of version %llu, this gpu-run reads version %llu",
                            (unsigned long long)found, (unsigned long long)version)};
    const std::span<const u8> content = bytes.subspan(prefix);
    if (start.number() != image::hash(as_text(content)))
        return Error{"is damaged: its checksum does not match"};

    Reader in(content);
    Package package;
    std::span<const u8> module = in.part();
    package.module.assign(module.begin(), module.end());
    for (u64 images = in.number(); images > 0 && !in.is_cut_off(); images--) {
        const std::string target = in.text();
        ShippedImage image;
        image.cpu = in.text();
        image.key = in.text();
        std::span<const u8> part = in.part();
        for (codegen::Target known : codegen::targets) {
            if (target != codegen::name_of(known)) continue;
            image.target = known;
            image.bytes.assign(part.begin(), part.end());
            package.images.push_back(std::move(image));
            break;
        }
    }
    if (in.is_cut_off() || !in.is_at_end())
        return Error{"is damaged: what is in it does not add up to its size"};
    return package;
}

}  // namespace gpurun::engine
