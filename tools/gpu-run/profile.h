// --profile: where the time of processes went.
#pragma once

#include <gpurun/gpurun.hpp>

#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace gpurun::tool {

// "main;sort;swap 42" a line: what flame graph tools read.
std::string folded_stacks(std::span<const api::StackSample> samples);
// The same as a picture that needs nothing else: a box a function, those it called above it.
std::string flame_graph(std::span<const api::StackSample> samples, const std::string& title);

// Before the work: can NAME.folded and NAME.svg be written?
Result<void> check_profile(const std::string& name);
// Writes both, and tells the functions by their share. `is_alone`: there was one process.
Result<void> finish_profile(const std::string& name, const std::string& file,
                            std::span<const api::StackSample> samples, const api::Device& device,
                            bool is_alone);
// Does that if a profile was asked for. Returns false if it could not be written, and says why.
bool tell_profile(const std::string& name, const std::string& file,
                  std::span<const api::StackSample> samples, const api::Device& device,
                  bool is_alone);

// Samples of several launches, put together.
class MergedSamples {
public:
    void add(std::span<const api::StackSample> samples);
    std::vector<api::StackSample> samples() const;

private:
    std::map<std::vector<std::string>, u64> seen_;
};

}  // namespace gpurun::tool
