// Runs each file of the folders given once through the fuzz target it is linked with. A finding
// crashes it, as under libFuzzer; the name printed last is the file at fault.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "base/ints.h"

using namespace gpurun;
namespace fs = std::filesystem;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, usize size);

int main(int argc, char** argv) {
    std::vector<fs::path> paths;
    for (int i = 1; i < argc; i++) {
        if (!fs::is_directory(argv[i])) continue;
        for (const auto& entry : fs::directory_iterator(argv[i])) paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) {
        std::ifstream file(path, std::ios::binary);
        std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
        std::printf("%s\n", path.c_str());
        std::fflush(stdout);
        LLVMFuzzerTestOneInput(reinterpret_cast<const u8*>(bytes.data()), bytes.size());
    }
    std::printf("%zu passed, 0 failed, 0 skipped\n", paths.size());
    return paths.empty() ? 1 : 0;
}
