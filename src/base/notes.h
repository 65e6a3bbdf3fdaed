// What a person may want to know and nothing depends on: said by whoever notices, heard by whoever
// asked to. Nobody at first.
#pragma once

#include <functional>
#include <string>

#include "base/ints.h"

namespace gpurun {

void note(const std::string& text);
// Whoever hears notes from now on, of all threads; one at a time. Nothing: nobody.
void hear_notes(std::function<void(const std::string&)> listener);

// Says how far compiling is that somebody waits for: `done` of `all` parts.
void tell_compiled(u64 done, u64 all);
void hear_compiled(std::function<void(u64 done, u64 all)> listener);

}  // namespace gpurun
