// What is in a dump, as text.
#pragma once

#include "engine/dump.h"
#include "engine/objdump.h"

namespace gpurun::engine {

// How it ended; the frames with their locals; globals; sizes of memories.
std::string describe_dump(const Dump& dump);
// Lines of 16 bytes: "00000010  48 65 …  |He…|".
Result<void> print_memory(const Dump& dump, u32 memory, u64 address, u64 size,
                          const TextSink& sink);
// Runs of printable characters, `least` of them and more, with their addresses.
Result<void> print_strings(const Dump& dump, u32 memory, u32 least, const TextSink& sink);

}  // namespace gpurun::engine
