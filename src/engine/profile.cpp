// Takes samples; names are looked up once, at the end.
#include "engine/profile.h"

#include <algorithm>

namespace gpurun::engine {
namespace {

constexpr usize max_depth = 128;       // the innermost frames; those outside count as "..."
constexpr usize max_stacks = 100'000;  // different ones; then they count as "others"

using Named = std::map<std::vector<std::string>, u64>;

std::vector<StackSample> listed(const Named& named) {
    std::vector<StackSample> samples;
    for (const auto& [functions, count] : named) samples.push_back({functions, count});
    return samples;
}

}  // namespace

Result<std::vector<u32>> Store::stack_positions(device::ProcessMemory& memory, usize most) {
    u32 thread[thread_words];
    TRY(memory.read_words(current_.at, thread));
    std::vector<u32> positions{thread[thread_pc]};
    // The stack is read in one piece: on a GPU the time depends on the number of copies.
    const u32 end = thread[thread_stack_end], begin = std::min(thread[thread_rp], end);
    std::vector<u32> records(std::min<usize>(end - begin, most * record_words));
    TRY(memory.read_words(begin, records));
    for (usize i = 0; i + record_words <= records.size(); i += record_words) {
        u32 position = records[i + record_pc];
        if (!(position & handler_bit) && position > ret_position) positions.push_back(position - 1);
    }
    if (records.size() == most * record_words) positions.push_back(halt_position);
    return positions;
}

Result<void> Sampler::look(Store& store, device::ProcessMemory& process, u64 times) {
    std::vector<u32> stack = TRY(store.stack_positions(process, max_depth));
    if (seen_.size() >= max_stacks && !seen_.contains(stack)) {
        others_ += times;
    } else {
        seen_[std::move(stack)] += times;
    }
    return {};
}

std::vector<StackSample> Sampler::samples(Store& store) const {
    Named named;
    for (const auto& [positions, count] : seen_) {
        std::vector<std::string> functions;
        for (u32 position : positions) {
            std::optional<Frame> frame = store.frame_at(position);
            if (frame || position == halt_position)
                functions.push_back(frame ? frame->function : "...");
        }
        std::ranges::reverse(functions);
        if (!functions.empty()) named[std::move(functions)] += count;
    }
    if (others_) named[{"others"}] += others_;
    return listed(named);
}

void MergedSamples::add(const std::vector<StackSample>& samples, const std::string& root) {
    for (const StackSample& sample : samples) {
        std::vector<std::string> functions = sample.functions;
        if (!root.empty()) functions.insert(functions.begin(), root);
        seen_[std::move(functions)] += sample.count;
    }
}

std::vector<StackSample> MergedSamples::samples() const { return listed(seen_); }

}  // namespace gpurun::engine
