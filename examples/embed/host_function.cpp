// A function of C++ that the guest calls, with text in the guest's memory.
#include <cctype>
#include <gpurun/gpurun.hpp>
#include <iostream>

namespace gpu = gpurun::api;

constexpr const char* guest = R"(
    (module
      (import "host" "shout" (func $shout (param i32 i32) (result i32)))
      (memory (export "memory") 1)
      (data (i32.const 16) "hello from the guest")
      (func (export "main") (result i32)
        (call $shout (i32.const 16) (i32.const 20))))
)";

int main() {
    try {
        gpu::Device device("auto");
        gpu::Module module = gpu::Module::from_bytes(guest, "guest.wat");
        gpu::Config config;
        config.function("main").host_function<int32_t, int32_t, int32_t>(
            "host", "shout", [](gpu::Call& call, int32_t address, int32_t size) {
                std::string text = call.read(uint64_t(address), size_t(size));
                for (char& c : text) c = char(std::toupper(c));
                std::cout << text << "\n";
                return size;
            });
        gpu::Result result = gpu::run(device, module, config);
        std::cout << "it returned " << result[0].value<int32_t>() << "\n";
    } catch (const gpu::Error& error) {
        std::cerr << "host_function: " << error.what() << "\n";
        return 1;
    }
}
