// Finds or makes the machine code of one module: shipped with it, kept in the cache, or compiled
// here, before the module runs or while it does. All later runs of the module use what was found or
// made once.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "device/device.h"
#include "engine/hot_code.h"
#include "engine/package.h"

namespace gpurun::engine {

struct FoundImage {
    codegen::Image image;
    ImageSource source = ImageSource::compiled;
};

class Images {
public:
    // `name` is what notes call the module.
    explicit Images(std::shared_ptr<const wasm::Module> module, std::string name = "",
                    std::vector<ShippedImage> shipped = {});
    Images(const Images&) = delete;
    Images& operator=(const Images&) = delete;
    ~Images();  // what is being made is given up

    const std::shared_ptr<const wasm::Module>& module() const { return shared_->module; }
    // Lets runs use images that were shipped with the module. Until then they are ignored, with a
    // note, since nothing checks what machine code does.
    void allow_shipped();
    // Returns the image, or null if there is none yet. `code` is the module's, with or without
    // charges for fuel.
    std::shared_ptr<const FoundImage> find(codegen::Target target, bool is_metered,
                                           const translate::Code& code);
    // Finds the image, or compiles it now, and does the long part of loading it on a device.
    // Returns null if `control` wanted a stop before.
    Result<std::shared_ptr<const FoundImage>> get(codegen::Target target, bool is_metered,
                                                  const device::RunControl& control = {},
                                                  device::Assembler assemble = {});
    // Returns the module's machine code that is made function by function, for the CPU.
    std::shared_ptr<HotCode> hot(bool is_metered, const translate::Code& code);
    // Returns what get() does, made by other threads, or null until it is there. They begin once
    // the module has run long enough to be worth it; `ran` is how long it did since the last call.
    // An image that find() returns is assembled at once.
    std::shared_ptr<const FoundImage> await(codegen::Target target, bool is_metered,
                                            std::chrono::nanoseconds ran,
                                            device::Assembler assemble = {});
    // Adds to the time that the module has run, where nobody waits for machine code.
    void has_run(std::chrono::nanoseconds ran);

private:
    // An image that a thread makes.
    struct CompileJob {
        codegen::Target target;
        bool is_metered = false, is_nice = false;
        device::Assembler assemble;
        std::atomic<bool> is_unwanted = false;  // nobody waits for it any more
    };
    struct Row {
        codegen::Target target;
        bool is_metered;
        std::shared_ptr<const FoundImage> found;
        std::shared_ptr<CompileJob> job;  // while it is being made
        std::optional<Error> problem;     // why it cannot be made
        bool is_told = false;             // that was said
        bool is_assembled = false;        // what takes long of loading it was done
    };
    // What threads that make images share with this object, which it may outlive.
    struct Shared {
        std::shared_ptr<const wasm::Module> module;
        std::string name;
        std::atomic<bool> is_given_up = false;

        std::mutex mutex;
        std::condition_variable changed;
        std::vector<ShippedImage> shipped;
        bool may_use_shipped = false, was_shipped_noted = false;
        std::vector<Row> rows;
        std::shared_ptr<HotCode> hot[2];  // without and with charges for fuel
        std::chrono::nanoseconds ran{0};

        Row* row(codegen::Target target, bool is_metered);
        std::shared_ptr<const FoundImage> find_shipped(codegen::Target target,
                                                       const translate::Code& code);
        std::optional<codegen::Image> find_kept(codegen::Target target, bool is_metered,
                                                const translate::Code& code);
        std::shared_ptr<const FoundImage> find(codegen::Target target, bool is_metered,
                                               const translate::Code& code);
        Result<std::shared_ptr<const FoundImage>> compile(const CompileJob& job);
        bool is_unwanted(const CompileJob& job) const;
        std::shared_ptr<const FoundImage> add(codegen::Target target, bool is_metered,
                                              codegen::Image image, ImageSource source);
    };
    void begin(codegen::Target target, bool is_metered, bool is_nice, device::Assembler assemble);

    const std::shared_ptr<Shared> shared_;
};

}  // namespace gpurun::engine
