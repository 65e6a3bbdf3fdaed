// A file is: "\0gpu", the version of its form, a hash of what follows, the module, and the images,
// each with the name of its target. Numbers are 64 bits, the least significant byte first; bytes
// and text stand after their length. Images of targets that are not known here are left out.
#include "engine/package.h"

#include "base/byte_file.h"
#include "base/format.h"
#include "base/hash.h"

namespace gpurun::engine {
namespace {

constexpr std::string_view magic("\0gpu", 4);
constexpr u64 version = 1;
constexpr usize prefix = 20;  // magic, version and hash

}  // namespace

bool may_be_package(std::string_view start) {
    return start.substr(0, magic.size()) == magic.substr(0, start.size());
}

std::vector<u8> to_bytes(const Package& package) {
    ByteWriter content;
    content.part(package.module);
    content.number(package.images.size());
    for (const ShippedImage& image : package.images) {
        content.text(codegen::name_of(image.target));
        content.text(image.cpu);
        content.text(image.key);
        content.part(image.bytes);
    }
    ByteWriter file;
    file.bytes.assign(magic.begin(), magic.end());
    file.number(version);
    file.number(hash(as_text(content.bytes)));
    file.bytes.insert(file.bytes.end(), content.bytes.begin(), content.bytes.end());
    return std::move(file.bytes);
}

Result<Package> package_from_bytes(std::span<const u8> bytes) {
    if (bytes.size() < prefix) return Error{"is cut off: a .gpu file begins with 20 bytes"};
    ByteReader start(bytes.subspan(magic.size(), prefix - magic.size()));
    if (const u64 found = start.number(); found != version)
        return Error{format("is a .gpu file of version %llu, this gpu-run reads version %llu",
                            (unsigned long long)found, (unsigned long long)version)};
    const std::span<const u8> content = bytes.subspan(prefix);
    if (start.number() != hash(as_text(content)))
        return Error{"is damaged: its checksum does not match"};

    ByteReader in(content);
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
