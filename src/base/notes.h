// What a person may want to know and nothing depends on: said by whoever notices, heard by whoever
// asked to. Nobody at first.
#pragma once

#include <functional>
#include <string>

namespace gpurun {

void note(const std::string& text);
// Whoever hears notes from now on, of all threads; one at a time. Nothing: nobody.
void hear_notes(std::function<void(const std::string&)> listener);

}  // namespace gpurun
