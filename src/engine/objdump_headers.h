// Shows everything of a module but its functions' bodies. Private to objdump.
#pragma once

#include <string>

#include "wasm/print.h"

namespace gpurun::engine {

void print_headers(const wasm::Printer& printer, std::string& out);

}  // namespace gpurun::engine
