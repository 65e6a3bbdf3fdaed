// --profile: where the time of a process went.
#pragma once

#include <gpurun/gpurun.hpp>

#include <span>
#include <string>

#include "base/result.h"

namespace gpurun::tool {

// "main;sort;swap 42" a line: what flame graph tools read.
std::string folded_stacks(std::span<const api::StackSample> samples);
// The same as a picture that needs nothing else: a box a function, those it called above it.
std::string flame_graph(std::span<const api::StackSample> samples, const std::string& title);

// Before the work: can NAME.folded and NAME.svg be written?
Result<void> check_profile(const std::string& name);
// Writes both, and tells the functions by their share.
Result<void> finish_profile(const std::string& name, const std::string& file,
                            std::span<const api::StackSample> samples, const api::Device& device);

}  // namespace gpurun::tool
