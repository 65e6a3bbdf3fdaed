// Compressed bytes, by zstd. Only bytes that gpu-run itself compressed: a frame says its own size.
#pragma once

#include <span>
#include <vector>

#include "base/ints.h"

namespace gpurun {

// Returns `bytes` compressed; `level` is zstd's, from 1 (quick) to 19 (small).
std::vector<u8> compress(std::span<const u8> bytes, int level);
// Fills `to` with what was compressed. Returns false if that is something else than exactly
// to.size() bytes.
bool decompress(std::span<const u8> compressed, std::span<u8> to);

}  // namespace gpurun
