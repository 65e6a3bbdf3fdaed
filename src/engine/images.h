// The machine code of one module: shipped with it, kept in the cache, or made here. What was found
// or made once is there for all later runs of the module.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "engine/package.h"

namespace gpurun::engine {

enum class ImageSource : u8 { compiled, cache, file };

struct FoundImage {
    codegen::Image image;
    ImageSource source = ImageSource::compiled;
};

class Images {
public:
    // `name` is what notes call the module.
    explicit Images(std::shared_ptr<const wasm::Module> module, std::string name = "",
                    std::vector<ShippedImage> shipped = {})
        : module_(std::move(module)), name_(std::move(name)), shipped_(std::move(shipped)) {}

    const std::shared_ptr<const wasm::Module>& module() const { return module_; }
    // What is there; nothing: nobody has made it yet. `code` is the module's, with or without
    // charges for fuel.
    std::shared_ptr<const FoundImage> find(codegen::Target target, bool is_metered,
                                           const translate::Code& code);
    // The same, made now if it is not there.
    Result<std::shared_ptr<const FoundImage>> get(codegen::Target target, bool is_metered,
                                                  const translate::Code& code);

private:
    struct Row {
        codegen::Target target;
        bool is_metered;
        std::shared_ptr<const FoundImage> found;
    };

    std::shared_ptr<const FoundImage> find_shipped(codegen::Target target,
                                                   const translate::Code& code);
    std::shared_ptr<const FoundImage> add(codegen::Target target, bool is_metered,
                                          codegen::Image image, ImageSource source);

    const std::shared_ptr<const wasm::Module> module_;
    const std::string name_;
    std::mutex mutex_;
    std::vector<ShippedImage> shipped_;
    std::vector<Row> rows_;
};

}  // namespace gpurun::engine
