// Unpacks the kernels that the binary carries. They come with the binary, so damaged ones are a
// bug.
#include "device/cuda/runtime_kernels.h"

#include <cstring>

#include "base/check.h"
#include "base/compress.h"

namespace gpurun {
namespace {

template <class Bytes>
Bytes unpack_to(PackedBytes packed) {
    Bytes bytes(header_of(packed).size, 0);
    CHECK(decompress(packed.subspan(sizeof(PackedHeader)),
                     {reinterpret_cast<u8*>(bytes.data()), bytes.size()}));
    return bytes;
}

}  // namespace

PackedHeader header_of(PackedBytes packed) {
    PackedHeader header;
    CHECK(packed.size() >= sizeof header);
    std::memcpy(&header, packed.data(), sizeof header);
    return header;
}

std::vector<u8> unpack(PackedBytes packed) { return unpack_to<std::vector<u8>>(packed); }
std::string unpack_text(PackedBytes packed) { return unpack_to<std::string>(packed); }

}  // namespace gpurun
