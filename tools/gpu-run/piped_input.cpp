// Standard input of gpu-run for many processes: all of them get all of it.
#include "piped_input.h"

namespace gpurun::tool {

bool reads_input(const wasm::Module& module) {
    for (const wasm::Import& import : module.imports)
        if (import.module == "wasi_snapshot_preview1" && import.name == "fd_read") return true;
    return false;
}

Result<std::optional<std::vector<u8>>> piped_input(const device::RunControl& control) {
    constexpr usize most = usize{1} << 30, piece = 1 << 20;
    host::Streams streams = host::console();
    std::vector<u8> all;
    if (streams.terminals & 1) return std::optional(all);
    for (;;) {
        auto bytes = TRY(streams.read(piece, control.deadline, control.stop));
        if (!bytes) return std::optional<std::vector<u8>>();
        if (bytes->empty()) return std::optional(std::move(all));
        all.insert(all.end(), bytes->begin(), bytes->end());
        if (all.size() > most)
            return Error{"standard input is larger than 1 GiB, the most that processes can share"};
    }
}

}  // namespace gpurun::tool
