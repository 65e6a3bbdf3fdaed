// Makes machine code and templates of programs of a resident machine, and sends them there.
#include <algorithm>

#include "base/format.h"
#include "base/threads.h"
#include "burst/slot_layout.h"
#include "engine/images.h"
#include "engine/resident.h"

namespace gpurun::engine {

// Returns the tier of a program. If a machine has to park to load machine code, that is compiled
// here, beforehand, since it may take long. The machine does not park for a program that may be
// interpreted and has no machine code.
Result<device::Tier> Resident::choose_tier(const Job& job, const device::RunControl& control) {
    const auto& [program, run] = job;
    const device::Tier tier = run.chosen_tier(run_.is_looked_at());
    if (tier == device::Tier::interp || device_.loads_beside_machine() || !program.images)
        return tier;
    const codegen::Target target = device_.target(device::Mode::machine, Layout::linear);
    const bool is_metered = run.limits.fuel.has_value();
    const translate::Code code =
        TRY(translate::translate(*program.module, {.metered = is_metered}));
    if (tier == device::Tier::automatic)
        return program.images->find(target, is_metered, code) ? tier : device::Tier::interp;
    TRY(program.images->get(target, is_metered, control, device_.assembler(target)));
    if (control.wants_stop()) return Error{"stopped while its machine code was made"};
    return tier;
}

// Makes the template of a program as a burst of one, and the part of its ProgramInfo that follows
// from the module.
Result<device::Burst> Resident::make_program(Loading& loading) {
    const auto& [wanted, run] = loading.wanted;
    ProgramInfo& info = loading.info;
    info.name_length = u32(wanted.name.size());
    std::ranges::copy(wanted.name, info.name);
    loading.program = std::make_unique<LoadedProgram>();
    LoadedProgram& program = *loading.program;
    program.name = wanted.name;
    program.file = wanted.file;
    program.module = wanted.module;
    program.fuel = run.limits.fuel;
    StoreOptions options = template_options(loading.wanted, device_, loading.control);
    options.tier = loading.tier;
    options.is_watched = run_.is_watched;
    options.is_for_machine = true;
    program.made = TRY(make_template(loading.wanted, "_start", options));
    Store& store = *program.made.store;
    if (!store.type_of(program.made.func).params.empty() ||
        !store.type_of(program.made.func).results.empty())
        return Error{"_start has parameters or results, so it is not a program"};
    const wasm::Export* start = wanted.module->find_export("wasi_thread_start");
    const bool spawns_threads = std::ranges::any_of(
        wanted.module->imports,
        [](const wasm::Import& it) { return it.module == "wasi" && it.name == "thread-spawn"; });
    if (spawns_threads && start && start->kind == wasm::ExternKind::func)
        info.thread_entry = store.entry_of(TRY(program.made.entry(*start)));
    device::Burst burst = TRY(store.make_burst(program.made.func, {}, 1));
    burst.stack_slots -= burst.stack_slots % stack_step;
    info.most_frame_slots = TRY(store.most_frame_slots());
    if (!burst.native.empty())
        info.native = TRY(machine_->use_native(burst.native, burst.code.size()));
    info.alternates = loading.tier == device::Tier::alternate;
    info.system = store.system_stubs();
    info.memory = burst.memories.size() == 1 ? burst.memories.front().record : 0;
    return burst;
}

// Makes the programs of all threads that wait. The thread that has `loading_` calls it. The machine
// parks once for all programs that need it to.
void Resident::take_in(std::span<Loading* const> all) noexcept {
    const bool must_park = !device_.loads_beside_machine();
    auto needs_park = [&](const Loading* one) {
        return must_park && one->tier != device::Tier::interp;
    };
    auto make = [&](bool while_parked) {
        for (Loading* one : all)
            if (needs_park(one) == while_parked)
                one->made = guarded([&] { return make_program(*one); });
    };
    auto take = [&]() -> Result<void> {
        if (is_stopping_) return Error{"the machine was stopped"};
        make(false);
        if (std::ranges::none_of(all, needs_park)) return {};
        const std::unique_lock<std::mutex> unlaunched = TRY(pause());
        make(true);
        resume();
        return {};
    };
    Result<void> taken = guarded(take);
    for (Loading* one : all)
        if (!one->made)
            one->made = guarded([&]() -> Result<device::Burst> { return taken.error(); });
}

// Sends a program to the machine. Returns its number.
Result<u32> Resident::send_program(Loading& loading) {
    const std::string& name = loading.wanted.program.name;
    const device::Burst& burst = **loading.made;
    ProgramInfo& info = loading.info;
    const burst::SlotLayout slot = burst::lay_out(burst, {resident_stack_slots, 0});
    const std::vector<u8> bytes = burst::initial_bytes(burst, slot);
    info.code_bytes = burst.code.size() * sizeof(u64);
    info.template_words = slot.words.size();
    info.template_bytes = bytes.size();
    info.memory_bytes = slot.bytes_per_process;
    info.thread = burst.thread;
    info.stack = slot.stack;
    info.stack_end = slot.stack_end;
    info.most_stack_slots = burst.stack_slots;
    info.is_watched = burst.is_watched;
    std::ranges::copy(slot.ranges, info.ranges);

    auto blob = std::make_shared<std::vector<u8>>();
    auto append = [&](const void* from, u64 size) {
        const u8* first = static_cast<const u8*>(from);
        blob->insert(blob->end(), first, first + size);
    };
    append(burst.code.data(), info.code_bytes);
    append(slot.words.data(), info.template_words * sizeof(u32));
    append(bytes.data(), bytes.size());
    loading.size = blob->size();

    u32 number;
    {
        std::lock_guard lock(mutex_);
        for (const auto& other : programs_)
            if (other->name == name && other->error == 0)
                return Error{format("there is a program \"%s\" already", name.c_str())};
        if (programs_.size() == max_programs)
            return Error{format("a machine holds %u programs at the most", max_programs)};
        number = u32(programs_.size());
        programs_.push_back(std::move(loading.program));
    }
    Result<void> sent = guarded([&] { return send_program(number, info, blob); });
    if (sent) return number;
    // The machine will not answer for it, and another program may have its name.
    std::lock_guard lock(mutex_);
    programs_[number]->is_answered = true;
    programs_[number]->error = u32(wasi::Errno::io);
    return sent.error();
}

Result<void> Resident::send_program(u32 number, ProgramInfo& info,
                                    const std::shared_ptr<std::vector<u8>>& blob) {
    info.number = number;
    TRY(post(MessageKind::program, info));
    constexpr u64 piece = max_message - sizeof(ProgramData);
    for (u64 at = 0; at < blob->size(); at += piece) {
        const ProgramData data{number, 0, at};
        const u8* head = reinterpret_cast<const u8*>(&data);
        TRY(post({MessageKind::program_data, std::vector<u8>(head, head + sizeof data), blob, at,
                  std::min(piece, blob->size() - at)}));
    }
    return post(MessageKind::program_end, ProgramNumber{number, 0});
}

Result<std::vector<u32>> Resident::load(std::span<const Job> programs) {
    if (is_calling_back()) return Error{"a callback for output cannot load programs"};
    std::vector<Loading> mine;
    for (const Job& wanted : programs) {
        const std::string& name = wanted.program.name;
        if (name.empty() || name.size() > max_program_name)
            return Error{format("\"%s\" is no name for a program: it has 1 to %u bytes",
                                name.c_str(), max_program_name)};
        const device::RunControl control = wanted.run.control();
        mine.push_back({wanted, control, TRY(choose_tier(wanted, control))});
    }
    {
        std::lock_guard lock(mutex_);
        ready_.reserve(ready_.size() + mine.size());  // all of them or none
        for (Loading& one : mine) ready_.push_back(&one);
    }
    {
        // The thread that had the lock before has taken these programs in, or this one does.
        std::lock_guard turn(loading_);
        std::vector<Loading*> all;
        {
            std::lock_guard lock(mutex_);
            all.swap(ready_);
        }
        take_in(all);  // throws nothing: others wait for theirs
    }
    for (const Loading& one : mine)
        if (!*one.made) return one.made->error();
    std::vector<u32> numbers;
    for (Loading& one : mine) numbers.push_back(TRY(send_program(one)));
    for (usize i = 0; i < mine.size(); i++) {
        u32 error = 0;
        TRY(wait_for({}, nullptr, [&] {
            error = programs_[numbers[i]]->error;
            return programs_[numbers[i]]->is_answered;
        }));
        if (error != 0)
            return Error{format("the machine cannot hold program \"%s\" of %llu KiB: %s",
                                mine[i].wanted.program.name.c_str(),
                                (unsigned long long)(mine[i].size >> 10),
                                wasi::to_string(wasi::Errno(error)))};
    }
    return numbers;
}

Result<u32> Resident::load(const Job& program) { return TRY(load({&program, 1}))[0]; }

}  // namespace gpurun::engine
