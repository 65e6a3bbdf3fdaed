// Takes the stencils of quick code from the object that runtime/native/quick_stencils.cpp was
// compiled to, and writes them as the tables of codegen/stencils.h.
//
//     pack_stencils OBJECT OUTPUT.cpp     OBJECT may be -: then there are none
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "codegen/stencils.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/MC/MCAsmInfo.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/MCTargetOptions.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>

namespace gpurun::codegen {
namespace {

using llvm::object::SectionRef;

[[noreturn]] void fail(const std::string& text) {
    std::fprintf(stderr, "pack_stencils: %s\n", text.c_str());
    std::exit(1);
}

template <class T>
T take(llvm::Expected<T> value) {
    if (!value) fail(llvm::toString(value.takeError()));
    return std::move(*value);
}

const std::map<std::string, Hole> hole_names = {
#define HOLE(name) {"hole_" #name, Hole::name},
#define JUMP(name) {"jump_" #name, Hole::jump_##name},
#include "abi/quick_holes.def"
};

struct Packed {
    std::vector<u8> bytes;
    std::vector<StencilHole> holes;
    bool falls_through = false;
};

// Where the instructions of x86-64 machine code begin.
class Disassembler {
public:
    Disassembler() {
        llvm::InitializeNativeTarget();
        LLVMInitializeX86Disassembler();
        std::string problem;
        const llvm::Triple triple("x86_64-pc-linux-gnu");
        const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, problem);
        if (!target) fail(problem);
        registers_.reset(target->createMCRegInfo(triple));
        assembly_.reset(target->createMCAsmInfo(*registers_, triple, options_));
        subtarget_.reset(target->createMCSubtargetInfo(triple, "x86-64-v3", ""));
        context_ = std::make_unique<llvm::MCContext>(triple, assembly_.get(), registers_.get(),
                                                     subtarget_.get());
        disassembler_.reset(target->createMCDisassembler(*subtarget_, *context_));
    }
    std::vector<usize> starts(const std::vector<u8>& bytes) const {
        std::vector<usize> result;
        for (usize at = 0; at < bytes.size();) {
            llvm::MCInst instruction;
            u64 size = 0;
            if (disassembler_->getInstruction(instruction, size,
                                              llvm::ArrayRef(bytes).drop_front(at), at,
                                              llvm::nulls()) != llvm::MCDisassembler::Success)
                fail("machine code that cannot be read");
            result.push_back(at);
            at += size;
        }
        return result;
    }

private:
    llvm::MCTargetOptions options_;
    std::unique_ptr<llvm::MCRegisterInfo> registers_;
    std::unique_ptr<llvm::MCAsmInfo> assembly_;
    std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
    std::unique_ptr<llvm::MCContext> context_;
    std::unique_ptr<llvm::MCDisassembler> disassembler_;
};

// Constants of all stencils, one after another.
class Constants {
public:
    // Returns where a section of constants begins.
    u32 place(const SectionRef& section) {
        auto [found, is_new] = places_.try_emplace(section.getIndex(), 0);
        if (!is_new) return found->second;
        while (bytes_.size() % 64) bytes_.push_back(0);
        found->second = u32(bytes_.size());
        const llvm::StringRef contents = take(section.getContents());
        bytes_.insert(bytes_.end(), contents.begin(), contents.end());
        return found->second;
    }
    const std::vector<u8>& bytes() const { return bytes_; }

private:
    std::map<u64, u32> places_;
    std::vector<u8> bytes_;
};

bool is_jump(const StencilHole& hole) {
    return hole.hole >= Hole::jump_next && hole.hole != Hole::constant;
}

// Where jumps within a stencil go.
std::set<usize> inner_targets(const std::vector<u8>& bytes, const std::vector<usize>& starts,
                              const std::vector<StencilHole>& holes) {
    std::set<usize> targets;
    for (usize i = 0; i < starts.size(); i++) {
        const usize at = starts[i], after = i + 1 < starts.size() ? starts[i + 1] : bytes.size();
        const bool is_short = bytes[at] >> 4 == 7 || bytes[at] == 0xeb;
        const bool is_long = bytes[at] == 0xe9 || (bytes[at] == 0x0f && bytes[at + 1] >> 4 == 8);
        const bool is_hole = std::any_of(holes.begin(), holes.end(), [&](const StencilHole& hole) {
            return hole.at + 4u == after && is_jump(hole);
        });
        s32 distance = 0;
        if (is_short) distance = s8(bytes[after - 1]);
        if (is_long) std::memcpy(&distance, &bytes[after - 4], 4);
        if ((is_short || is_long) && !is_hole) targets.insert(after + usize(s64(distance)));
    }
    return targets;
}

// Makes jumps shorter that the compiler could not: a conditional jump over a jump becomes the
// opposite conditional jump, and the jump to `next` at the end is left out.
void shorten(Packed& stencil, const Disassembler& disassembler) {
    std::vector<u8>& bytes = stencil.bytes;
    auto hole_at = [&](usize at) -> StencilHole* {
        for (StencilHole& hole : stencil.holes)
            if (hole.at == at && is_jump(hole)) return &hole;
        return nullptr;
    };
    constexpr u8 jump = 0xe9, long_escape = 0x0f, nop = 0x90;
    const std::vector<usize> starts = disassembler.starts(bytes);
    const std::set<usize> targets = inner_targets(bytes, starts, stencil.holes);
    for (usize i = 0; i + 1 < starts.size(); i++) {
        const usize at = starts[i];
        const bool is_short_over = bytes[at] >> 4 == 7 && bytes[at + 1] == 5;
        StencilHole* const hole = hole_at(at + 3);
        if (!is_short_over || bytes[at + 2] != jump || !hole || targets.contains(at + 2)) continue;
        const u8 opposite = (bytes[at] & 0xf) ^ 1;
        bytes[at] = long_escape;
        bytes[at + 1] = u8(0x80 | opposite);
        hole->at = u16(at + 2);
        bytes[at + 6] = nop;
    }
    const usize end = bytes.size();
    if (end < 5 || bytes[end - 5] != jump) return;
    StencilHole* const last = hole_at(end - 4);
    if (!last) return;
    StencilHole* const before = end >= 11 ? hole_at(end - 9) : nullptr;
    const bool is_conditional = before && bytes[end - 11] == long_escape &&
                                bytes[end - 10] >> 4 == 8 && before->hole == Hole::jump_next &&
                                !targets.contains(end - 5);
    if (last->hole == Hole::jump_next) {
        stencil.holes.erase(stencil.holes.begin() + (last - stencil.holes.data()));
    } else if (is_conditional) {
        bytes[end - 10] ^= 1;
        before->hole = last->hole;
        stencil.holes.erase(stencil.holes.begin() + (last - stencil.holes.data()));
    } else {
        return;
    }
    bytes.resize(end - 5);
    stencil.falls_through = true;
}

class Packer {
public:
    explicit Packer(const std::string& path) {
        if (path == "-") return;
        file_ = take(llvm::object::ObjectFile::createObjectFile(path));
        for (const SectionRef& section : file_.getBinary()->sections()) {
            const std::string name = take(section.getName()).str();
            const std::string prefix = ".text.quick_";
            if (name.starts_with(prefix)) sections_.emplace(name.substr(prefix.size()), section);
        }
        for (const SectionRef& section : file_.getBinary()->sections()) {
            auto target = take(section.getRelocatedSection());
            if (target != file_.getBinary()->section_end())
                relocations_.emplace(target->getIndex(), section);
        }
    }

    // The stencil of a name; empty if there is none.
    Packed pack(const std::string& name) {
        Packed packed;
        auto found = sections_.find(name);
        if (found == sections_.end()) return packed;
        const llvm::StringRef contents = take(found->second.getContents());
        packed.bytes.assign(contents.begin(), contents.end());
        if (auto list = relocations_.find(found->second.getIndex()); list != relocations_.end())
            for (const auto& relocation : list->second.relocations())
                packed.holes.push_back(hole_of(name, relocation));
        shorten(packed, disassembler_);
        return packed;
    }
    const Constants& constants() const { return constants_; }

private:
    StencilHole hole_of(const std::string& stencil, const llvm::object::RelocationRef& relocation) {
        const llvm::object::SymbolRef symbol = *relocation.getSymbol();
        const std::string name = take(symbol.getName()).str();
        StencilHole hole{};
        hole.at = u16(relocation.getOffset());
        hole.addend = s32(take(llvm::object::ELFRelocationRef(relocation).getAddend()));
        switch (relocation.getType()) {
            case llvm::ELF::R_X86_64_32:
            case llvm::ELF::R_X86_64_32S: hole.form = HoleForm::number_32; break;
            case llvm::ELF::R_X86_64_64: hole.form = HoleForm::number_64; break;
            case llvm::ELF::R_X86_64_PC32:
            case llvm::ELF::R_X86_64_PLT32: hole.form = HoleForm::distance_32; break;
            default: fail(stencil + ": a relocation that is not known");
        }
        if (auto known = hole_names.find(name); known != hole_names.end()) {
            hole.hole = known->second;
            if (is_jump(hole) != (hole.form == HoleForm::distance_32))
                fail(stencil + ": " + name + " is not used as it can be filled in");
            return hole;
        }
        const auto section = take(symbol.getSection());
        if (section == file_.getBinary()->section_end() || hole.form != HoleForm::distance_32)
            fail(stencil + ": it wants " + name);
        hole.hole = Hole::constant;
        hole.addend += s32(constants_.place(*section) + take(symbol.getAddress()));
        return hole;
    }

    llvm::object::OwningBinary<llvm::object::ObjectFile> file_;
    std::map<std::string, SectionRef> sections_;
    std::map<u64, SectionRef> relocations_;
    Disassembler disassembler_;
    Constants constants_;
};

class Writer {
public:
    explicit Writer(const std::string& path) : file_(std::fopen(path.c_str(), "w")) {
        if (!file_) fail("cannot write " + path);
        print(
            "// Generated by cmake/pack_stencils.cpp.\n#include \"codegen/stencils.h\"\n\n"
            "namespace gpurun::codegen {\n\n");
    }
    [[gnu::format(printf, 2, 3)]] void print(const char* text, ...) {
        va_list arguments;
        va_start(arguments, text);
        std::vfprintf(file_, text, arguments);
        va_end(arguments);
    }
    void print_bytes(const char* name, const std::vector<u8>& bytes) {
        print("alignas(64) extern const u8 %s[] = {", name);
        for (usize i = 0; i < bytes.size(); i++) print("%s%u,", i % 32 ? "" : "\n", bytes[i]);
        print("0};\n");
    }
    void print_stencils(const char* name, const std::vector<Packed>& stencils) {
        print("extern const Stencil %s[] = {\n", name);
        for (const Packed& stencil : stencils) {
            print("{%zu, %zu, %zu, %zu, %d},\n", bytes_.size(), holes_.size(), stencil.bytes.size(),
                  stencil.holes.size(), stencil.falls_through);
            bytes_.insert(bytes_.end(), stencil.bytes.begin(), stencil.bytes.end());
            holes_.insert(holes_.end(), stencil.holes.begin(), stencil.holes.end());
        }
        print("};\n");
    }
    void finish(const Constants& constants) {
        print_bytes("stencil_bytes", bytes_);
        print_bytes("stencil_constants", constants.bytes());
        print("extern const u32 stencil_constants_size = %zu;\n", constants.bytes().size());
        print("extern const StencilHole stencil_holes[] = {\n");
        for (const StencilHole& hole : holes_)
            print("{%u, Hole(%u), HoleForm(%u), %d},\n", hole.at, unsigned(hole.hole),
                  unsigned(hole.form), hole.addend);
        print("{}};\n\n}  // namespace gpurun::codegen\n");
        if (std::fclose(file_) != 0) fail("cannot write the stencils");
    }

private:
    std::FILE* file_;
    std::vector<u8> bytes_;
    std::vector<StencilHole> holes_;
};

int pack(const char* object, const char* output) {
    Packer packer(object);
    Writer writer(output);
    std::vector<Packed> instructions, loops, parts;
#define OP(name)                                \
    instructions.push_back(packer.pack(#name)); \
    loops.push_back(packer.pack("back_" #name));
#include "abi/code_ops.def"
#undef OP
#define PART(name)                       \
    parts.push_back(packer.pack(#name)); \
    if (parts.back().bytes.empty() && std::string(object) != "-") fail("no stencil " #name);
    GPURUN_STENCIL_PARTS(PART)
#undef PART
    writer.print_stencils("stencil_of", instructions);
    writer.print_stencils("stencil_of_loop", loops);
    writer.print_stencils("stencil_of_part", parts);
    writer.finish(packer.constants());
    return 0;
}

}  // namespace
}  // namespace gpurun::codegen

int main(int count, char** arguments) {
    if (count != 3) {
        std::fprintf(stderr, "usage: pack_stencils OBJECT OUTPUT.cpp\n");
        return 2;
    }
    return gpurun::codegen::pack(arguments[1], arguments[2]);
}
