// The functions that the runtime offers, as a module: function n is system call n.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "wasm/module.h"

namespace gpurun::engine {

// A row of abi/system_calls.def.
struct SystemRow {
    std::string_view module, name, parameters, results;
    std::string_view alias = "";  // another module that has the same function
};
std::span<const SystemRow> system_rows();

const std::shared_ptr<const wasm::Module>& system_module();
// The numbers that host functions have begin after those of the system calls.
u32 first_host_function();

}  // namespace gpurun::engine
