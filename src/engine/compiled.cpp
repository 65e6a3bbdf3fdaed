// Calls the compiler with the options for text, for the cache and for packages.
#include "engine/compiled.h"

#include "base/format.h"
#include "base/notes.h"
#include "base/phases.h"

namespace gpurun::engine {
namespace {

std::string describe(const codegen::Image& image) {
    u64 bytes = 0;
    for (const codegen::Image::Piece& piece : image.pieces) bytes += piece.object.size();
    return format("%u functions in %llu bytes, %u left to the interpreter", image.functions,
                  (unsigned long long)bytes, image.interpreted);
}

}  // namespace

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

Result<std::string> compile_for_later(const std::shared_ptr<const wasm::Module>& module,
                                      const std::string& name) {
    return describe(TRY(Images(module, name).get(codegen::Target::host, false))->image);
}

Result<std::vector<u8>> make_package(const wasm::Module& module,
                                     std::span<const codegen::Target> targets,
                                     const std::string& cpu, std::string& done) {
    const translate::Code code = TRY(translate::translate(module, {}));
    PhaseTimer timer(Phase::compile);
    Package package;
    package.module.assign(module.bytes.begin(), module.bytes.end());
    for (codegen::Target target : targets) {
        codegen::Options options;
        options.target = target;
        if (target == codegen::Target::host) options.cpu = cpu;
        options.has_progress = tell_compiled;
        const codegen::Image image = TRY(codegen::compile(module, code, options));
        package.images.push_back({target, options.cpu, codegen::target_key(target, options.cpu),
                                  codegen::to_bytes(image)});
        done += std::string(done.empty() ? "" : "; ") + codegen::name_of(target) +
                (options.cpu.empty() ? "" : " (" + options.cpu + ")") + ": " + describe(image);
    }
    return to_bytes(package);
}

}  // namespace gpurun::engine
