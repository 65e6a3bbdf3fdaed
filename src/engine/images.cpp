// Looks for an image in the file that the module came in, then in the cache; compiles what is
// nowhere.
#include "engine/images.h"

#include "base/notes.h"
#include "base/phases.h"
#include "image/cache.h"

namespace gpurun::engine {
namespace {

// The whole module: nobody can make another that is taken for it.
std::string cache_key(const wasm::Module& module, codegen::Target target, bool is_metered) {
    std::string key = "native " + codegen::target_key(target) + (is_metered ? " metered " : " ");
    key.append(module.bytes.begin(), module.bytes.end());
    return key;
}

image::Cache cache() { return image::Cache(image::Cache::default_folder()); }

// Why an image that was shipped is of no use here. Empty: it is.
std::string unfit(const ShippedImage& image) {
    if (image.key != codegen::target_key(image.target, image.cpu))
        return "it was made by another version of gpu-run";
    if (image.target != codegen::Target::host) return "";
    Result<std::string> missing = codegen::missing_features(image.cpu);
    if (!missing) return missing.error().to_string();
    return missing->empty() ? "" : "this CPU lacks " + *missing;
}

}  // namespace

std::shared_ptr<const FoundImage> Images::add(codegen::Target target, bool is_metered,
                                              codegen::Image image, ImageSource source) {
    auto found = std::make_shared<const FoundImage>(std::move(image), source);
    rows_.push_back({target, is_metered, found});
    return found;
}

std::shared_ptr<const FoundImage> Images::find_shipped(codegen::Target target,
                                                       const translate::Code& code) {
    for (usize i = 0; i < shipped_.size(); i++) {
        if (shipped_[i].target != target) continue;
        const ShippedImage shipped = std::move(shipped_[i]);
        shipped_.erase(shipped_.begin() + s64(i));  // looked at once
        std::string problem = unfit(shipped);
        if (problem.empty()) {
            auto image = codegen::from_bytes(shipped.bytes, u32(code.words.size()));
            if (image) return add(target, false, std::move(*image), ImageSource::file);
            problem = image.error().to_string();
        }
        note(name_ + ": its machine code for " + codegen::name_of(target) +
             " is not used: " + problem);
        return nullptr;
    }
    return nullptr;
}

std::shared_ptr<const FoundImage> Images::find(codegen::Target target, bool is_metered,
                                               const translate::Code& code) {
    std::lock_guard lock(mutex_);
    for (const Row& row : rows_)
        if (row.target == target && row.is_metered == is_metered) return row.found;
    PhaseTimer timer(Phase::compile);
    if (!is_metered)
        if (auto found = find_shipped(target, code)) return found;
    const std::string key = cache_key(*module_, target, is_metered);
    std::optional<std::vector<u8>> kept = cache().get(key);
    if (!kept) return nullptr;
    Result<codegen::Image> image = codegen::from_bytes(*kept, u32(code.words.size()));
    if (image) return add(target, is_metered, std::move(*image), ImageSource::cache);
    cache().drop(key, image.error().message.c_str());
    return nullptr;
}

Result<std::shared_ptr<const FoundImage>> Images::get(codegen::Target target, bool is_metered,
                                                      const translate::Code& code) {
    if (auto found = find(target, is_metered, code)) return found;
    PhaseTimer timer(Phase::compile);
    codegen::Options options;
    options.target = target;
    codegen::Image image = TRY(codegen::compile(*module_, code, options));
    cache().put(cache_key(*module_, target, is_metered), codegen::to_bytes(image));
    std::lock_guard lock(mutex_);
    return add(target, is_metered, std::move(image), ImageSource::compiled);
}

}  // namespace gpurun::engine
