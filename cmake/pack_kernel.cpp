// Packs a kernel of the runtime for the binary (device/cuda/runtime_kernels.h): its PTX compressed, or
// machine code that NVIDIA's linker library makes from the PTX, as the driver's assembler would.
//
//     pack_kernel PTX OUTPUT                            the PTX
//     pack_kernel PTX OUTPUT LIBRARY CHIP REGISTERS     machine code for CHIP (90 is 9.0)
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/compress.h"
#include "base/hash.h"
#include "device/cuda/runtime_kernels.h"

namespace gpurun {
namespace {

[[noreturn]] void fail(const std::string& text) {
    std::fprintf(stderr, "pack_kernel: %s\n", text.c_str());
    std::exit(1);
}

std::string read_file(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) fail("cannot read " + path);
    return {std::istreambuf_iterator<char>(file), {}};
}

// NVIDIA's nvJitLink, opened at run time: what cuLinkCreate and so on do, without a GPU.
class Linker {
public:
    explicit Linker(const char* path) : library_(dlopen(path, RTLD_NOW | RTLD_LOCAL)) {
        if (!library_) fail(dlerror());
    }
    u32 version() {
        unsigned major = 0, minor = 0;
        function<int(unsigned*, unsigned*)>("nvJitLinkVersion")(&major, &minor);
        return major * 1000 + minor * 10;
    }
    std::vector<u8> assemble(const std::string& ptx, const std::string& chip,
                             const std::string& registers) {
        const std::string arch = "-arch=sm_" + chip, limit = "-maxrregcount=" + registers;
        const char* options[] = {arch.c_str(), limit.c_str()};
        constexpr int input_ptx = 2;
        void* link = nullptr;
        if (function<int(void**, u32, const char**)>("nvJitLinkCreate")(&link, 2, options) != 0)
            fail("the linker does not take " + arch + " " + limit);
        auto add = function<int(void*, int, const void*, usize, const char*)>("nvJitLinkAddData");
        if (add(link, input_ptx, ptx.c_str(), ptx.size() + 1, "ptx") != 0 ||
            function<int(void*)>("nvJitLinkComplete")(link) != 0)
            fail("sm_" + chip + ": " + get<std::string>(link, "nvJitLinkGetErrorLog"));
        std::vector<u8> cubin = get<std::vector<u8>>(link, "nvJitLinkGetLinkedCubin");
        function<int(void**)>("nvJitLinkDestroy")(&link);
        return cubin;
    }

private:
    template <class Signature>
    Signature* function(const std::string& name) {
        void* found = dlsym(library_, name.c_str());
        if (!found) fail("the linker has no " + name);
        return reinterpret_cast<Signature*>(found);
    }
    // What `name` gives, whose size the function of that name and "Size" tells.
    template <class Bytes>
    Bytes get(void* link, const std::string& name) {
        usize size = 0;
        if (function<int(void*, usize*)>(name + "Size")(link, &size) != 0) fail(name);
        Bytes bytes(size, 0);
        if (function<int(void*, void*)>(name)(link, bytes.data()) != 0) fail(name);
        return bytes;
    }

    void* library_;
};

// Returns true if `path` has what would be made: PTX that was only compiled again is the same.
bool is_made(const std::string& path, const PackedHeader& wanted) {
    std::ifstream file(path, std::ios::binary);
    PackedHeader there;
    if (!file.read(reinterpret_cast<char*>(&there), sizeof there)) return false;
    there.size = wanted.size;  // of a cubin it is not known yet
    return std::memcmp(&there, &wanted, sizeof there) == 0;
}

void write(const std::string& path, PackedHeader header, std::span<const u8> bytes, int level) {
    header.size = bytes.size();
    const std::vector<u8> packed = compress(bytes, level);
    // Renamed into place: what is there is whole.
    const std::string unfinished = path + ".new";
    std::ofstream file(unfinished, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&header), sizeof header);
    file.write(reinterpret_cast<const char*>(packed.data()), std::streamsize(packed.size()));
    file.close();
    if (!file) fail("cannot write " + unfinished);
    std::filesystem::rename(unfinished, path);
}

int pack(int count, char** words) {
    if (count != 3 && count != 6) fail("usage: pack_kernel PTX OUTPUT [LIBRARY CHIP REGISTERS]");
    const std::string ptx = read_file(words[1]), output = words[2];
    PackedHeader header{hash(ptx), ptx.size(), 0, 0, 0, 0};
    // PTX is packed in every build, and quickly; machine code takes far longer to make.
    if (count == 3) {
        write(output, header, {reinterpret_cast<const u8*>(ptx.data()), ptx.size()}, 9);
        return 0;
    }
    Linker linker(words[3]);
    header.chip = u32(std::atoi(words[4]));
    header.registers = u32(std::atoi(words[5]));
    header.toolkit = linker.version();
    if (is_made(output, header))
        std::filesystem::last_write_time(output, std::filesystem::file_time_type::clock::now());
    else
        write(output, header, linker.assemble(ptx, words[4], words[5]), 19);
    return 0;
}

}  // namespace
}  // namespace gpurun

int main(int count, char** words) { return gpurun::pack(count, words); }
