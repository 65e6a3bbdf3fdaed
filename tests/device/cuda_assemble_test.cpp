// The driver assembles what is asked for once: it is kept in the cache, or in memory where there is
// none. With a driver that has no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "device/cuda/cuda_device.h"
#include "fake_cuda.h"

namespace gpurun::device {
namespace {

std::atomic<u32> links = 0;

// "Assembles" text to itself; what begins with '!' fails.
struct Link {
    std::string text;
};

struct CudaAssembleTest : testing::Test {
    cuda::Driver driver;
    std::string before;
    bool had_cache = false;

    CudaAssembleTest() {
        if (const char* cache = std::getenv("GPURUN_CACHE")) {
            before = cache;
            had_cache = true;
        }
        setenv("GPURUN_CACHE", "", 1);
        links = 0;
        cuda::fill_in(driver);
        driver.link_create.set([](unsigned, int*, void**, DriverHandle* link) -> cuda::Status {
            *link = new Link;
            return 0;
        });
        driver.link_add.set([](DriverHandle link, int, void* data, usize size, const char*,
                               unsigned, int*, void**) -> cuda::Status {
            EXPECT_EQ(static_cast<char*>(data)[size - 1], '\0');
            static_cast<Link*>(link)->text.append(static_cast<char*>(data), size - 1);
            return 0;
        });
        driver.link_complete.set([](DriverHandle link, void** cubin, usize* size) -> cuda::Status {
            links++;
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            std::string& text = static_cast<Link*>(link)->text;
            *cubin = text.data();
            *size = text.size();
            return text.starts_with('!') ? 1 : 0;
        });
        driver.link_destroy.set([](DriverHandle link) -> cuda::Status {
            delete static_cast<Link*>(link);
            return 0;
        });
    }
    ~CudaAssembleTest() override {
        had_cache ? setenv("GPURUN_CACHE", before.c_str(), 1) : unsetenv("GPURUN_CACHE");
    }
    Chip chip() const { return {&driver, 0, 90, std::make_shared<Assemblies>()}; }
    static std::string text_of(const Chip& chip, std::string_view ptx, u32 registers = 64) {
        auto made = assemble(chip, std::string(ptx), {&ptx, 1}, registers);
        return made ? std::string(made->begin(), made->end()) : "error";
    }
};

TEST_F(CudaAssembleTest, MemoryKeepsWhatNoCacheKeeps) {
    const Chip here = chip(), other = chip();
    EXPECT_EQ(text_of(here, "one"), "one");
    EXPECT_EQ(text_of(here, "two"), "two");
    EXPECT_EQ(links, 2u);
    // A copy is the same device: as a thread has it that assembles beside a run.
    const Chip copy = here;
    EXPECT_EQ(text_of(copy, "one"), "one");
    EXPECT_EQ(text_of(copy, "two"), "two");
    EXPECT_EQ(links, 2u);
    EXPECT_EQ(text_of(here, "one", 32), "one");
    EXPECT_EQ(text_of(other, "one"), "one");
    EXPECT_EQ(links, 4u);
}

TEST_F(CudaAssembleTest, TheCacheKeepsItForAll) {
    const auto folder =
        std::filesystem::temp_directory_path() / ("gpurun-assemble-" + std::to_string(getpid()));
    setenv("GPURUN_CACHE", folder.c_str(), 1);
    const Chip here = chip();
    EXPECT_EQ(text_of(here, "one"), "one");
    EXPECT_EQ(text_of(chip(), "one"), "one");
    EXPECT_EQ(links, 1u);
    // Nothing of it is in memory.
    setenv("GPURUN_CACHE", "", 1);
    EXPECT_EQ(text_of(here, "one"), "one");
    EXPECT_EQ(links, 2u);
    std::filesystem::remove_all(folder);
}

TEST_F(CudaAssembleTest, ThreadsDoNotMakeTheSameTwice) {
    const Chip here = chip();
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([&, i] {
            const std::string text = i % 2 == 0 ? "even" : "odd";
            EXPECT_EQ(text_of(here, text), text);
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(links, 2u);
}

TEST_F(CudaAssembleTest, WhatFailsIsTriedAgain) {
    const Chip here = chip();
    EXPECT_EQ(text_of(here, "!wrong"), "error");
    EXPECT_EQ(text_of(here, "!wrong"), "error");
    EXPECT_EQ(links, 2u);
}

TEST(Assemblies, TheOldestGo) {
    Assemblies all;
    const u64 half = Assemblies::most_bytes / 2;
    all.keep("a", std::vector<u8>(half - 1));
    all.keep("b", std::vector<u8>(half - 1));
    EXPECT_TRUE(all.find("a") && all.find("b"));
    all.keep("c", {1, 2, 3});
    EXPECT_FALSE(all.find("a"));
    EXPECT_TRUE(all.find("b"));
    EXPECT_EQ(all.find("c"), (std::vector<u8>{1, 2, 3}));
}

}  // namespace
}  // namespace gpurun::device
