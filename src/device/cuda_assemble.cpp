// PTX to machine code, by the driver's assembler. No device has to be open for it.
#include "base/format.h"
#include "base/hash.h"
#include "device/cuda_device.h"
#include "image/cache.h"

namespace gpurun::device {

std::string kernel_id(const KernelSource& source) {
    return format("%s/%016llx", source.name, (unsigned long long)hash(source.ptx));
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

Assemblies::Turn::Turn(Assemblies& all, std::string_view key) : all_(all), key_(key) {
    std::unique_lock lock(all.mutex_);
    all.changed_.wait(lock, [&] { return !all.being_made_.contains(key); });
    all.being_made_.insert(key);
}

Assemblies::Turn::~Turn() {
    std::lock_guard lock(all_.mutex_);
    all_.being_made_.erase(key_);
    all_.changed_.notify_all();
}

namespace {

Result<std::vector<u8>> assemble_now(const Driver& driver, std::span<const std::string_view> ptx,
                                     u32 max_registers, How how) {
    constexpr int jit_max_registers = 0, jit_log = 5, jit_log_size = 6, jit_level = 7,
                  jit_split_compile = 33;
    char log[4096] = {};
    int options[] = {jit_max_registers, jit_log, jit_log_size, jit_level, jit_split_compile};
    // The option to compile in parallel pieces came with driver 12.0; 0: as many as there are
    // cores, 1: one after another.
    unsigned count = driver.version >= 12000 ? 5 : 4;
    auto value = [](usize v) { return reinterpret_cast<void*>(v); };
    void* values[] = {value(max_registers), log, value(sizeof log - 1),
                      value(how.is_optimised ? 4 : 0), value(how.is_alone ? 0 : 1)};
    Handle link = nullptr;
    TRY(driver.check(driver.link_create(count, options, values, &link), "starting the assembler"));
    constexpr int input_ptx = 1;
    cuda::Status status = 0;
    for (std::string_view text : ptx) {
        if (status != 0) break;
        status = driver.link_add(link, input_ptx, const_cast<char*>(text.data()), text.size() + 1,
                                 "ptx", 0, nullptr, nullptr);
    }
    void* image = nullptr;
    usize size = 0;
    if (status == 0) status = driver.link_complete(link, &image, &size);
    std::vector<u8> cubin;
    if (status == 0) {
        const u8* bytes = static_cast<const u8*>(image);
        cubin.assign(bytes, bytes + size);
    }
    driver.link_destroy(link);
    if (status != 0) {
        Error error = std::move(driver.check(status, "assembling PTX")).error();
        if (log[0]) error.message += format(": %s", log);
        return error;
    }
    return cubin;
}

}  // namespace

// Made once for a chip and a driver version, then kept in the cache, or here where there is none.
Result<std::vector<u8>> assemble(const Chip& chip, const std::string& id,
                                 std::span<const std::string_view> ptx, u32 max_registers,
                                 How how) {
    const image::Cache cache(image::Cache::default_folder());
    const std::string key =
        format("kernel %u%s driver %d chip %u ", max_registers, how.is_optimised ? "" : " plain",
               chip.driver->version, chip.capability) +
        id;
    const Assemblies::Turn turn(*chip.assemblies, key);
    if (std::optional<std::vector<u8>> kept = cache.get(key)) return std::move(*kept);
    if (std::optional<std::vector<u8>> kept = chip.assemblies->find(key)) return std::move(*kept);
    std::vector<u8> cubin = TRY(assemble_now(*chip.driver, ptx, max_registers, how));
    if (cache.folder().empty())
        chip.assemblies->keep(key, cubin);
    else
        cache.put(key, cubin);
    return cubin;
}

}  // namespace gpurun::device
