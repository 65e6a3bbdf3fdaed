// What each command of the command line does. Returns exit codes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gpurun::tool {

struct RunOptions {
    std::string file;
    std::vector<std::string> arguments;
    std::string invoke;
    std::optional<uint64_t> fuel;
    std::optional<double> timeout;  // seconds
    std::optional<uint32_t> stack_slots, heap_words;
    std::optional<uint64_t> memory_bytes;
};

struct ObjdumpOptions {
    bool only_headers = false;
    std::string function;
};

int run_file(const RunOptions& options);
int run_scripts(const std::vector<std::string>& files);
int validate_files(const std::vector<std::string>& files);
int dump_files(const std::vector<std::string>& files, const ObjdumpOptions& options);

// "gpu-run: …" on standard error.
int input_error(const std::string& message);  // 1
int usage_error(const std::string& message);  // 2

}  // namespace gpurun::tool
