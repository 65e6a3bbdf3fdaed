// zstd's one-shot functions.
#include "base/compress.h"

#include <zstd.h>

#include "base/check.h"

namespace gpurun {

std::vector<u8> compress(std::span<const u8> bytes, int level) {
    std::vector<u8> made(ZSTD_compressBound(bytes.size()));
    const usize size = ZSTD_compress(made.data(), made.size(), bytes.data(), bytes.size(), level);
    CHECK(!ZSTD_isError(size));
    made.resize(size);
    return made;
}

bool decompress(std::span<const u8> compressed, std::span<u8> to) {
    const usize size = ZSTD_decompress(to.data(), to.size(), compressed.data(), compressed.size());
    return !ZSTD_isError(size) && size == to.size();
}

}  // namespace gpurun
