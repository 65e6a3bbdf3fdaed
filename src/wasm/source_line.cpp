// Runs the line number programs of .debug_line until one of them has passed the instruction.
#include "wasm/source_line.h"

#include <algorithm>
#include <optional>

#include "wasm/reader.h"

namespace gpurun::wasm {
namespace {

enum StandardOpcode : u8 {
    op_extended,
    op_copy,
    op_advance_pc,
    op_advance_line,
    op_set_file,
    op_set_column,
    op_negate_stmt,
    op_set_basic_block,
    op_const_add_pc,
    op_fixed_advance_pc,
};
enum ExtendedOpcode : u8 { op_end_sequence = 1, op_set_address = 2 };

enum Form : u32 {
    form_data2 = 0x05,
    form_data4 = 0x06,
    form_data8 = 0x07,
    form_string = 0x08,
    form_block = 0x09,
    form_data1 = 0x0b,
    form_strp = 0x0e,
    form_udata = 0x0f,
    form_data16 = 0x1e,
    form_line_strp = 0x1f,
};
enum Content : u32 { content_path = 1, content_directory = 2 };

const CustomSection* find_section(const Module& module, std::string_view name) {
    for (const CustomSection& section : module.customs)
        if (section.name == name) return &section;
    return nullptr;
}

std::string read_string(BinaryReader& in) {
    const u8* begin = in.data();
    const u8* end = std::find(begin, begin + in.left(), 0);
    if (end == begin + in.left()) in.fail("a string without end");
    in.skip(u32(end - begin) + 1);
    return in.ok() ? std::string(reinterpret_cast<const char*>(begin), usize(end - begin))
                   : std::string();
}

constexpr u32 max_path = 4096;  // bytes: longer ones are not followed

struct Row {
    u64 address = 0;  // of functions that are gone: from 2^32 - 1 on
    u32 file = 1, line = 1, column = 0;
};

// A unit of .debug_line: a header, tables of directories and files, and a program.
class Unit {
public:
    Unit(const Module& module, BinaryReader in) : module_(module), in_(in) {}

    // Reads the header. Returns false if the unit cannot be used.
    bool read_header() {
        version_ = in_.fixed<u16>();
        if (version_ < 2 || version_ > 5) return false;
        if (version_ >= 5) {
            u8 address_size = in_.byte(), segment_size = in_.byte();
            if ((address_size != 4 && address_size != 8) || segment_size != 0) return false;
        }
        u32 header_length = in_.fixed<u32>();
        tables_ = in_;
        in_.skip(header_length);
        program_ = in_;
        least_instruction_ = tables_.byte();
        if (version_ >= 4) tables_.byte();  // operations of an instruction: wasm has one
        tables_.byte();                     // default_is_stmt
        line_base_ = s8(tables_.byte());
        line_range_ = tables_.byte();
        opcode_base_ = tables_.byte();
        opcode_lengths_ = tables_.data();
        tables_.skip(opcode_base_ == 0 ? 0 : opcode_base_ - 1u);
        return in_.ok() && tables_.ok() && line_range_ != 0 && opcode_base_ != 0;
    }

    // The row that an address belongs to, and where its sequence begins.
    struct Found {
        Row row;
        u64 sequence;
    };
    std::optional<Found> find(u32 address) {
        std::optional<Found> found;
        Row row, last;
        bool has_last = false;
        u64 sequence = 0;
        auto emit = [&](bool is_end) {
            if (!has_last) sequence = row.address;
            if (has_last && last.address <= address && address < row.address &&
                (!found || sequence >= found->sequence))
                found = Found{last, sequence};
            last = row;
            has_last = !is_end;
            if (is_end) row = {};
        };
        BinaryReader in = program_;
        auto advance = [&](u64 operations) { row.address += operations * least_instruction_; };
        while (in.ok() && !in.at_end()) {
            u8 opcode = in.byte();
            if (opcode >= opcode_base_) {
                u32 adjusted = opcode - opcode_base_;
                advance(adjusted / line_range_);
                row.line += u32(line_base_ + s32(adjusted % line_range_));
                emit(false);
                continue;
            }
            switch (opcode) {
                case op_extended: {
                    u32 size = in.leb_u32();
                    BinaryReader part = in;
                    in.skip(size);
                    if (!in.ok() || size == 0) return found;
                    u8 extended = part.byte();
                    if (extended == op_end_sequence) emit(true);
                    if (extended == op_set_address && size >= 5) row.address = part.fixed<u32>();
                    break;
                }
                case op_copy: emit(false); break;
                case op_advance_pc: advance(in.leb_u64()); break;
                case op_advance_line: row.line += u32(in.leb_s64()); break;
                case op_set_file: row.file = in.leb_u32(); break;
                case op_set_column: row.column = in.leb_u32(); break;
                case op_negate_stmt:
                case op_set_basic_block: break;
                case op_const_add_pc: advance((255u - opcode_base_) / line_range_); break;
                case op_fixed_advance_pc: row.address += in.fixed<u16>(); break;
                default:
                    for (u8 i = 0; i < opcode_lengths_[opcode - 1]; i++) in.leb_u64();
            }
        }
        return found;
    }

    std::string file_name(u32 number) {
        BinaryReader in = tables_;
        return version_ >= 5 ? new_file_name(in, number) : old_file_name(in, number);
    }

private:
    struct File {
        std::string path;
        u32 directory = 0;
    };

    static std::string join(const std::string& directory, const std::string& name) {
        bool is_whole = name.starts_with('/') || directory.empty() || name.empty();
        return is_whole ? name : directory + (directory.ends_with('/') ? "" : "/") + name;
    }

    // Returns the name of a file up to version 4: directories, then files, both numbered from 1.
    // Number 0 is the directory of the compilation, which another section has.
    std::string old_file_name(BinaryReader& in, u32 number) {
        std::vector<std::string> directories{""};
        for (std::string text = read_string(in); in.ok() && !text.empty(); text = read_string(in))
            directories.push_back(std::move(text));
        for (u32 i = 1; in.ok(); i++) {
            File file{read_string(in)};
            if (file.path.empty()) break;
            file.directory = in.leb_u32();
            in.leb_u64();  // time
            in.leb_u64();  // size
            if (i == number && in.ok() && file.directory < directories.size())
                return join(directories[file.directory], file.path);
        }
        return "";
    }

    // Returns the name of a file from version 5 on: two tables of the same form, both numbered from
    // 0. Only the strings that are needed are kept, since all may be the same long one.
    std::string new_file_name(BinaryReader& in, u32 number) {
        BinaryReader directories = in;
        if (!for_entries(in, [](u32, const File&) {})) return "";
        std::optional<File> file;
        for_entries(in, [&](u32 i, const File& entry) {
            if (i == number) file = entry;
        });
        if (!file) return "";
        std::string first, directory;
        for_entries(directories, [&](u32 i, const File& entry) {
            if (i == 0) first = entry.path;
            if (i == file->directory) directory = entry.path;
        });
        // A path below the directory of the compilation is shown as the compiler was given it.
        return file->directory == 0 ? file->path : join(join(first, directory), file->path);
    }

    template <class Take>
    bool for_entries(BinaryReader& in, Take take) {
        struct Field {
            u32 content, form;
        };
        std::vector<Field> fields;
        for (u32 n = in.byte(); n > 0 && in.ok(); n--) {
            u32 content = in.leb_u32();
            fields.push_back({content, in.leb_u32()});
        }
        u32 count = in.leb_u32();
        if (count > in.left()) return false;  // an entry has a byte at least
        for (u32 i = 0; i < count && in.ok(); i++) {
            File file;
            for (const Field& field : fields) {
                std::optional<std::string> text;
                u32 number = 0;
                if (!read_field(in, field.form, text, number)) return false;
                if (field.content == content_path && text) file.path = std::move(*text);
                if (field.content == content_directory) file.directory = number;
            }
            if (in.ok()) take(i, file);
        }
        return in.ok();
    }

    bool read_field(BinaryReader& in, u32 form, std::optional<std::string>& text, u32& number) {
        switch (form) {
            case form_string: text = read_string(in); return in.ok();
            case form_line_strp: text = string_in(".debug_line_str", in.fixed<u32>()); return true;
            case form_strp: text = string_in(".debug_str", in.fixed<u32>()); return true;
            case form_udata: number = in.leb_u32(); return true;
            case form_data1: number = in.byte(); return true;
            case form_data2: number = in.fixed<u16>(); return true;
            case form_data4: number = in.fixed<u32>(); return true;
            case form_data8: in.skip(8); return true;
            case form_data16: in.skip(16); return true;
            case form_block: in.skip(in.leb_u32()); return true;
            default: return false;
        }
    }

    std::string string_in(std::string_view name, u32 offset) const {
        const CustomSection* section = find_section(module_, name);
        if (!section || offset >= section->end - section->begin) return "";
        u32 begin = section->begin + offset;
        BinaryReader in(module_.bytes.data(), begin,
                        begin + std::min(section->end - begin, max_path));
        return read_string(in);
    }

    const Module& module_;
    BinaryReader in_;
    BinaryReader tables_ = in_, program_ = in_;
    u16 version_ = 0;
    u8 least_instruction_ = 1, line_range_ = 1, opcode_base_ = 1;
    s8 line_base_ = 0;
    const u8* opcode_lengths_ = nullptr;
};

}  // namespace

std::string source_line(const Module& module, u32 offset) {
    const CustomSection* section = find_section(module, ".debug_line");
    if (!section || offset < module.code_begin) return "";
    const u32 address = offset - module.code_begin;
    std::optional<Unit::Found> best;
    std::string file;
    BinaryReader in(module.bytes.data(), section->begin, section->end);
    while (in.ok() && !in.at_end()) {
        u32 size = in.fixed<u32>();
        u32 begin = in.position();
        in.skip(size);  // 64-bit DWARF has a size here that no section has
        if (!in.ok()) break;
        Unit unit(module, BinaryReader(module.bytes.data(), begin, in.position()));
        if (!unit.read_header()) continue;
        // Some linkers place removed functions at 0, so a sequence that begins later is right.
        std::optional<Unit::Found> found = unit.find(address);
        if (!found || (best && best->sequence >= found->sequence)) continue;
        best = found;
        file = unit.file_name(found->row.file);
    }
    if (!best || file.empty() || best->row.line == 0) return "";
    std::string text = file + ":" + std::to_string(best->row.line);
    return best->row.column == 0 ? text : text + ":" + std::to_string(best->row.column);
}

}  // namespace gpurun::wasm
