// Runs the same function in many processes, and tells how they ended.
#include "engine/burst.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <unordered_map>

#include "commands.h"
#include "engine/load.h"
#include "interrupt.h"
#include "output.h"

namespace gpurun::tool {
namespace {

using engine::Completion;

// "42", or "trap: unreachable in f at 0x2a".
std::string describe(const Completion& completion) {
    if (completion.kind == Completion::Kind::returned) {
        std::string text;
        for (const engine::Value& value : completion.results)
            text += (text.empty() ? "" : " ") + value.to_string();
        return text;
    }
    std::string text = completion.to_string();
    if (completion.kind == Completion::Kind::trapped) text = "trap: " + text;
    if (!completion.backtrace.empty()) {
        const engine::Frame& frame = completion.backtrace[0];
        char offset[16];
        std::snprintf(offset, sizeof offset, "0x%x", frame.wasm_offset);
        text += " in " + frame.function + " at " + offset;
    }
    return text;
}

void say_outcome(const engine::BurstReport& report, const device::DeviceInfo& device) {
    char text[256];
    const device::BurstOutcome& outcome = report.outcome();
    int size = std::snprintf(text, sizeof text, "%u processes on %s in %.6f s, %.0f/s, %u slots",
                             report.processes(), device.id.c_str(), outcome.seconds,
                             report.processes() / outcome.seconds, outcome.slots);
    auto add = [&](const char* pattern, double value) {
        size += std::snprintf(text + size, sizeof text - usize(size), pattern, value);
    };
    if (outcome.busy > 0) add(", lanes busy %.1f %%", outcome.busy * 100);
    if (outcome.stop_seconds) add(", stopped within %.1f ms", *outcome.stop_seconds * 1e3);
    say(text);
    say_phases();
}

Result<int> run(const RunOptions& options) {
    auto module = TRY(engine::load_file(options.file));
    if (!module->imports.empty())
        return Error{options.file + ": modules with imports cannot run in many processes yet"};
    auto device = TRY(choose_device(options.device, true));
    engine::BurstOptions burst;
    burst.processes = *options.instances;
    burst.function = options.invoke.empty() ? "_start" : options.invoke;
    burst.arguments = options.arguments;
    burst.stack_slots = options.stack_slots;
    burst.heap_words = options.heap_words;
    burst.memory_bytes = options.memory_bytes;
    burst.fuel = options.fuel;
    burst.is_watched = options.is_watched;
    burst.spoilt = options.spoilt_process.value_or(burst.spoilt);
    const engine::BurstJob job{module, burst};
    engine::BurstReport report =
        TRY(engine::run_burst(*device, {&job, 1}, run_control(options.timeout)));

    bool all_returned = true, some_stopped = false;
    std::unordered_map<std::string, u32> counts;
    std::vector<std::string> order;  // by first appearance
    for (u32 id = 0; id < report.processes(); id++) {
        Completion completion = report.of(id);
        all_returned &= completion.kind == Completion::Kind::returned;
        some_stopped |= completion.kind == Completion::Kind::stopped;
        std::string text = describe(completion);
        if (options.each) {
            if (!print(std::to_string(id) + "\t" + text + "\n")) break;
        } else if (counts[text]++ == 0) {
            order.push_back(text);
        }
    }
    // The most common first, then by first appearance.
    std::vector<usize> ranks(order.size());
    std::iota(ranks.begin(), ranks.end(), usize{0});
    std::sort(ranks.begin(), ranks.end(), [&](usize a, usize b) {
        u32 count_a = counts[order[a]], count_b = counts[order[b]];
        return count_a != count_b ? count_a > count_b : a < b;
    });
    for (usize rank : ranks) print(std::to_string(counts[order[rank]]) + "\t" + order[rank] + "\n");
    if (options.stats) say_outcome(report, device->info());
    if (some_stopped) return finish_output(was_interrupted() ? exit_interrupted : exit_timeout);
    return finish_output(all_returned ? 0 : exit_trap);
}

}  // namespace

int run_burst(const RunOptions& options) {
    Result<int> code = run(options);
    return code ? *code : input_error(code.error().to_string());
}

}  // namespace gpurun::tool
