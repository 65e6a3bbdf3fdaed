// Runs a job of the suite that was compiled for GPUs by hand (by_hand/kernel.c): loads its PTX or
// what ptxas made of it, launches it, says how long that took, and prints what gpu-run --instances
// --each prints.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/result.h"
#include "device/cuda/cuda_driver.h"

using namespace gpurun;
using namespace gpurun::device;

namespace {

constexpr int limit_stack_size = 0;                          // CU_LIMIT_STACK_SIZE
constexpr int attribute_local = 3, attribute_registers = 4;  // CU_FUNC_ATTRIBUTE_*

struct Options {
    std::string file;
    u64 arena = 0;  // bytes of the heap of a thread
    u64 stack = 0;  // bytes, where the driver cannot know them; 0: it does
    u32 instances = 1, block = 128, repeat = 1;
    bool each = false, same = false;
};

Result<std::string> read_file(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) return Error{path + ": cannot be read"};
    return std::string(std::istreambuf_iterator<char>(stream), {});
}

// Calls a function of the driver and returns its failure, which its name explains.
#define CALL(name, ...) TRY(driver.check(driver.name(__VA_ARGS__), #name))

Result<void> set_global(const cuda::Driver& driver, cuda::DriverHandle module, const char* name,
                        u64 value) {
    cuda::DevicePointer at = 0;
    usize size = 0;
    CALL(module_global, &at, &size, module, name);
    if (size != sizeof value) return Error{format("%s has %zu bytes", name, size)};
    CALL(copy_to_device, at, &value, size, nullptr);
    CALL(stream_synchronize, nullptr);
    return {};
}

Result<void> run(const Options& options) {
    const cuda::Driver& driver = *TRY(cuda::open_driver());
    const std::string code = TRY(read_file(options.file));
    int device = 0, registers = 0, local = 0;
    cuda::DriverHandle context = nullptr, module = nullptr, function = nullptr;
    CALL(device_get, &device, 0);
    CALL(context_retain, &context, device);
    CALL(context_set, context);
    if (options.stack) CALL(context_limit, limit_stack_size, options.stack);
    CALL(module_load, &module, code.c_str());
    CALL(module_function, &function, module, "suite_kernel");
    CALL(function_attribute, &registers, attribute_registers, function);
    CALL(function_attribute, &local, attribute_local, function);
    // A thread for each instance: the hardware begins a block as soon as another has ended. If
    // their heaps took more than half of the memory there are fewer, and each runs several
    // instances.
    usize free = 0, total = 0;
    CALL(memory_info, &free, &total);
    u64 grid = (u64(options.instances) + options.block - 1) / options.block;
    if (options.arena) grid = std::min<u64>(grid, free / 2 / options.arena / options.block);
    if (grid == 0) return Error{"the heaps of a block do not fit into the memory"};
    const u64 threads = grid * options.block;

    cuda::DevicePointer arenas = 0, results = 0;
    if (options.arena) CALL(memory_alloc, &arenas, threads * options.arena);
    CALL(memory_alloc, &results, u64(options.instances) * sizeof(u32));
    TRY(set_global(driver, module, "suite_arenas", arenas));
    TRY(set_global(driver, module, "suite_arena_size", options.arena));

    u32 count = 0, step = options.same ? 0 : 1;
    void* parameters[] = {&count, &step, &results};
    std::vector<double> seconds;
    for (u32 i = 0; i <= options.repeat; i++) {
        // The first one, of fewer instances, warms up: the driver makes room for stacks then.
        count = i > 0 ? options.instances : (options.instances + 3) / 4;
        CALL(fill_bytes, results, 0, u64(options.instances) * sizeof(u32), nullptr);
        CALL(stream_synchronize, nullptr);
        auto begin = std::chrono::steady_clock::now();
        CALL(launch, function, u32(grid), 1, 1, options.block, 1, 1, 0, nullptr, parameters,
             nullptr);
        CALL(stream_synchronize, nullptr);
        std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        if (i > 0) seconds.push_back(took.count());
    }
    std::vector<u32> values(options.instances);
    CALL(copy_to_host, values.data(), results, values.size() * sizeof(u32), nullptr);
    CALL(stream_synchronize, nullptr);
    if (options.each)
        for (u32 i = 0; i < options.instances; i++) std::printf("%u\t%d\n", i, int(values[i]));
    std::sort(seconds.begin(), seconds.end());
    const double median = seconds[seconds.size() / 2];
    std::fprintf(stderr,
                 "by-hand: %u processes in %.6f s, %.0f/s, %llu threads, %d registers, %d bytes of "
                 "local memory\n",
                 options.instances, median, options.instances / median,
                 static_cast<unsigned long long>(threads), registers, local);
    return {};
}

int usage(const std::string& problem) {
    std::fprintf(stderr,
                 "by-hand: %s\n"
                 "usage: by-hand [--instances N] [--same] [--each] [--arena BYTES] [--stack BYTES] "
                 "[--block LANES] [--repeat N] FILE (PTX or cubin)\n",
                 problem.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; i++) {
        const std::string word = argv[i];
        if (word == "--same") {
            options.same = true;
        } else if (word == "--each") {
            options.each = true;
        } else if (word.starts_with("--")) {
            if (i + 1 == argc) return usage(word + " needs a number");
            char* end = nullptr;
            const u64 value = std::strtoull(argv[++i], &end, 10);
            if (end == argv[i] || *end) return usage(word + " needs a number, got " + argv[i]);
            if (word == "--instances" && value >= 1 && value <= 0x7fffffff)
                options.instances = u32(value);
            else if (word == "--block" && value >= 32 && value <= 1024 && value % 32 == 0)
                options.block = u32(value);
            else if (word == "--repeat" && value >= 1 && value <= 1000)
                options.repeat = u32(value);
            else if (word == "--arena")
                options.arena = value;
            else if (word == "--stack")
                options.stack = value;
            else
                return usage("wrong option " + word + " " + argv[i]);
        } else {
            options.file = word;
        }
    }
    if (options.file.empty()) return usage("no file given");
    Result<void> done = run(options);
    if (done) return 0;
    std::fprintf(stderr, "by-hand: %s\n", done.error().to_string().c_str());
    return 1;
}
