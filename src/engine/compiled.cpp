// Looks an image up by its module's bytes, and all else that it depends on; compiles what is not
// there.
#include "engine/compiled.h"

#include "base/phases.h"
#include "image/cache.h"

namespace gpurun::engine {

Result<codegen::Image> compiled(const wasm::Module& module, const translate::Code& code,
                                codegen::Target target, bool is_metered) {
    PhaseTimer timer(Phase::compile);
    // The whole module: nobody can make another that is taken for it.
    std::string key = "native " + codegen::target_key(target) + (is_metered ? " metered " : " ");
    key.append(module.bytes.begin(), module.bytes.end());
    const image::Cache cache(image::Cache::default_folder());
    if (std::optional<std::vector<u8>> kept = cache.get(key))
        if (Result<codegen::Image> image = codegen::from_bytes(*kept, u32(code.words.size())))
            return image;
    codegen::Image image = TRY(codegen::compile(module, code, {target}));
    cache.put(key, codegen::to_bytes(image));
    return image;
}

}  // namespace gpurun::engine
