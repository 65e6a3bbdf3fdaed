// Makes a module of the functions that the runtime offers: function n is system call n.
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
// Returns the number of the first host function: they follow the system calls.
u32 first_host_function();

}  // namespace gpurun::engine
