// Decodes the frame of a module: the header and the sections in their order. Checks what must agree
// between them.
#include "wasm/decode.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "base/format.h"
#include "base/utf8.h"
#include "wasm/limits.h"

namespace gpurun::wasm {

namespace {

enum class Section : u8 {
    custom,
    type,
    import,
    function,
    table,
    memory,
    global,
    export_,
    start,
    elem,
    code,
    data,
    data_count,
    tag,
    count,
};

// The place of each section in a module. Every rank may come once.
constexpr u8 section_rank[u32(Section::count)] = {
    0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 12, 13, 11, 6,
};

constexpr u32 header_bytes = 8;

std::string formatted(const char* pattern, va_list args) {
    char text[512];
    std::vsnprintf(text, sizeof text, pattern, args);
    return text;
}

}  // namespace

Failure malformed_bytes(const Bytes& bytes, const BinaryReader& reader) {
    u32 at = reader.error_offset();
    std::string message = reader.error();
    if (message == "unexpected end") message += " of section or function";
    if (message == "illegal opcode") {
        message += format(" %02x", bytes[at]);
        BinaryReader code(bytes.data(), at + 1, u32(bytes.size()));
        if (bytes[at] >= 0xfb && bytes[at] <= 0xfe) message += format(" %02x", code.leb_u32());
    }
    return {std::move(message), at, true};
}

Decoder::Decoder(Bytes bytes)
    : module_(std::make_shared<Module>()), m_(*module_), in_(nullptr, 0, 0), validator_(m_) {
    m_.bytes = std::move(bytes);
}

bool Decoder::decode() {
    const Bytes& bytes = m_.bytes;
    if (bytes.size() > max_module_bytes) {
        malformed(0, "module too large: %zu bytes, the limit is %u", bytes.size(),
                  max_module_bytes);
        return false;
    }
    const u32 size = u32(bytes.size());
    if (size >= 4 && std::memcmp(bytes.data(), "\0asm", 4) != 0)
        malformed(0, "magic header not detected");
    else if (size < header_bytes)
        malformed(size, "unexpected end of the header: %u bytes of %u", size, header_bytes);
    else if (std::memcmp(bytes.data() + 4, "\1\0\0\0", 4) != 0)
        malformed(4, "unknown binary version: expected 1");

    u32 position = header_bytes;
    u8 last_rank = 0;
    while (!failure_ && position < size) {
        BinaryReader head(bytes.data(), position, size);
        u8 id = head.byte();
        u32 length = head.leb_u32();
        if (id >= u32(Section::count)) {
            malformed(position, "malformed section id %u", id);
        } else if (!head.ok()) {
            fail({head.error(), head.error_offset(), true});
        } else if (length > head.left()) {
            malformed(position + 1,
                      "unexpected end: length out of bounds: section %u has %u bytes, %u are left",
                      id, length, head.left());
        } else if (id != u8(Section::custom) && section_rank[id] <= last_rank) {
            malformed(
                position,
                "unexpected content after last section: section %u is doubled or out of order", id);
        }
        if (failure_) break;
        if (id != u8(Section::custom)) last_rank = section_rank[id];

        in_ = BinaryReader(bytes.data(), head.position(), head.position() + length);
        section(id);
        if (!failure_ && !in_.ok()) fail(malformed_bytes(bytes, in_));
        if (!failure_ && !in_.at_end())
            malformed(in_.position(),
                      "section size mismatch: section %u has %u bytes more than it needs", id,
                      in_.left());
        position = head.position() + length;
    }
    if (!failure_) check_sizes();
    if (failure_) return false;
    read_custom_sections(m_);
    return true;
}

void Decoder::check_sizes() {
    u32 size = u32(m_.bytes.size()), declared = u32(m_.funcs.size()) - m_.imported_funcs;
    if (bodies_ != declared)
        return malformed(size, "function and code section have inconsistent lengths: %u and %u",
                         declared, bodies_);
    if (data_count_ && *data_count_ != m_.data.size())
        malformed(size, "data count and data section have inconsistent lengths: %u and %zu",
                  *data_count_, m_.data.size());
}

void Decoder::section(u8 id) {
    switch (Section(id)) {
        case Section::custom: return custom_section();
        case Section::type: return type_section();
        case Section::import: return import_section();
        case Section::function: return function_section();
        case Section::table: return table_section();
        case Section::memory: return memory_section();
        case Section::tag: return tag_section();
        case Section::global: return global_section();
        case Section::export_: return export_section();
        case Section::start: return start_section();
        case Section::elem: return elem_section();
        case Section::data_count: return data_count_section();
        case Section::code: return code_section();
        case Section::data: return data_section();
        case Section::count: return;
    }
}

u32 Decoder::count(const char* what, u32 limit) {
    u32 offset = in_.position();
    u32 n = in_.leb_u32();
    if (n > in_.left()) {
        if (in_.ok())
            malformed(offset,
                      "unexpected end of section or function: length out of bounds: %u %s do not "
                      "fit in %u bytes",
                      n, what, in_.left());
        return 0;
    }
    if (n > limit) {
        malformed(offset, "too many %s: %u, the limit is %u", what, n, limit);
        return 0;
    }
    return n;
}

u32 Decoder::index(const char* what, usize size) {
    u32 offset = in_.position();
    u32 i = in_.leb_u32();
    check_index(what, i, size, offset);
    return in_.ok() ? i : 0;
}

void Decoder::check_index(const char* what, usize index, usize size, u32 offset) {
    if (in_.ok() && index >= size)
        invalid(offset, "unknown %s %zu: there are %zu", what, index, size);
}

void Decoder::malformed(u32 offset, const char* pattern, ...) {
    va_list args;
    va_start(args, pattern);
    fail({formatted(pattern, args), offset, true});
    va_end(args);
}

void Decoder::invalid(u32 offset, const char* pattern, ...) {
    va_list args;
    va_start(args, pattern);
    fail({formatted(pattern, args), offset, false});
    va_end(args);
}

void Decoder::fail(Failure failure) {
    // An earlier failure of the reader comes first.
    if (!failure_ && !in_.ok()) failure_ = malformed_bytes(m_.bytes, in_);
    if (!failure_) failure_ = std::move(failure);
    in_.fail("");
}

std::string Decoder::name() {
    u32 offset = in_.position();
    u32 size = in_.leb_u32();
    const u8* text = in_.data();
    in_.skip(size);
    if (!in_.ok()) return {};
    if (size > max_name_bytes) {
        malformed(offset, "name too long: %u bytes, the limit is %u", size, max_name_bytes);
        return {};
    }
    if (!is_utf8({reinterpret_cast<const char*>(text), size})) {
        malformed(offset, "malformed UTF-8 encoding");
        return {};
    }
    return std::string(reinterpret_cast<const char*>(text), size);
}

}  // namespace gpurun::wasm
