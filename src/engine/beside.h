// Runs work that nobody can interrupt, such as LLVM's and the assembler's, on threads of its own. A
// caller can stop waiting for it; the thread then goes on alone until its work is done.
#pragma once

#include <functional>

#include "device/device.h"

namespace gpurun::engine {

// Starts a thread. `work` owns all that it uses and throws nothing; a program that ends waits for
// it.
Result<void> begin_beside(std::function<void()> work);
// Runs the work on a thread and waits for its end. Returns false if `control` wanted a stop before.
Result<bool> run_beside(std::function<void()> work, const device::RunControl& control);

// Returns true while such threads run.
bool is_working_beside();
// Returns true once the program ends, so that work can end early.
bool is_program_ending();

// Loads the kernels that runs of this mode need, which may take seconds the first time.
// Returns false if `control` wanted a stop before.
Result<bool> prepare(device::Device& device, device::Mode mode, const device::RunControl& control);

}  // namespace gpurun::engine
