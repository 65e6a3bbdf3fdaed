// Copies stencils and fills in their holes.
#include "codegen/quick.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>

#include "abi/layout.h"
#include "base/check.h"
#include "codegen/stencils.h"
#include "translate/print.h"

namespace gpurun::codegen {
namespace {

// What a function may take at the most: of a word of code, and beside that.
constexpr u64 most_word_bytes = 96, common_bytes = 64 << 10;
// What a call takes from a quantum at the most, so that even the shortest one lasts for a call.
constexpr s64 most_length = 1 << 16;

// Returns true if the interpreter carries it out: traps, exceptions, and what is rare.
bool is_left(CodeOp op) {
    switch (op) {
        case CodeOp::halt:
        case CodeOp::unreachable:
        case CodeOp::return_call_import:
        case CodeOp::return_call_indirect:
        case CodeOp::return_call_ref:
        case CodeOp::call_far:
        case CodeOp::throw_tag:
        case CodeOp::throw_ref:
        case CodeOp::throw_again:
        case CodeOp::system: return true;
        default: return false;
    }
}

// Where the instruction at `position` may go beside the next one: a branch, a call, or its handler.
std::optional<u32> target_of(const u64* words, u32 position) {
    const u64 w = words[0];
    switch (CodeOp(op_of(w))) {
        case CodeOp::br:
        case CodeOp::br_z:
        case CodeOp::br_nz:
        case CodeOp::call:
        case CodeOp::catch_tag:
        case CodeOp::try_begin: return position + imm_of(w);
        case CodeOp::return_call: return position + low_of(words[1]);
#define OP(name)
#define CMP_FLOAT(name, T) case CodeOp::br_##name:
#define CMP_INT(name, T) \
    CMP_FLOAT(name, T)   \
    case CodeOp::br_##name##_k:
#include "abi/code_ops.def"
#undef OP
            return position + u32(s32(s16(a_of(w))));
        default: return std::nullopt;
    }
}

}  // namespace

bool QuickCode::is_available() {
#if defined(__x86_64__)
    // What quick_stencils.cpp is compiled for: x86-64-v3.
    static const bool has_all = __builtin_cpu_supports("x86-64-v3");
    return stencil_constants_size > 0 && has_all;
#else
    return false;
#endif
}

// Writes machine code where it will not run, but with the addresses that it will have.
class QuickCode::Writer {
public:
    Writer(QuickCode& code, std::span<const u64> words, u32 begin)
        : code_(code), words_(words), begin_(begin), next_(code.used_) {}

    // Writes all of the function. Returns nothing if there is no room.
    std::optional<Function> write() {
        if (!fits()) return std::nullopt;
        lay_out();
        for (u32 at = 0; at < words_.size(); at += size_at(at)) write_instr(at);
        Function function;
        here_ = 0;
        function.promoted = address(write_stub(Part::leave_missed, begin_));
        for (const Stub& stub : stubs_) {
            here_ = stub.at;
            const u64 to = write_stub(stub.part, stub.to);
            fill(stub.hole_at, HoleForm::distance_32, s64(to) - s64(stub.hole_at) + stub.addend);
        }
        for (u32 at = 0; at < words_.size(); at += size_at(at))
            function.entries.push_back({begin_ + at, address(places_[at])});
        code_.used_ = next_;
        return function;
    }
    // Writes one part of those that are there once, and returns where it is.
    u64 write_common(Part part) {
        const u64 at = next_;
        here_ = 0;
        copy(stencil_of_part[u32(part)], 0);
        code_.used_ = next_;
        return at;
    }

private:
    struct Stub {
        u64 hole_at;
        s32 addend;
        Part part;
        u32 at, to;
    };

    u32 size_at(u32 at) const { return translate::code_size(words_[at]); }
    u64 address(u64 offset) const { return reinterpret_cast<u64>(code_.executable_ + offset); }
    u64 word(u32 number) const {
        return here_ + number < words_.size() ? words_[here_ + number] : 0;
    }

    // What a 32-bit hole cannot hold is in no code that anybody has: it stays in the interpreter.
    bool fits() const {
        constexpr u64 most_position = std::numeric_limits<s32>::max() / 8;
        return words_.size() * most_word_bytes + common_bytes < code_.size_ - next_ &&
               begin_ + words_.size() < most_position;
    }

    // The stencils of an instruction, one after another: most have one.
    template <class Use>
    void each_stencil(u32 at, Use use) const {
        const u64 w = words_[at];
        const CodeOp op = CodeOp(op_of(w));
        const auto part = [](Part p) -> const Stencil& { return stencil_of_part[u32(p)]; };
        if (is_left(op)) return use(part(Part::here), 0);
        if (op == CodeOp::enter) {
            constexpr u32 most_zeroed = 16;
            if (b_of(w) > most_zeroed) return use(part(Part::enter_many), 0);
            use(stencil_of[u32(op)], 0);
            for (u32 slot = 0; slot < b_of(w);) {
                const u32 left = b_of(w) - slot, count = left >= 4 ? 4 : left >= 2 ? 2 : 1;
                use(part(count == 4   ? Part::zero_4
                         : count == 2 ? Part::zero_2
                                      : Part::zero_1),
                    slot);
                slot += count;
            }
            return;
        }
        const std::optional<u32> to = target_of(&words_[at], begin_ + at);
        const bool is_back = to && *to <= begin_ + at && stencil_of_loop[u32(op)].size > 0;
        const Stencil& own = is_back ? stencil_of_loop[u32(op)] : stencil_of[u32(op)];
        use(own.size > 0 ? own : part(Part::operate), 0);
    }

    // Where each instruction will stand.
    void lay_out() {
        places_.assign(words_.size() + 1, 0);
        u64 place = next_;
        for (u32 at = 0; at < words_.size(); at += size_at(at)) {
            places_[at] = place;
            each_stencil(at, [&](const Stencil& stencil, u32) { place += stencil.size; });
        }
        places_.back() = place;
    }

    void write_instr(u32 at) {
        here_ = at;
        CHECK(next_ == places_[at]);
        each_stencil(at, [&](const Stencil& stencil, u32 slot) { copy(stencil, slot); });
    }

    u64 write_stub(Part part, u32 to) {
        const u64 at = next_;
        stub_to_ = to;
        copy(stencil_of_part[u32(part)], 0);
        stub_to_.reset();
        return at;
    }

    // `slot` is added to field a.
    void copy(const Stencil& stencil, u32 slot) {
        const u64 at = next_;
        std::memcpy(code_.writable_ + at, stencil_bytes + stencil.begin, stencil.size);
        next_ += stencil.size;
        for (u32 i = 0; i < stencil.holes; i++) {
            const StencilHole& hole = stencil_holes[stencil.first_hole + i];
            const u64 hole_at = at + hole.at;
            if (hole.form != HoleForm::distance_32) {
                fill(hole_at, hole.form, value_of(hole.hole, slot) + hole.addend);
            } else if (const std::optional<Part> part = stub_of(hole.hole)) {
                stubs_.push_back({hole_at, hole.addend, *part, here_, to()});
            } else {
                fill(hole_at, hole.form, s64(place_of(hole.hole)) - s64(hole_at) + hole.addend);
            }
        }
    }

    void fill(u64 at, HoleForm form, s64 value) {
        std::memcpy(code_.writable_ + at, &value, form == HoleForm::number_64 ? 8 : 4);
    }

    // Code at the end of the function that some jumps go to.
    static std::optional<Part> stub_of(Hole hole) {
        switch (hole) {
            case Hole::jump_interpret: return Part::leave_interpret;
            case Hole::jump_late: return Part::leave_late;
            case Hole::jump_missed: return Part::leave_missed;
            case Hole::jump_late_here: return Part::leave_late_here;
            default: return std::nullopt;
        }
    }

    u64 place_of(Hole hole) const {
        switch (hole) {
            case Hole::jump_next:
                return places_[std::min<usize>(here_ + size_at(here_), words_.size())];
            case Hole::jump_taken: return places_[to() - begin_];
            case Hole::jump_leave: return code_.leave_;
            case Hole::jump_call: return code_.call_;
            case Hole::jump_returned: return code_.returned_;
            default: CHECK(hole == Hole::constant); return code_.constants_;
        }
    }

    u32 to() const {
        if (stub_to_) return *stub_to_;
        return target_of(&words_[here_], begin_ + here_).value_or(0);
    }

    s64 value_of(Hole hole, u32 slot) const {
        const u64 w = word(0), second = word(1);
        switch (hole) {
            case Hole::slot_a: return s64(a_of(w) + slot) * 4;
            case Hole::slot_b: return s64(b_of(w)) * 4;
            case Hole::slot_c: return s64(c_of(w)) * 4;
            case Hole::slot_d: return s64(a_of(second)) * 4;
            case Hole::slot_e: return s64(high_of(second) >> 16) * 4;
            case Hole::a: return a_of(w);
            case Hole::b: return b_of(w);
            case Hole::c: return c_of(w);
            case Hole::d: return a_of(second);
            case Hole::e: return high_of(second) & 0xffff;
            case Hole::k: return s16(c_of(w));
            case Hole::imm: return imm_of(w);
            case Hole::imm_signed: return s32(imm_of(w));
            case Hole::imm_bytes: return s64(imm_of(w)) * 4;
            case Hole::imm_records: return s64(imm_of(w)) * 4 * record_words;
            case Hole::low: return low_of(second);
            case Hole::low_bytes: return s64(low_of(second)) * 4;
            case Hole::high_bytes: return s64(high_of(second)) * 4;
            case Hole::wide: return s64(second);
            case Hole::wide_3: return s64(word(2));
            case Hole::here: return begin_ + here_;
            case Hole::after: return begin_ + here_ + size_at(here_);
            case Hole::to: return to();
            case Hole::to_bytes: return s64(to()) * 8;
            case Hole::distance: return s64(begin_ + here_) - s64(to()) + 1;
            case Hole::length: return std::min<s64>(s64(words_.size()), most_length);
            default: CHECK(false); return 0;
        }
    }

    QuickCode& code_;
    const std::span<const u64> words_;
    const u32 begin_;
    u64 next_;
    u32 here_ = 0;  // the instruction that is written, in words_
    std::optional<u32> stub_to_;
    std::vector<u64> places_;  // by words_
    std::vector<Stub> stubs_;
};

QuickCode::QuickCode(u8* writable, u8* executable, u64 size)
    : writable_(writable), executable_(executable), size_(size) {}

QuickCode::~QuickCode() {
    munmap(writable_, size_);
    munmap(executable_, size_);
}

Result<std::shared_ptr<QuickCode>> QuickCode::make(u64 code_words) {
    // Distances have 32 bits.
    constexpr u64 most = u64{1} << 30, page = 4096;
    const u64 size =
        std::min(most, (code_words * most_word_bytes + 2 * common_bytes + page - 1) / page * page);
    auto problem = [](const char* what) {
        return Error{std::string("no memory for quick code: ") + what + ": " +
                     std::strerror(errno)};
    };
    const int file = memfd_create("gpu-run quick code", MFD_CLOEXEC);
    if (file < 0) return problem("memfd_create");
    void* const writable = ftruncate(file, off_t(size)) == 0
                               ? mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                               : MAP_FAILED;
    void* const executable = writable != MAP_FAILED
                                 ? mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0)
                                 : MAP_FAILED;
    const Error why = problem("mmap");
    close(file);
    if (executable == MAP_FAILED) {
        if (writable != MAP_FAILED) munmap(writable, size);
        return why;
    }
    std::shared_ptr<QuickCode> made(
        new QuickCode(static_cast<u8*>(writable), static_cast<u8*>(executable), size));
    made->add_common();
    return made;
}

void QuickCode::add_common() {
    std::memcpy(writable_, stencil_constants, stencil_constants_size);
    used_ = (stencil_constants_size + 63) / 64 * 64;
    leave_ = Writer(*this, {}, 0).write_common(Part::leave);
    returned_ = Writer(*this, {}, 0).write_common(Part::returned);
    call_ = Writer(*this, {}, 0).write_common(Part::call_tail);
}

Result<QuickCode::Function> QuickCode::add(std::span<const u64> words, u32 begin) {
    std::optional<Function> written = Writer(*this, words, begin).write();
    if (!written) return Error{"no room for more quick code"};
    return std::move(*written);
}

}  // namespace gpurun::codegen
