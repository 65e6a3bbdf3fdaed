// The kernels that the binary carries: what is shipped is what the PTX says, and a chip gets its
// machine code if there is some that the driver takes. With a driver that has no GPU.
#include "device/cuda/runtime_kernels.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/compress.h"
#include "base/hash.h"
#include "device/cuda/cuda_device.h"
#include "fake_cuda.h"

namespace gpurun::device {
namespace {

constexpr cuda::Status no_binary_for_gpu = 209;

// ---- what a chip gets ---------------------------------------------------------------

std::vector<u8> packed(const std::string& text, u32 chip, u32 toolkit = 12090) {
    const PackedHeader header{hash(text), text.size(), chip, 64, toolkit, 0};
    std::vector<u8> bytes(sizeof header);
    std::memcpy(bytes.data(), &header, sizeof header);
    for (u8 byte : compress({reinterpret_cast<const u8*>(text.data()), text.size()}, 1))
        bytes.push_back(byte);
    return bytes;
}

// What the driver was asked for. Its functions have no other place for it.
std::vector<std::string> loaded;  // the first four characters of each module
std::vector<std::string> linked;
std::map<int, usize> link_options;
cuda::Status refusal = 0;  // of what begins with "sm"
int minor_version = 0;

struct RuntimeKernelsTest : testing::Test {
    cuda::FakeGpu gpu;
    cuda::Driver driver;
    std::unique_ptr<CudaDevice> device;
    std::string before;
    bool had_cache = false;

    RuntimeKernelsTest() {
        if (const char* cache = std::getenv("GPURUN_CACHE")) {
            before = cache;
            had_cache = true;
        }
        setenv("GPURUN_CACHE", "", 1);
        loaded = linked = {};
        link_options = {};
        refusal = minor_version = 0;
        cuda::FakeGpu::current() = &gpu;
        cuda::fill_in(driver);
        driver.device_attribute.set([](int* value, int attribute, int) -> cuda::Status {
            *value = attribute == cuda::attribute_capability_major   ? 8
                     : attribute == cuda::attribute_capability_minor ? minor_version
                                                                     : 1;
            return 0;
        });
        driver.module_load.set([](DriverHandle* module, const void* image) -> cuda::Status {
            loaded.emplace_back(static_cast<const char*>(image), 4);
            *module = module;
            return loaded.back().starts_with("sm") ? refusal : 0;
        });
        driver.module_unload.set([](DriverHandle) -> cuda::Status { return 0; });
        driver.module_function.set(
            [](DriverHandle* function, DriverHandle, const char*) -> cuda::Status {
                *function = function;
                return 0;
            });
        driver.module_global.set([](DevicePointer* at, usize* size, DriverHandle, const char*) {
            static u64 record;
            *at = reinterpret_cast<u64>(&record);
            *size = sizeof record;
            return 0;
        });
        driver.function_attribute.set([](int* value, int, DriverHandle) -> cuda::Status {
            *value = 64;
            return 0;
        });
        driver.occupancy.set([](int* blocks, DriverHandle, int, usize) -> cuda::Status {
            *blocks = 4;
            return 0;
        });
        driver.link_create.set([](unsigned count, int* options, void** values, DriverHandle* link) {
            link_options = {};
            for (unsigned i = 0; i < count; i++)
                link_options[options[i]] = reinterpret_cast<usize>(values[i]);
            *link = new std::string;
            return 0;
        });
        driver.link_add.set([](DriverHandle link, int, void* data, usize size, const char*,
                               unsigned, int*, void**) -> cuda::Status {
            static_cast<std::string*>(link)->append(static_cast<char*>(data), size - 1);
            return 0;
        });
        driver.link_complete.set([](DriverHandle link, void** cubin, usize* size) -> cuda::Status {
            std::string& text = *static_cast<std::string*>(link);
            linked.push_back(text);
            *cubin = text.data();
            *size = text.size();
            return 0;
        });
        driver.link_destroy.set([](DriverHandle link) -> cuda::Status {
            delete static_cast<std::string*>(link);
            return 0;
        });
    }
    ~RuntimeKernelsTest() override {
        device = nullptr;
        cuda::FakeGpu::current() = nullptr;
        had_cache ? setenv("GPURUN_CACHE", before.c_str(), 1) : unsetenv("GPURUN_CACHE");
    }
    void open() {
        device = std::make_unique<CudaDevice>(&driver, 0);
        ASSERT_TRUE(device->open());
    }
    Chip chip() { return device->chip(); }
    // Loads a kernel of that PTX, assembled for these chips.
    bool load(const std::string& ptx, const std::map<u32, std::string>& cubins,
              u32 toolkit = 12090) {
        std::vector<std::vector<u8>> bytes = {packed(ptx, 0, 0)};
        for (const auto& [at, text] : cubins) bytes.push_back(packed(text, at, toolkit));
        const RuntimeKernel kernel{"gpurun_solo", 64, bytes[0], {bytes.begin() + 1, bytes.end()}};
        return bool(device->kernel(kernel));
    }
    // Loaded, shipped, refused, assembled.
    std::vector<u64> counts() const {
        const KernelCounts counts = device->kernel_counts();
        return {counts.loaded, counts.shipped, counts.refused, counts.assembled};
    }
};

using Texts = std::vector<std::string>;
using Counts = std::vector<u64>;

TEST_F(RuntimeKernelsTest, ShippedMachineCodeIsLoadedAndNothingIsAssembled) {
    open();
    EXPECT_TRUE(load("ptx1", {{75, "sm75"}, {80, "sm80"}, {90, "sm90"}}));
    EXPECT_EQ(loaded, Texts{"sm80"});
    EXPECT_EQ(linked, Texts{});
    EXPECT_EQ(counts(), (Counts{1, 1, 0, 0}));
}

TEST_F(RuntimeKernelsTest, ChipsOfTheSameMajorVersionTakeTheNewestTheyCanRun) {
    minor_version = 7;
    open();
    EXPECT_TRUE(load("ptx1", {{80, "sm80"}, {86, "sm86"}, {89, "sm89"}}));
    EXPECT_EQ(loaded, Texts{"sm86"});
}

TEST_F(RuntimeKernelsTest, OtherChipsAssemblePtx) {
    open();
    EXPECT_TRUE(load("ptx1", {{75, "sm75"}, {86, "sm86"}, {90, "sm90"}, {100, "sm10"}}));
    EXPECT_EQ(loaded, Texts{"ptx1"});
    EXPECT_EQ(linked, Texts{"ptx1"});
    EXPECT_EQ(counts(), (Counts{1, 0, 0, 1}));
}

TEST_F(RuntimeKernelsTest, DriversOfAnOlderCudaAssemblePtx) {
    driver.version = 11080;
    open();
    EXPECT_TRUE(load("ptx1", {{80, "sm80"}}));
    EXPECT_EQ(loaded, Texts{"ptx1"});
    EXPECT_TRUE(load("ptx2", {{80, "sm80"}}, 11050));
    EXPECT_EQ(loaded.back(), "sm80");
}

TEST_F(RuntimeKernelsTest, WhatTheDriverRefusesIsAssembledAndNotTriedAgain) {
    refusal = no_binary_for_gpu;
    open();
    EXPECT_TRUE(load("ptx1", {{80, "sm80"}}));
    EXPECT_TRUE(load("ptx2", {{80, "sm80"}}));
    EXPECT_EQ(loaded, (Texts{"sm80", "ptx1", "ptx2"}));
    EXPECT_EQ(linked, (Texts{"ptx1", "ptx2"}));
    EXPECT_EQ(counts(), (Counts{2, 0, 1, 2}));
}

TEST_F(RuntimeKernelsTest, TooLittleMemoryIsNoRefusal) {
    refusal = cuda::out_of_memory;
    open();
    EXPECT_FALSE(load("ptx1", {{80, "sm80"}}));
    EXPECT_EQ(linked, Texts{});
    refusal = 0;
    EXPECT_TRUE(load("ptx1", {{80, "sm80"}}));
    EXPECT_EQ(loaded, (Texts{"sm80", "sm80"}));
}

TEST_F(RuntimeKernelsTest, OnlyWhatIsNotShippedIsAssembledBeforehand) {
    open();
    const std::vector<u8> ptx = packed("ptx1", 0, 0), cubin = packed("sm80", 80);
    const RuntimeKernel with{"k", 64, ptx, {cubin}}, without{"k", 64, ptx, {}};
    assemble_beforehand(chip(), with);
    EXPECT_EQ(linked, Texts{});
    assemble_beforehand(chip(), without);
    EXPECT_EQ(linked, Texts{"ptx1"});
}

// Kernels and images call each other.
TEST_F(RuntimeKernelsTest, ImagesAreAssembledForTheChipOfTheirKernel) {
    minor_version = 6;
    open();
    const std::vector<u8> ptx = packed("ptx1", 0, 0), cubin = packed("sm80", 80);
    const RuntimeKernel with{"k", 64, ptx, {cubin}}, without{"k", 64, ptx, {}};
    EXPECT_EQ(capability_of(chip(), with), 80u);
    EXPECT_EQ(capability_of(chip(), without), 86u);

    constexpr int jit_target = 9;
    const std::string_view image = "image";
    for (u32 capability : {80u, 86u}) {
        EXPECT_TRUE(assemble(chip(), "id", {&image, 1}, 64, {true, true, capability}));
        EXPECT_EQ(link_options.contains(jit_target), capability == 80);
    }
    EXPECT_EQ(linked.size(), 2u);
}

// ---- what is in this binary -----------------------------------------------------------

std::set<const RuntimeKernel*> all_kernels() {
    std::set<const RuntimeKernel*> all = {&kernels::native_solo()};
    for (Layout layout : {Layout::linear, Layout::interleaved}) {
        all.insert(&kernels::native_gang(layout));
        for (u32 capability : {75u, 120u})
            for (bool is_deep : {false, true})
                all.insert(&kernels::gang(capability, is_deep, layout));
    }
    for (u32 capability : {75u, 120u}) all.insert(&kernels::resident(capability));
    for (bool is_deep : {false, true}) all.insert(&kernels::solo(is_deep));
    return all;
}

TEST(RuntimeKernels, PtxIsWhatItsHashSays) {
    EXPECT_EQ(all_kernels().size(), 13u);
    for (const RuntimeKernel* kernel : all_kernels()) {
        const std::string text = unpack_text(kernel->ptx);
        EXPECT_EQ(hash(text), header_of(kernel->ptx).ptx_hash) << kernel->name;
        EXPECT_NE(text.find(std::string(".entry ") + kernel->name), text.npos);
    }
}

// A cubin, read as far as needed.
struct Cubin {
    std::vector<u8> bytes;

    template <class T>
    T read(u64 at) const {
        T value;
        EXPECT_LE(at + sizeof value, bytes.size());
        std::memcpy(&value, bytes.data() + at, sizeof value);
        return value;
    }
    std::string name(u64 at) const { return reinterpret_cast<const char*>(bytes.data() + at); }
    Elf64_Ehdr head() const { return read<Elf64_Ehdr>(0); }
    Elf64_Shdr section(u32 number) const {
        return read<Elf64_Shdr>(head().e_shoff + u64(number) * sizeof(Elf64_Shdr));
    }
    Elf64_Shdr section(const std::string& wanted) const {
        const u64 names = section(head().e_shstrndx).sh_offset;
        for (u32 i = 0; i < head().e_shnum; i++)
            if (name(names + section(i).sh_name) == wanted) return section(i);
        ADD_FAILURE() << "no " << wanted;
        return {};
    }
    // From compute capability 10.0 on, flags have another form.
    u32 chip() const {
        const u32 flags = head().e_flags;
        return head().e_ident[EI_ABIVERSION] >= 8 ? flags >> 8 & 0xff : flags & 0xff;
    }
    // Registers of each function and kernel, by its name.
    std::map<std::string, u32> registers() const {
        constexpr u8 has_bytes = 4, register_count = 0x2f;
        const Elf64_Shdr info = section(".nv.info"), symbols = section(".symtab");
        std::map<std::string, u32> found;
        for (u64 at = info.sh_offset, end = at + info.sh_size; at < end;) {
            const u8 format = read<u8>(at), kind = read<u8>(at + 1);
            if (format == has_bytes && kind == register_count) {
                const auto symbol =
                    read<Elf64_Sym>(symbols.sh_offset + read<u32>(at + 4) * sizeof(Elf64_Sym));
                found[name(section(symbols.sh_link).sh_offset + symbol.st_name)] =
                    read<u32>(at + 8);
            }
            at += 4 + (format == has_bytes ? read<u16>(at + 2) : 0);
        }
        return found;
    }
};

TEST(RuntimeKernels, MachineCodeIsWhatThePtxSays) {
    if (kernels::solo(false).cubins.empty())
        GTEST_SKIP() << "built without GPURUN_CUBINS, as for development";
    for (const RuntimeKernel* kernel : all_kernels()) {
        EXPECT_FALSE(kernel->cubins.empty());
        for (PackedBytes bytes : kernel->cubins) {
            const PackedHeader header = header_of(bytes);
            SCOPED_TRACE(kernel->name + (" for " + std::to_string(header.chip)));
            EXPECT_EQ(header.ptx_hash, header_of(kernel->ptx).ptx_hash);
            EXPECT_EQ(header.registers, kernel->registers);
            const Cubin cubin{unpack(bytes)};
            EXPECT_EQ(cubin.head().e_type, ET_EXEC);
            EXPECT_EQ(cubin.chip(), header.chip);
            const std::map<std::string, u32> registers = cubin.registers();
            EXPECT_TRUE(registers.contains(kernel->name));
            for (const auto& [name, count] : registers) EXPECT_LE(count, kernel->registers) << name;
        }
    }
}

TEST(RuntimeKernels, EveryGenerationHasMachineCodeOfAllKernels) {
    if (kernels::solo(false).cubins.empty())
        GTEST_SKIP() << "built without GPURUN_CUBINS, as for development";
    cuda::Driver driver;
    driver.version = 12000;
    for (u32 capability : {75u, 80u, 86u, 87u, 89u, 90u, 100u, 103u, 120u, 121u}) {
        const Chip chip{&driver, 0, capability, std::make_shared<Assemblies>()};
        std::vector<const RuntimeKernel*> used = {&kernels::solo(false), &kernels::solo(true),
                                                  &kernels::native_solo(),
                                                  &kernels::resident(capability)};
        for (Layout layout : {Layout::linear, Layout::interleaved}) {
            used.push_back(&kernels::native_gang(layout));
            for (bool is_deep : {false, true})
                used.push_back(&kernels::gang(capability, is_deep, layout));
        }
        for (const RuntimeKernel* kernel : used)
            EXPECT_TRUE(shipped(chip, *kernel)) << kernel->name << " for " << capability;
    }
}

}  // namespace
}  // namespace gpurun::device
