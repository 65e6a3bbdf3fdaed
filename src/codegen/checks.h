// Which checks accesses to memory need: of bounds, and of alignment where the target wants that.
// Those of memory 0 by 32-bit addresses; the others are checked where they are. Knows nothing of
// LLVM.
//
// An address that several accesses have is checked by the first of them, as far as the farthest in
// its block reaches. Whoever comes later by whatever way knows that; but not who goes on in the
// middle, where blocks can be entered. Leaving early is no harm: the interpreter goes on there.
// So it is with what stores note of where they write: a note is good for dirty_reach bytes from
// there on.
#pragma once

#include <map>
#include <optional>

#include "codegen/flow.h"

namespace gpurun::codegen {

class Checks {
public:
    struct Check {
        u64 end = 0;   // bytes from the address on that have to be there; 0: they are
        u32 mask = 0;  // bits of the address that may not be set
    };
    struct Access {
        u32 slot;  // of the address
        u32 offset, width;
        bool is_store = false;
        bool is_aligned = false;  // if it is checked
        bool is_noted = false;    // by a store before
    };

    // `wants_alignment`: accesses are done as if aligned if their instruction says that they are,
    // so that has to be checked.
    Checks(const Flow& flow, const translate::CodeEffects& effects, u32 func, bool wants_alignment);

    // The access at `position`, or null.
    const Access* access(u32 position) const {
        auto found = accesses_.find(position);
        return found == accesses_.end() ? nullptr : &found->second;
    }
    // What it has to check.
    Check check(u32 position) const {
        auto found = checks_.find(position);
        return found == checks_.end() ? Check{} : found->second;
    }

private:
    static constexpr u32 nobody = ~u32{0};
    struct Known {
        Check checked;
        u32 by = nobody;              // position of the access in this block that checks it
        std::optional<u32> noted_at;  // offset of a store
    };
    using State = std::map<u32, Known>;  // by slot

    void find_accesses(u32 func, bool wants_alignment);
    void follow(u32 number, const State& before);
    State meet(u32 number) const;

    const Flow& flow_;
    const translate::CodeEffects& effects_;
    std::map<u32, Access> accesses_;  // by position
    std::map<u32, Check> checks_;
    std::vector<std::vector<u32>> predecessors_;
    std::vector<std::optional<State>> after_;  // by block
};

}  // namespace gpurun::codegen
