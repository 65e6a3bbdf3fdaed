// Modules of the interface.
#include "api/handles.h"
#include "engine/load.h"

using gpurun::Error;
using gpurun::Result;
using gpurun::u8;
using gpurun::api::guarded;

gpurun_error* gpurun_module_load_file(const char* path, gpurun_module** module) {
    return guarded([&]() -> Result<void> {
        if (!path || !module)
            return Error{"gpurun_module_load_file wants a path and a place for the module"};
        auto images = TRY(gpurun::engine::load_images_of_file(path));
        *module = new gpurun_module{{images->module(), path, images, path}};
        return {};
    });
}

gpurun_error* gpurun_module_load(const void* bytes, size_t size, const char* name,
                                 gpurun_module** module) {
    return guarded([&]() -> Result<void> {
        if ((!bytes && size > 0) || !module)
            return Error{"gpurun_module_load wants bytes and a place for the module"};
        if (!name) name = "module";
        const u8* first = static_cast<const u8*>(bytes);
        auto images = TRY(gpurun::engine::load_images(std::vector<u8>(first, first + size), name));
        *module = new gpurun_module{{images->module(), name, images, name}};
        return {};
    });
}

void gpurun_module_allow_precompiled(gpurun_module* module) {
    if (module) module->images->allow_shipped();
}

void gpurun_module_delete(gpurun_module* module) { delete module; }

bool gpurun_module_has_export(const gpurun_module* module, const char* name) {
    return module && name && module->module->find_export(name);
}
bool gpurun_module_has_import(const gpurun_module* module, const char* module_name,
                              const char* name) {
    if (!module || !module_name || !name) return false;
    for (const gpurun::wasm::Import& import : module->module->imports)
        if (import.module == module_name && import.name == name) return true;
    return false;
}

gpurun_error* gpurun_dump_folder_make(const char* folder, const gpurun_module* module) {
    return guarded([&]() -> Result<void> {
        if (!folder || !module) return Error{"gpurun_dump_folder_make wants a folder and a module"};
        TRY(gpurun::engine::DumpFolder::make(folder, module->name, *module->module));
        return {};
    });
}
