// Makes machine code of PTX by the driver's assembler. No device has to be open for it.
#include "base/format.h"
#include "cache/cache.h"
#include "device/cuda/cuda_device.h"

namespace gpurun::device {

std::string kernel_id(const RuntimeKernel& kernel) {
    return format("%s/%016llx", kernel.name, (unsigned long long)header_of(kernel.ptx).ptx_hash);
}

std::optional<PackedBytes> shipped(const Chip& chip, const RuntimeKernel& kernel) {
    if (chip.assemblies->refuses_shipped) return std::nullopt;
    std::optional<PackedBytes> best;
    for (PackedBytes packed : kernel.cubins) {
        const PackedHeader header = header_of(packed);
        // Machine code runs on chips of its major version from its minor version on; drivers load
        // what was made for their own major version of CUDA and for older ones.
        if (header.chip / 10 != chip.capability / 10 || header.chip > chip.capability ||
            header.toolkit / 1000 > u32(chip.driver->version) / 1000)
            continue;
        if (!best || header.chip > header_of(*best).chip) best = packed;
    }
    return best;
}

u32 capability_of(const Chip& chip, const RuntimeKernel& kernel) {
    const std::optional<PackedBytes> packed = shipped(chip, kernel);
    return packed ? header_of(*packed).chip : chip.capability;
}

std::optional<std::vector<u8>> Assemblies::find(std::string_view key) {
    std::lock_guard lock(mutex_);
    for (const Entry& entry : entries_)
        if (entry.key == key) return entry.cubin;
    return std::nullopt;
}

void Assemblies::keep(std::string key, std::vector<u8> cubin) {
    std::lock_guard lock(mutex_);
    entries_.push_back({std::move(key), std::move(cubin)});
    bytes_ += entries_.back().size();
    for (; bytes_ > most_bytes; entries_.pop_front()) bytes_ -= entries_.front().size();
}

Assemblies::KeyLock::KeyLock(Assemblies& all, std::string_view key) : all_(all), key_(key) {
    std::unique_lock lock(all.mutex_);
    all.changed_.wait(lock, [&] { return !all.being_made_.contains(key); });
    all.being_made_.insert(key);
}

Assemblies::KeyLock::~KeyLock() {
    std::lock_guard lock(all_.mutex_);
    all_.being_made_.erase(key_);
    all_.changed_.notify_all();
}

namespace {

Result<std::vector<u8>> assemble_now(const Driver& driver, std::span<const std::string_view> ptx,
                                     u32 max_registers, AssembleOptions options) {
    constexpr int jit_max_registers = 0, jit_log = 5, jit_log_size = 6, jit_level = 7,
                  jit_target = 9, jit_split_compile = 33;
    char log[4096] = {};
    std::vector<int> names;
    std::vector<void*> values;
    auto set = [&](int option, usize value) {
        names.push_back(option);
        values.push_back(reinterpret_cast<void*>(value));
    };
    set(jit_max_registers, max_registers);
    set(jit_log, reinterpret_cast<usize>(log));
    set(jit_log_size, sizeof log - 1);
    set(jit_level, options.is_optimised ? 4 : 0);
    if (options.capability != 0) set(jit_target, options.capability);
    // The option to compile in parallel pieces came with driver 12.0; 0: as many as there are
    // cores, 1: one after another.
    if (driver.version >= 12000) set(jit_split_compile, options.is_alone ? 0 : 1);
    DriverHandle link = nullptr;
    TRY(driver.check(driver.link_create(unsigned(names.size()), names.data(), values.data(), &link),
                     "starting the assembler"));
    // Ends the link even if memory runs out below.
    struct LinkGuard {
        const Driver& driver;
        DriverHandle link;
        ~LinkGuard() { driver.link_destroy(link); }
    } guard{driver, link};
    constexpr int input_ptx = 1;
    cuda::Status status = 0;
    for (std::string_view text : ptx) {
        if (status != 0) break;
        status = driver.link_add(link, input_ptx, const_cast<char*>(text.data()), text.size() + 1,
                                 "ptx", 0, nullptr, nullptr);
    }
    void* linked = nullptr;
    usize size = 0;
    if (status == 0) status = driver.link_complete(link, &linked, &size);
    std::vector<u8> cubin;
    if (status == 0) {
        const u8* bytes = static_cast<const u8*>(linked);
        cubin.assign(bytes, bytes + size);
    }
    if (status != 0) {
        Error error = std::move(driver.check(status, "assembling PTX")).error();
        if (log[0]) error.message += format(": %s", log);
        return error;
    }
    return cubin;
}

// Returns what `make` makes. It is called once for a chip and a driver version; the result is kept
// in the cache, or in memory where there is no cache.
template <class Make>
Result<std::vector<u8>> make_once(const Chip& chip, const std::string& id, u32 max_registers,
                                  AssembleOptions options, Make make) {
    const cache::Cache cache(cache::Cache::default_folder());
    const std::string key = format("kernel %u%s driver %d chip %u ", max_registers,
                                   options.is_optimised ? "" : " plain", chip.driver->version,
                                   options.capability != 0 ? options.capability : chip.capability) +
                            id;
    const Assemblies::KeyLock lock(*chip.assemblies, key);
    if (std::optional<std::vector<u8>> kept = cache.get(key)) return std::move(*kept);
    if (std::optional<std::vector<u8>> kept = chip.assemblies->find(key)) return std::move(*kept);
    std::vector<u8> cubin = TRY(make());
    chip.assemblies->assembled++;
    if (cache.folder().empty())
        chip.assemblies->keep(key, cubin);
    else
        cache.put(key, cubin);
    return cubin;
}

}  // namespace

Result<std::vector<u8>> assemble(const Chip& chip, const std::string& id,
                                 std::span<const std::string_view> ptx, u32 max_registers,
                                 AssembleOptions options) {
    if (options.capability == chip.capability) options.capability = 0;
    return make_once(chip, id, max_registers, options,
                     [&] { return assemble_now(*chip.driver, ptx, max_registers, options); });
}

Result<std::vector<u8>> assemble(const Chip& chip, const RuntimeKernel& kernel) {
    const AssembleOptions options;
    return make_once(chip, kernel_id(kernel), kernel.registers, options, [&] {
        const std::string text = unpack_text(kernel.ptx);
        const std::string_view view = text;
        return assemble_now(*chip.driver, {&view, 1}, kernel.registers, options);
    });
}

void assemble_beforehand(const Chip& chip, const RuntimeKernel& kernel) {
    if (!shipped(chip, kernel)) (void)assemble(chip, kernel);
}

}  // namespace gpurun::device
