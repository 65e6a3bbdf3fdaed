// Reads custom sections: names and branch hints. A module is valid without them, whatever is wrong
// in them; only the section's own name must be well formed.
#include <algorithm>

#include "base/utf8.h"
#include "wasm/decode.h"

namespace gpurun::wasm {

void Decoder::custom_section() {
    CustomSection section;
    section.name = name();
    section.begin = in_.position();
    section.end = in_.end();
    in_.skip(in_.left());
    if (in_.ok()) m_.customs.push_back(std::move(section));
}

namespace {

using NameMap = std::vector<std::pair<u32, std::string>>;

std::string read_name(BinaryReader& in) {
    u32 size = in.leb_u32();
    const u8* text = in.data();
    in.skip(size);
    if (in.ok() && !is_utf8({reinterpret_cast<const char*>(text), size}))
        in.fail("malformed UTF-8 encoding");
    return in.ok() ? std::string(reinterpret_cast<const char*>(text), size) : std::string();
}

// Reads a count of entries that have two bytes at least.
u32 read_count(BinaryReader& in) {
    u32 n = in.leb_u32();
    if (n > in.left() / 2) in.fail("unexpected end");
    return in.ok() ? n : 0;
}

NameMap read_name_map(BinaryReader& in) {
    NameMap map;
    u32 n = read_count(in);
    map.reserve(n);
    for (u32 i = 0; i < n && in.ok(); i++) {
        u32 index = in.leb_u32();
        map.emplace_back(index, read_name(in));
    }
    std::sort(map.begin(), map.end());
    return map;
}

bool read_names(const Bytes& bytes, const CustomSection& section, Names& names) {
    BinaryReader in(bytes.data(), section.begin, section.end);
    while (in.ok() && !in.at_end()) {
        u8 id = in.byte();
        u32 size = in.leb_u32();
        BinaryReader part = in;
        in.skip(size);
        if (!in.ok()) break;
        part = BinaryReader(bytes.data(), part.position(), in.position());
        if (id == 0) names.module = read_name(part);
        if (id == 1) names.funcs = read_name_map(part);
        if (id == 2) {
            u32 n = read_count(part);
            for (u32 i = 0; i < n && part.ok(); i++) {
                u32 func = part.leb_u32();
                names.locals.emplace_back(func, read_name_map(part));
            }
            std::sort(names.locals.begin(), names.locals.end());
        }
        if (!part.ok()) return false;
    }
    return in.ok();
}

bool read_branch_hints(const Module& module, const CustomSection& section,
                       std::vector<BranchHint>& hints) {
    BinaryReader in(module.bytes.data(), section.begin, section.end);
    u32 funcs = read_count(in);
    for (u32 i = 0; i < funcs && in.ok(); i++) {
        u32 func = in.leb_u32();
        if (func < module.imported_funcs || func >= module.funcs.size()) return false;
        u32 n = read_count(in);
        for (u32 k = 0; k < n && in.ok(); k++) {
            BranchHint hint{func, in.leb_u32(), false};
            u32 size = in.leb_u32();
            u8 value = in.byte();
            if (size != 1 || value > 1) return false;
            hint.likely = value;
            hints.push_back(hint);
        }
    }
    return in.ok() && in.at_end();
}

}  // namespace

void read_custom_sections(Module& module) {
    for (const CustomSection& section : module.customs) {
        if (section.name == "name") {
            Names names;
            if (read_names(module.bytes, section, names)) module.names = std::move(names);
        }
        if (section.name == "metadata.code.branch_hint") {
            std::vector<BranchHint> hints;
            if (read_branch_hints(module, section, hints)) module.branch_hints = std::move(hints);
        }
    }
}

}  // namespace gpurun::wasm
