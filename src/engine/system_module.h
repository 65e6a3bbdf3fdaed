// The functions that the runtime offers, as a module: function n is system call n.
#pragma once

#include <memory>

#include "wasm/module.h"

namespace gpurun::engine {

const std::shared_ptr<const wasm::Module>& system_module();
// The numbers that host functions have begin after those of the system calls.
u32 first_host_function();

}  // namespace gpurun::engine
