// Divides ranges among jobs, and merges their results. Between two ranges it checks if there is
// code for the other layout by now, which other threads make.
#include "engine/burst_ranges.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/format.h"
#include "base/hash.h"
#include "cache/cache.h"
#include "engine/beside.h"

namespace gpurun::engine {
namespace {

using device::Burst;
using device::BurstOutcome;
using std::chrono::steady_clock;

cache::Cache default_cache() { return cache::Cache(cache::Cache::default_folder()); }

// Returns true if a module's memories can interleave. Shared memories cannot, nor those that take
// more than offsets of 32 bits can reach.
bool can_interleave(const wasm::Module& module) {
    constexpr u64 all_pages = u64{1} << (32 - page_bits);
    u64 most = 0;
    for (const wasm::MemoryType& memory : module.memories) {
        if (memory.limits.is_shared || memory.limits.is_64) return false;
        most += memory.limits.max.value_or(all_pages);
    }
    return most <= all_pages;
}

device::Tier tier_of(const Run& run) { return run.chosen_tier(run.is_looked_at()); }

// Returns true if rates of the jobs' processes are meaningful: they are not traced or profiled, and
// all run by one tier from the beginning to the end.
bool can_measure(std::span<const Job> jobs) {
    using device::Tier;
    const Tier tier = tier_of(jobs[0].run);
    if (tier != Tier::interp && tier != Tier::native && tier != Tier::automatic) return false;
    return std::ranges::all_of(jobs, [&](const Job& job) {
        return !job.run.is_profiled && !job.run.is_watched && tier_of(job.run) == tier;
    });
}

bool has_memories(const Job& job) { return !job.program.module->memories.empty(); }

// Returns the key of the rates in the cache: modules, device, tier and this version of gpu-run. A
// hash of the modules is enough, since a wrong layout is only slow.
std::string key_of(const device::Device& device, std::span<const Job> jobs, bool is_native) {
    std::string key = "layout " + device.info().name + (is_native ? " native " : " interp ") +
                      (jobs[0].run.limits.fuel ? "metered " : "") +
                      codegen::target_key(device.target(device::Mode::burst, Layout::interleaved));
    const wasm::Module* last = nullptr;
    for (const Job& job : jobs) {
        const wasm::Module* module = job.program.module.get();
        if (module == std::exchange(last, module)) continue;
        const std::string_view bytes(reinterpret_cast<const char*>(module->bytes.data()),
                                     module->bytes.size());
        key += format(" %zu-%016llx%016llx", bytes.size(), (unsigned long long)hash(bytes),
                      (unsigned long long)hash(bytes, 1));
    }
    return key;
}

// The content of a cache entry.
struct KeptRates {
    u64 linear_processes, interleaved_processes;
    double linear_rate, interleaved_rate;
};
static_assert(sizeof(KeptRates) == 32);

bool is_sound(u64 processes, double rate) {
    return processes == 0 || (std::isfinite(rate) && rate > 0);
}

// Gives each burst its share of the next `count` processes, in proportion to what it has `left`.
void share_out(std::span<Burst> bursts, std::span<const u32> left, u64 all_left, u64 count) {
    u64 before = 0, given = 0;
    for (usize i = 0; i < bursts.size(); i++) {
        before += left[i];
        bursts[i].first = bursts[i].whole - left[i];
        bursts[i].processes = u32(before * count / all_left - given);
        given += bursts[i].processes;
    }
}

// Adds the outcome of a range to that of the ranges before it.
void append(BurstOutcome& all, const BurstOutcome& range) {
    for (usize i = 0; i < range.parts.size(); i++) {
        std::vector<u32>& words = all.parts[i].words;
        words.insert(words.end(), range.parts[i].words.begin(), range.parts[i].words.end());
    }
    const double seconds = all.seconds + range.seconds;
    if (seconds > 0) all.busy = (all.busy * all.seconds + range.busy * range.seconds) / seconds;
    all.seconds = seconds;
    all.kernel_seconds += range.kernel_seconds;
    if (range.stop_seconds) all.stop_seconds = all.stop_seconds.value_or(0) + *range.stop_seconds;
    all.slots = std::max(all.slots, range.slots);
    all.launches += range.launches;
    all.has_outgrown |= range.has_outgrown;
    all.layout = range.layout;
}

}  // namespace

BurstRanges::BurstRanges(device::Device& device, std::span<const Job> jobs, bool is_linear)
    : device_(device), jobs_(jobs) {
    using Reason = LayoutChoice::Reason;
    const device::DeviceInfo& info = device.info();
    if (is_linear || !info.has_layouts) return;
    const bool is_automatic =
        std::ranges::none_of(jobs, [](const Job& job) { return job.run.layout.has_value(); });
    const bool may_interleave = std::ranges::all_of(
        jobs, [](const Job& job) { return can_interleave(*job.program.module); });
    if (!is_automatic) {
        const bool is_asked = std::ranges::all_of(
            jobs, [](const Job& job) { return job.run.layout == Layout::interleaved; });
        if (is_asked && !may_interleave) return;
        choice_ = {is_asked ? Layout::interleaved : Layout::linear, Reason::asked, {}};
        return;
    }
    if (!may_interleave || !can_measure(jobs) || std::ranges::none_of(jobs, has_memories)) return;
    is_native_ = tier_of(jobs[0].run) != device::Tier::interp;
    key_ = key_of(device, jobs, is_native_);
    u64 all = 0;
    for (const Job& job : jobs) all += job.run.many.count();
    // A range ends with its last process: one that does not end must not keep others from beginning
    // before the time limit.
    const bool may_split = !jobs[0].run.timeout;
    trial_.emplace(all, u64(info.multiprocessors) * info.block_lanes, info.lanes, recall(),
                   may_split);
    choice_.rates = trial_->rates();
    if (const auto chosen = trial_->chosen())
        choice_ = {*chosen, Reason::remembered, choice_.rates};
}

Result<BurstOutcome> BurstRanges::run(std::span<Burst> bursts, Stores stores,
                                      const device::RunControl& control) {
    if (!trial_ || trial_->chosen()) {
        for (Burst& burst : bursts) burst.layout = choice_.layout;
        return device_.run_burst(bursts, control);
    }
    BurstOutcome all;
    std::vector<u32> left;
    for (Burst& burst : bursts) {
        left.push_back(burst.whole = burst.processes);
        all.parts.push_back({result_first + burst.result_words, {}});
    }
    u64 ended = 0, all_left = 0;
    for (u32 count : left) all_left += count;
    looked_ = steady_clock::now();
    // A burst too small for ranges waits for no code, but a module that ran long before probably
    // will again.
    add_run_time(std::chrono::duration<double>(trial_->rates().linear.seconds()));
    do {
        const LayoutTrial::Range range = trial_->next(all_left, has_both(stores));
        share_out(bursts, left, all_left, range.processes);
        device::RunControl mine = control;
        if (control.progress)
            mine.progress = [&control, ended](u64 more) { control.progress(ended + more); };
        const bool is_measurable_before = is_measurable(stores);
        const auto ran = TRY(run_range(bursts, range, stores, mine));
        if (!ran) continue;
        append(all, *ran);
        u64 count = 0;
        for (usize i = 0; i < bursts.size(); i++) {
            const u32 begun = u32(ran->parts[i].words.size() / ran->parts[i].stride);
            left[i] -= begun;
            count += begun;
        }
        ended += count;
        all_left -= count;
        const bool is_whole = count == range.processes && !control.wants_stop();
        // Larger slots may find no room where memories interleave: they take that of a whole warp.
        if (ran->has_outgrown) trial_->give_up();
        if (is_whole && range.is_measured && is_measurable_before && !ran->has_outgrown) {
            trial_->add(range, ran->kernel_seconds > 0 ? ran->kernel_seconds : ran->seconds);
            remember();
        }
    } while (all_left > 0 && !control.wants_stop());
    // Machine code that nobody waited for may be worth making before the next burst.
    add_run_time(steady_clock::now() - looked_);
    for (usize i = 0; i < bursts.size(); i++)  // those that never began
        all.parts[i].words.resize(usize(bursts[i].whole) * all.parts[i].stride);
    choice_.rates = trial_->rates();
    choice_.layout = all.layout;
    if (trial_->chosen()) choice_.reason = LayoutChoice::Reason::measured;
    return all;
}

Result<std::optional<BurstOutcome>> BurstRanges::run_range(std::span<Burst> bursts,
                                                           const LayoutTrial::Range& range,
                                                           Stores stores,
                                                           const device::RunControl& control) {
    for (usize i = 0; i < bursts.size(); i++) {
        bursts[i].layout = range.layout;
        bursts[i].native = stores[i]->native_for(range.layout);
        if (!stores[i]->awaits_native()) bursts[i].late_native = {};
    }
    device::RunControl mine = control;
    if (trial_->wants_ranges(range.processes))
        mine.is_enough = [&](u64 left) { return trial_->wants_ranges(left) && has_both(stores); };
    const u64 launches = device_.usage().launches;
    Result<BurstOutcome> ran = device_.run_burst(bursts, mine);
    if (ran) return std::optional(std::move(*ran));
    // A layout that nobody asked for must not make the burst fail, e.g. for lack of memory.
    if (range.layout == Layout::linear || device_.usage().launches != launches) return ran.error();
    trial_->give_up();
    return std::optional<BurstOutcome>();
}

// Adds to the time that the modules have run, if both layouts are still wanted.
void BurstRanges::add_run_time(std::chrono::duration<double> ran) const {
    for (const Job& job : jobs_)
        if (job.program.images && is_native_ && trial_->is_open())
            job.program.images->has_run(duration_cast<std::chrono::nanoseconds>(
                std::min(ran, std::chrono::duration<double>(std::chrono::hours(1)))));
}

// Returns true if processes run by one tier from now on, so that a range can be measured.
bool BurstRanges::is_measurable(Stores stores) const {
    return !is_native_ || std::ranges::all_of(stores, [](Store* store) {
        return !store->awaits_native() && !store->native_for(Layout::linear).empty();
    });
}

// Returns true once processes can run with either layout, without anything that takes long.
bool BurstRanges::has_both(Stores stores) {
    const std::chrono::nanoseconds ran =
        steady_clock::now() - std::exchange(looked_, steady_clock::now());
    ran_ += ran;
    if (!trial_->is_open() || !is_measurable(stores)) return false;
    if (!is_native_) return has_kernel();
    bool has_all = true;
    for (Store* store : stores) has_all &= store->prepare_native(Layout::interleaved, ran);
    return has_all;
}

// Returns true once the interpreter's kernel of the other layout has been assembled, which takes
// long the first time.
bool BurstRanges::has_kernel() {
    constexpr std::chrono::milliseconds patience(100);  // bursts that end sooner do not start it
    if (is_assembled_) return *is_assembled_;
    std::function<void()> assemble =
        device_.kernel_assembler(device::Mode::burst, Layout::interleaved);
    if (!assemble) return true;
    if (ran_ < patience) return false;
    is_assembled_ = std::make_shared<std::atomic<bool>>(false);
    const Result<void> begun = begin_beside([assemble, is_done = is_assembled_] {
        assemble();
        *is_done = true;
    });
    if (!begun) trial_->give_up();
    return false;
}

LayoutRates BurstRanges::recall() const {
    const std::optional<std::vector<u8>> bytes = default_cache().get(key_);
    if (!bytes) return {};
    KeptRates kept{};
    if (bytes->size() == sizeof kept) std::memcpy(&kept, bytes->data(), sizeof kept);
    if (bytes->size() == sizeof kept && is_sound(kept.linear_processes, kept.linear_rate) &&
        is_sound(kept.interleaved_processes, kept.interleaved_rate))
        return {{kept.linear_processes, kept.linear_rate},
                {kept.interleaved_processes, kept.interleaved_rate}};
    default_cache().drop(key_, "it has no rates");
    return {};
}

void BurstRanges::remember() const {
    const auto& [linear, interleaved] = trial_->rates();
    const KeptRates kept{linear.processes, interleaved.processes, linear.per_second,
                         interleaved.per_second};
    u8 bytes[sizeof kept];
    std::memcpy(bytes, &kept, sizeof kept);
    default_cache().put(key_, bytes, jobs_[0].program.name);
}

}  // namespace gpurun::engine
