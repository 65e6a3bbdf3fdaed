// A CUDA device over lanes_driver.h for tests, with a cache of its own.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "device/cuda/cuda_device.h"
#include "lanes_driver.h"

namespace gpurun::test {

class LanesCudaTest : public testing::Test {
protected:
    void SetUp() override {
        if (!kernels::are_built()) GTEST_SKIP() << "built without kernels for GPUs";
        if (const char* cache = getenv("GPURUN_CACHE")) before_ = cache;
        std::string pattern = testing::TempDir() + "lanes-XXXXXX";
        folder_ = mkdtemp(pattern.data());
        setenv("GPURUN_CACHE", (folder_ + "/cache").c_str(), 1);
        device_ = std::make_unique<device::CudaDevice>(&lanes_driver(), 0);
        ASSERT_TRUE(device_->open().ok());
    }
    void TearDown() override {
        device_.reset();
        before_ ? setenv("GPURUN_CACHE", before_->c_str(), 1) : unsetenv("GPURUN_CACHE");
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }

    std::unique_ptr<device::CudaDevice> device_;
    std::string folder_;

private:
    std::optional<std::string> before_;
};

}  // namespace gpurun::test
