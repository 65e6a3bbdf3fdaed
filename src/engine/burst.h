// Many processes of one module at once: the same call in each, with arguments that may name the
// process.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "device/device.h"
#include "engine/store.h"

namespace gpurun::engine {

struct BurstOptions {
    u32 processes = 1;
    std::string function;
    std::vector<std::string> arguments;  // {} stands for the process's number, from 0
    std::optional<u32> stack_slots, heap_words;
    std::optional<u64> memory_bytes, fuel;
};

// How each process ended.
class BurstReport {
public:
    BurstReport(std::unique_ptr<Store> store, Extern func, device::BurstOutcome outcome)
        : store_(std::move(store)), func_(std::move(func)), outcome_(std::move(outcome)) {}

    u32 processes() const { return u32(outcome_.results.size() / outcome_.stride); }
    Completion of(u32 process) const;
    const device::BurstOutcome& outcome() const { return outcome_; }

private:
    std::unique_ptr<Store> store_;
    Extern func_;
    device::BurstOutcome outcome_;
};

Result<BurstReport> run_burst(device::Device& device, std::shared_ptr<const wasm::Module> module,
                              const BurstOptions& options, const device::RunControl& control);

}  // namespace gpurun::engine
