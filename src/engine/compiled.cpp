// Looks an image up by its module's bytes, and all else that it depends on; compiles what is not
// there.
#include "engine/compiled.h"

#include "base/format.h"
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
    if (std::optional<std::vector<u8>> kept = cache.get(key)) {
        Result<codegen::Image> image = codegen::from_bytes(*kept, u32(code.words.size()));
        if (image) return image;
        cache.drop(key, image.error().message.c_str());
    }
    codegen::Image image = TRY(codegen::compile(module, code, {target}));
    cache.put(key, codegen::to_bytes(image));
    return image;
}

Result<std::string> emit(const wasm::Module& module, Emitted what) {
    const translate::Code code = TRY(translate::translate(module, {}));
    if (what == Emitted::ir) return codegen::emit_ir(module, code, codegen::Target::host);
    codegen::Options options;
    options.is_text = true;
    if (what == Emitted::ptx) options.target = codegen::Target::cuda_burst;
    const codegen::Image image = TRY(codegen::compile(module, code, options));
    std::string text;
    for (const codegen::Image::Piece& piece : image.pieces)
        text.append(piece.object.begin(), piece.object.end());
    return text;
}

Result<std::string> compile_for_later(const wasm::Module& module) {
    const translate::Code code = TRY(translate::translate(module, {}));
    const codegen::Image image = TRY(compiled(module, code, codegen::Target::host, false));
    u64 bytes = 0;
    for (const codegen::Image::Piece& piece : image.pieces) bytes += piece.object.size();
    return format("%u functions in %llu bytes, %u left to the interpreter", image.functions,
                  (unsigned long long)bytes, image.interpreted);
}

}  // namespace gpurun::engine
