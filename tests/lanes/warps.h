// Warps on one host thread: a fiber for each lane. Where lanes have to meet, all of a warp's must
// come, to the same place; between such places, and wherever a lane lets others go on, a seed
// decides whose turn it is. Time is what the turns take.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../fiber/fiber.h"
#include "../fiber/site.h"
#include "base/ints.h"

namespace gpurun::test {

enum class Collective : u32 { none, ballot, shuffle, minimum, sync };

struct WarpOptions {
    u32 warps = 1, lanes = 32;
    u64 seed = 1;
    // One of so many operations on shared memory lets others go on; 0: none.
    u32 interruptions = 8;
    u64 most_turns = 100'000'000;  // then it has failed
    usize stack_bytes = 256 << 10;
    u64 begin_ns = 1'000'000'000;  // what the clock says at first
    // What the host does meanwhile: called from time to time, between two turns.
    std::function<void(u64 now_ns)> poll = {};
};

class Warps {
public:
    using Kernel = void (*)(void* argument);

    explicit Warps(const WarpOptions& options);
    ~Warps();

    // Runs it in every lane, until all have left it. Empty: they have; or what went wrong.
    std::string run(Kernel kernel, void* argument);

    // ---- by the lane that runs -----------------------------------------------------

    static Warps& current();
    u32 lane() const { return running_ % options_.lanes; }
    u32 thread() const { return running_; }  // warp * lanes + lane
    // With all lanes of the warp. `value` of each, `from`: of a shuffle.
    u64 meet(Collective what, u64 value, u32 from, Site site);
    // Others may go on meanwhile.
    void give_way(Site site);
    void touch_shared(Site site);
    void sleep(u64 ns, Site site);
    u64 now() const { return now_; }
    [[noreturn]] void fail(const std::string& what);

private:
    struct Lane {
        Lane(usize stack_bytes) : fiber(stack_bytes) {}
        Fiber fiber;
        bool is_over = false;
        u64 sleeps_until = 0;
        Collective at = Collective::none;
        Site site{"", 0};
        u64 value = 0, result = 0;
        u32 from = 0;
    };

    u64 random();
    void set_ready(u32 thread);
    void finish_meeting(u32 warp);
    std::string describe(u32 thread) const;
    std::string who_is_where() const;

    const WarpOptions options_;
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<u32> arrived_;  // of each warp
    std::vector<u32> ready_;    // threads, in any order
    u32 running_ = 0;
    u64 turns_ = 0, now_;
    u64 random_state_;
    std::string problem_;
};

}  // namespace gpurun::test
