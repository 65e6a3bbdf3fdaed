// Shows a dump as text.
#pragma once

#include "engine/dump.h"
#include "engine/objdump.h"

namespace gpurun::engine {

// Returns how the process ended, its frames with their locals, globals, and sizes of memories.
std::string describe_dump(const Dump& dump);
// Prints bytes of a memory, 16 to a line: "00000010  48 65 …  |He…|".
Result<void> print_memory(const Dump& dump, u32 memory, u64 address, u64 size,
                          const TextSink& sink);
// Prints all runs of at least `least` printable characters, with their addresses.
Result<void> print_strings(const Dump& dump, u32 memory, u32 least, const TextSink& sink);

}  // namespace gpurun::engine
