// Loads machine code on NVIDIA GPUs. An image is a module of its own beside the runtime's kernels:
// they know each other's functions by their addresses, so a kernel is assembled once for all
// images.
#include <elf.h>

#include <atomic>
#include <thread>

#include "abi/machine.h"
#include "abi/native.h"
#include "base/phases.h"
#include "base/threads.h"
#include "device/cuda/cuda_device.h"

namespace gpurun::device {
namespace {

// Hardware stack of a lane, for calls in machine code. The driver allocates it for every lane that
// could be resident.
constexpr u32 stack_bytes = 16 << 10;
// Lanes of machines have the stacks of their processes there as well.
constexpr u32 machine_stack_bytes = stack_bytes + resident_stack_slots * 4;

// Returns true if code has constants in memory besides its parameters, such as jump tables. The
// hardware would look for them among those of the kernel that calls the code.
bool has_constants(std::span<const u8> cubin) {
    const std::string_view text(reinterpret_cast<const char*>(cubin.data()), cubin.size());
    constexpr std::string_view section = ".nv.constant";
    for (usize at = 0; (at = text.find(section, at)) != text.npos; at += section.size())
        if (at + section.size() < text.size() && text[at + section.size()] != '0') return true;
    return false;
}

// The largest frame that a function may have on the hardware stack. Leaving machine code at the end
// of the stack needs the rest of the reserve (kernels/runtime_nvptx.h).
constexpr u32 most_frame_bytes = 2 << 10;
// Returns the largest frame of all functions, or nullopt if the cubin does not say.
std::optional<u32> largest_frame(std::span<const u8> cubin) {
    // The section .nv.info has rows of a format, a name and a size. After those of format 4 follow
    // so many bytes, here a symbol and the size of its frame.
    struct Row {
        u8 format, name;
        u16 size;
    };
    constexpr u8 has_bytes = 4, frame_size = 0x11;
    auto read = [&]<class T>(u64 at, T& to) {
        if (at > cubin.size() || cubin.size() - at < sizeof to) return false;
        std::memcpy(&to, cubin.data() + at, sizeof to);
        return true;
    };
    Elf64_Ehdr head;
    Elf64_Shdr names, section;
    if (!read(0, head) || !read(head.e_shoff + u64(head.e_shstrndx) * sizeof names, names))
        return std::nullopt;
    std::optional<u32> most;
    for (u32 i = 0; i < head.e_shnum; i++) {
        char name[sizeof ".nv.info"] = {};
        if (!read(head.e_shoff + u64(i) * sizeof section, section)) return std::nullopt;
        if (!read(names.sh_offset + section.sh_name, name) || std::memcmp(name, ".nv.info", 9) != 0)
            continue;
        Row row;
        for (u64 at = section.sh_offset, end = at + section.sh_size; at < end && read(at, row);
             at += sizeof row + (row.format == has_bytes ? row.size : 0))
            if (u32 found[2]; row.format == has_bytes && row.name == frame_size &&
                              row.size == sizeof found && read(at + sizeof row, found))
                most = std::max(most.value_or(0), found[1]);
    }
    return most;
}

using Cubins = std::vector<std::vector<u8>>;

// Assembles code, without optimisation if it would have constants in memory otherwise.
Result<std::vector<u8>> assemble_group(const Chip& chip,
                                       std::span<const codegen::Image::Piece> pieces,
                                       u32 max_registers, AssembleOptions options) {
    // The whole text is part of the key, so that no other text can be mistaken for it.
    std::vector<std::string> texts;
    std::string id = "image";
    for (const codegen::Image::Piece& piece : pieces) {
        texts.emplace_back(piece.object.begin(), piece.object.end());
        id += format(" %zu ", texts.back().size()) + texts.back();
    }
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    std::vector<u8> cubin = TRY(assemble(chip, id, views, max_registers, options));
    options.is_optimised = false;
    if (has_constants(cubin)) cubin = TRY(assemble(chip, id, views, max_registers, options));
    if (has_constants(cubin))
        return Error{
            "the driver made machine code with constants that would not be found; --tier "
            "interp runs without"};
    const std::optional<u32> frame = largest_frame(cubin);
    if (!frame)
        return Error{
            "the driver does not say how much stack machine code takes; --tier interp runs "
            "without"};
    if (*frame > most_frame_bytes)
        return Error{
            format("a function takes %u bytes of hardware stack, and %u are the most; "
                   "--tier interp runs without",
                   *frame, most_frame_bytes)};
    return cubin;
}

// Assembles an image group by group, each on a core of its own. The context is current.
// `capability` is that of the kernel's machine code: it and the image call each other.
Result<Cubins> assemble_image(const Chip& chip, DriverHandle context, const codegen::Image& image,
                              u32 max_registers, u32 capability) {
    const usize count = image.group_count();
    std::vector<std::optional<Result<std::vector<u8>>>> made(count);
    std::atomic<usize> next = 0;
    auto work = [&](u32 number) {
        if (number > 0 && chip.driver->context_set(context) != 0) return;
        for (usize i; (i = next.fetch_add(1)) < count;)
            made[i] =
                assemble_group(chip, image.group(i), max_registers, {true, count == 1, capability});
    };
    const u32 cores = std::max(1u, std::thread::hardware_concurrency());
    share_work(std::min(u32(count), cores), work);
    Cubins cubins;
    for (std::optional<Result<std::vector<u8>>>& cubin : made)
        cubins.push_back(TRY(std::move(*cubin)));
    return cubins;
}

// An rt::NativeEntry as it lies in the device's memory.
struct EntryWords {
    u64 enter;
    u32 number, padding;
};

}  // namespace

const RuntimeKernel& native_source(codegen::Target target, u32 capability) {
    switch (target) {
        case codegen::Target::cuda_machine: return kernels::resident(capability);
        case codegen::Target::cuda_burst: return kernels::native_gang(Layout::linear);
        case codegen::Target::cuda_interleaved: return kernels::native_gang(Layout::interleaved);
        default: return kernels::native_solo();
    }
}

// Returns the kernel that runs images for a target, and sets the context's size of hardware stacks:
// a kernel that calls functions it does not know has as much as the context says.
Result<const Kernel*> CudaDevice::native_kernel(codegen::Target target) {
    constexpr int limit_stack_size = 0;
    TRY(check(driver_.context_limit(limit_stack_size, native_stack_bytes(target)),
              "asking for hardware stack"));
    return kernel(native_source(target, info_.capability));
}

u32 CudaDevice::native_stack_bytes(codegen::Target target) const {
    return target == codegen::Target::cuda_machine ? machine_stack_bytes : stack_bytes;
}

NativeParams CudaDevice::native_params(device::Tier tier) const {
    return {stack_bytes, tier == Tier::alternate};
}

Result<UploadedEntries> CudaDevice::upload_entries(std::span<const NativePart> parts,
                                                   u64 code_words) {
    std::vector<u32> entry_at(code_words + code_words % 2);
    std::vector<EntryWords> entries(1);
    for (const NativePart& part : parts) {
        for (const CudaNativeCode::Entry& entry :
             static_cast<const CudaNativeCode&>(*part.code).entries) {
            entry_at[part.begin + entry.position] = u32(entries.size());
            entries.push_back({entry.enter, entry.number, 0});
        }
    }
    const u64 first = entry_at.size() * 4, second = entries.size() * sizeof(EntryWords);
    UploadedEntries made;
    made.memory = TRY(allocate(first + second, "entries of machine code"));
    made.addresses = {made.memory.at(), made.memory.at() + first};
    TRY(copy_in(made.addresses.entry_at, entry_at.data(), first));
    TRY(copy_in(made.addresses.entries, entries.data(), second));
    TRY(synchronize("writing entries of machine code"));
    return made;
}

Result<std::shared_ptr<const NativeCode>> CudaDevice::load_native(const codegen::Image& image,
                                                                  codegen::Target target,
                                                                  const NativeCode* loaded) {
    if (loaded) return Error{info_.id + " loads machine code as a whole"};
    TRY(check(driver_.context_set(context_), "using the context"));
    const Kernel* kernel = TRY(native_kernel(target));
    // A module without functions of its own has nothing to load.
    if (image.pieces.empty())
        return std::shared_ptr<const NativeCode>(
            std::make_shared<CudaNativeCode>(driver_, account_));
    PhaseTimer timer(Phase::kernels);
    std::shared_ptr<CudaNativeCode> code;
    std::vector<DriverHandle> kernels;  // native_image_name of each group
    u32 registers = 0;
    // The image runs with the registers that the kernel was launched with, which is usually the
    // limit. It was assembled beforehand for that limit.
    const RuntimeKernel& source = native_source(target, info_.capability);
    for (u32 limit : {source.registers, kernel->registers}) {
        code = std::make_shared<CudaNativeCode>(driver_, account_);
        kernels.clear();
        registers = 0;
        const Cubins cubins =
            TRY(assemble_image(chip(), context_, image, limit, kernel->capability));
        for (const std::vector<u8>& cubin : cubins) {
            DriverHandle module = nullptr, function = nullptr;
            code->modules.reserve(cubins.size());  // so that none is lost
            TRY(check(driver_.module_load(&module, cubin.data()), "loading machine code"));
            code->modules.push_back(module);
            TRY(check(driver_.module_function(&function, module, native_image_name),
                      "finding the entries of machine code"));
            kernels.push_back(function);
            registers = std::max(registers, TRY(registers_of(function)));
        }
        if (registers <= kernel->registers) break;
    }
    if (registers > kernel->registers)
        return Error{
            format("machine code takes %u registers where its kernel has %u; --tier interp "
                   "runs without",
                   registers, kernel->registers)};
    for (usize i = 0; i < kernels.size(); i++) {
        const std::span<const codegen::Image::Piece> pieces = image.group(i);
        const std::vector<DevicePointer> enters = TRY(find_enters(kernels[i], pieces.size()));
        for (usize k = 0; k < pieces.size(); k++)
            for (u32 number = 0; number < pieces[k].entries.size(); number++)
                code->entries.push_back({pieces[k].entries[number], number, enters[k]});
    }
    TRY(connect(code->modules));
    return std::shared_ptr<const NativeCode>(std::move(code));
}

// Returns the addresses of the functions that enter a group's pieces, which its kernel writes.
Result<std::vector<DevicePointer>> CudaDevice::find_enters(DriverHandle kernel, usize pieces) {
    std::vector<DevicePointer> enters(pieces);
    const u64 size = pieces * sizeof(DevicePointer);
    Buffer addresses = TRY(allocate(size, "entries of machine code"));
    DevicePointer to = addresses.at();
    void* arguments[] = {&to};
    TRY(check(driver_.launch(kernel, 1, 1, 1, 1, 1, 1, 0, stream_, arguments, nullptr),
              "finding the entries of machine code"));
    TRY(copy_out(enters.data(), to, size));
    return enters;
}

// Connects the modules of an image: each has the addresses of its own functions in its table, and
// gets those of the others.
Result<void> CudaDevice::connect(std::span<const DriverHandle> modules) {
    if (modules.size() < 2) return {};
    std::vector<DevicePointer> all, tables;
    for (DriverHandle module : modules) {
        usize size = 0;
        TRY(check(driver_.module_global(&tables.emplace_back(), &size, module, native_table_name),
                  "finding the functions of machine code"));
        std::vector<DevicePointer> own(size / sizeof(DevicePointer));
        TRY(copy_out(own.data(), tables.back(), size));
        all.resize(own.size());  // they have the same number
        for (usize i = 0; i < own.size(); i++)
            if (own[i] != 0) all[i] = own[i];
    }
    for (DevicePointer table : tables)
        TRY(copy_in(table, all.data(), all.size() * sizeof(DevicePointer)));
    return synchronize("connecting machine code");
}

Assembler CudaDevice::assembler(codegen::Target target) const {
    return [chip = chip(), target](const codegen::Image& image) {
        // A failure is reported when the image is loaded.
        chip.with_context([&](DriverHandle context) {
            const RuntimeKernel& source = native_source(target, chip.capability);
            assemble_beforehand(chip, source);
            (void)assemble_image(chip, context, image, source.registers,
                                 capability_of(chip, source));
        });
    };
}

}  // namespace gpurun::device
