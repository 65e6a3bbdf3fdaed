// Makes a process, loads code into it, and calls its functions.
#include "engine/store.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>

#include "abi/machine.h"
#include "abi/system.h"
#include "base/check.h"
#include "base/format.h"
#include "base/notes.h"
#include "base/phases.h"
#include "base/threads.h"
#include "codegen/demangle.h"
#include "engine/system_module.h"
#include "wasm/source_line.h"

namespace gpurun::engine {

using device::RunControl;
using wasm::ValType;

namespace {

u32 position_of(u64 words) { return u32(words); }

// Appends 32-bit numbers, two to a word.
void append_u32s(std::vector<u64>& to, std::span<const u32> numbers) {
    for (usize i = 0; i < numbers.size(); i += 2)
        to.push_back(code_pair(numbers[i], i + 1 < numbers.size() ? numbers[i + 1] : 0));
}

void append_bytes(std::vector<u64>& to, std::span<const u8> bytes) {
    usize at = to.size();
    to.resize(at + (bytes.size() + 7) / 8);
    if (!bytes.empty()) std::memcpy(to.data() + at, bytes.data(), bytes.size());
}

}  // namespace

StoreOptions options_for(const device::DeviceInfo& device) {
    StoreOptions options;
    if (device.reserves_lazily) return options;
    options.heap_words = 1 << 24;
    options.instance_words = 1 << 24;
    options.code_words = 1 << 24;
    options.all_memory_bytes = device.memory_free / 16;
    options.memory_bytes = options.all_memory_bytes / 64 & ~u64{0xffff};
    return options;
}

StoreOptions options_for(const device::DeviceInfo& device, const wasm::Module& module,
                         std::optional<u64> memory_bytes) {
    StoreOptions options = options_for(device);
    if (device.reserves_lazily) {
        options.memory_bytes = memory_bytes.value_or(options.memory_bytes);
        return options;
    }
    // All that a memory can grow to is allocated at once, and cleared.
    const u64 share = device.memory_free / 2 / std::max<u64>(1, module.memories.size());
    options.memory_bytes = memory_bytes.value_or(std::min(StoreOptions{}.memory_bytes, share));
    options.all_memory_bytes = memory_room(module, options.memory_bytes);
    return options;
}

u64 memory_room(const wasm::Module& module, u64 memory_bytes) {
    u64 bytes = 0;
    for (const wasm::MemoryType& memory : module.memories) {
        const u64 max_pages = memory.limits.max.value_or(memory_bytes >> page_bits);
        bytes += (std::min(memory_bytes >> page_bits, max_pages) << page_bits) + canary_bytes;
    }
    return bytes;
}

Result<std::unique_ptr<Store>> Store::create(const StoreOptions& options) {
    static const std::unique_ptr<device::Device> cpu = std::move(*device::open_device("cpu"));
    return create(options, *cpu);
}

Result<std::unique_ptr<Store>> Store::create(const StoreOptions& options, device::Device& device,
                                             device::SystemMemory* system) {
    std::unique_ptr<Store> store(new Store(options, device));
    store->system_ = system;
    TRY(store->prepare());
    return store;
}

Result<void> Store::prepare() {
    constexpr u32 min_stack_slots = 64;
    if (options_.stack_slots < min_stack_slots)
        return Error{format("a stack of %u bytes is too small; --stack takes at least %u",
                            options_.stack_slots * u32{sizeof(u32)},
                            min_stack_slots * u32{sizeof(u32)})};
    u64 fixed = process_first_free + (options_.instances + 1) + thread_words;
    if (options_.is_watched) fixed += 4 * canary_words;
    free_end_ = (fixed + options_.heap_words + options_.instance_words + stack_step - 1) /
                stack_step * stack_step;
    words_ = free_end_ + options_.stack_slots + (options_.is_watched ? canary_words : 0);
    if (words_ > max_words)
        return Error{
            format("stack and heap together may take %llu MiB, not %llu; ask for less with "
                   "--stack or --heap",
                   (unsigned long long)(u64{max_words} * sizeof(u32) >> 20),
                   (unsigned long long)((words_ * sizeof(u32) + (1 << 20) - 1) >> 20))};
    space_ = TRY(device_.make_space(sizes()));

    const u64 stubs[] = {code_word(CodeOp::halt), code_word(CodeOp::ret)};
    TRY(space_->write_code(halt_position, stubs));

    next_word_ = process_first_free;
    instance_table_ = TRY(take_words(options_.instances + 1, "the instance table"));
    // The first stack is behind everything else, so that processes made from this one can have one
    // of another size (make_burst).
    current_.at = TRY(take_words(thread_words, "a thread"));
    current_.stack = u32(free_end_);
    current_.stack_end = current_.stack + options_.stack_slots;
    threads_.push_back(current_);
    u32 heap = TRY(take_words(options_.heap_words, "the heap"));
    u32 header[process_first_free] = {};
    header[process_heap_next] = heap;
    header[process_heap_end] = heap + options_.heap_words;
    header[process_instances] = instance_table_;
    header[process_threads] = current_.at;
    if (options_.is_watched) header[process_canaries] = current_.stack_end;
    return space_->write_words(0, header);
}

Result<u32> Store::take_words(u64 count, const char* what) {
    next_word_ = (next_word_ + 1) & ~u64{1};
    const u64 left = free_end_ - std::min(free_end_, next_word_);
    if (count > left)
        return Error{format("no room for %s: it needs %llu words, the process has %llu left", what,
                            (unsigned long long)count, (unsigned long long)left)};
    u32 at = u32(next_word_);
    next_word_ += count;
    if (options_.is_watched) {
        if (left - count < canary_words) return Error{"no room for a canary"};
        u32 canary_at = u32(next_word_);
        const u32 canary[canary_words] = {canary_word ^ canary_at, last_canary_};
        TRY(space_->write_words(canary_at, canary));
        last_canary_ = canary_at;
        next_word_ += canary_words;
        // The first stack's canary stays the newest, since it is behind all others.
        u32 first = u32(words_) - canary_words;
        const u32 stack_canary[canary_words] = {canary_word ^ first, last_canary_};
        TRY(space_->write_words(first, stack_canary));
    }
    return at;
}

Result<u32> Store::add_thread() {
    Thread thread;
    thread.at = TRY(take_words(thread_words, "a thread"));
    thread.stack = TRY(take_words(options_.stack_slots, "a stack"));
    thread.stack_end = thread.stack + options_.stack_slots;
    if (!threads_.empty()) {
        Thread& last = current_number_ == threads_.size() - 1 ? current_ : threads_.back();
        last.next = thread.at;
        TRY(space_->write_words(last.at + thread_next, {&last.next, 1}));
    }
    threads_.push_back(thread);
    return u32(threads_.size() - 1);
}

Result<u32> Store::read_word(u32 index) {
    u32 word;
    TRY(space_->read_words(index, {&word, 1}));
    return word;
}

Result<u64> Store::read_wide(u32 index) {
    u32 words[2];
    TRY(space_->read_words(index, words));
    return code_pair(words[0], words[1]);
}

// ---- code --------------------------------------------------------------------------

Result<void> Store::append_code(std::span<const u64> words) {
    if (words.size() > options_.code_words - next_code_)
        return Error{format("the code does not fit: it needs %zu words, %llu are left",
                            words.size(), (unsigned long long)(options_.code_words - next_code_))};
    TRY(space_->write_code(next_code_, words));
    next_code_ += u32(words.size());
    return {};
}

ValType Store::store_type(ValType type, const std::vector<u32>& types) const {
    return type.is_concrete() ? ValType::ref(types[type.heap()], type.is_nullable()) : type;
}

// Adds a module's types to the store's table, and writes new ones into the code memory.
Result<std::vector<u32>> Store::add_types(const wasm::Module& module) {
    std::vector<u32> ids(module.types.size());
    for (u32 start = 0; start < module.types.size();) {
        u32 count = module.types.group_size(start);
        auto map_heap = [&](u32 heap) {
            return heap >= start ? wasm::TypeTable::group_ref | (heap - start) : ids[heap];
        };
        auto map_type = [&](ValType type) {
            return type.is_concrete() ? ValType::ref(map_heap(type.heap()), type.is_nullable())
                                      : type;
        };
        std::vector<wasm::SubType> group;
        for (u32 i = start; i < start + count; i++) {
            wasm::SubType type = module.types[i];
            if (type.super != wasm::SubType::no_super) type.super = map_heap(type.super);
            for (ValType& t : type.func.params) t = map_type(t);
            for (ValType& t : type.func.results) t = map_type(t);
            for (wasm::FieldType& field : type.fields) field.type = map_type(field.type);
            group.push_back(std::move(type));
        }
        u32 first = types_.add_group(group);
        for (u32 i = 0; i < count; i++) ids[start + i] = first + i;
        start += count;
    }
    std::vector<u64> infos;
    std::vector<u32> positions = type_positions_;
    positions.resize(types_.size());
    for (u32 id : ids) {
        if (positions[id] != 0) continue;
        positions[id] = next_code_ + position_of(infos.size());
        const wasm::SubType& type = types_[id];
        u32 depth = types_.depth(id);
        std::vector<u32> supers(depth);
        for (u32 super = type.super, i = depth; i > 0; super = types_[super].super, i--)
            supers[i - 1] = positions[super];
        infos.push_back(code_pair(u32(type.kind), depth));
        append_u32s(infos, supers);
    }
    TRY(append_code(infos));
    type_positions_ = std::move(positions);
    return ids;
}

Result<translate::Code> Store::translate_module(const std::shared_ptr<const wasm::Module>& module) {
    PhaseTimer timer(Phase::translate);
    if (module == host_module_) return translate::translate_system(*module, first_host_function());
    if (module == system_module_) return translate::translate_system(*module, 0);
    translate::Options options;
    options.metered = options_.fuel.has_value();
    return translate::translate(*module, options);
}

// Finds machine code of a module whose code begins at `begin`. The tier decides if it is made now,
// or only used if there is some, and awaited otherwise.
Result<void> Store::find_native(const std::shared_ptr<const wasm::Module>& module,
                                const translate::Code& code, u32 begin) {
    std::shared_ptr<Images> images = options_.images;
    if (!images || images->module() != module) images = std::make_shared<Images>(module);
    const codegen::Target target = native_target();
    const bool is_metered = options_.fuel.has_value();
    const bool is_early = options_.tier == device::Tier::early;
    if (options_.tier == device::Tier::partial && target == codegen::Target::host)
        return use_some(*module, code, begin);
    if (options_.tier == device::Tier::quick) return use_quick(*module, code, begin, 0, 1);
    // An image for the other layout, if there is one, is assembled while the rest is prepared.
    if (const auto other = native_device().target(device::Mode::burst, Layout::interleaved);
        options_.may_interleave && images->find(other, is_metered, code))
        images->await(other, is_metered, {}, native_device().assembler(other));
    auto get = [&] {
        return images->get(target, is_metered, options_.control, native_device().assembler(target));
    };
    if (options_.tier != device::Tier::automatic && !is_early) {
        // A run that is stopped before there is machine code ends as soon as it begins.
        auto made = TRY(get());
        return made ? use_native(*made, begin) : Result<void>();
    }
    if (!is_early && target == codegen::Target::host && native_device().takes_late_native()) {
        LateCode& late = late_.emplace_back(images, begin, images->hot(is_metered, code));
        if (!options_.is_for_machine) {
            take_hot(late);
            return {};
        }
        // A program of a machine gets no machine code later.
        late.hot->want_all();
        take_hot(late);
        // If there is no quick code, it is interpreted.
        (void)guarded([&] { return use_quick(*module, code, begin, 0, 1); });
        return {};
    }
    auto found = is_early ? nullptr : images->find(target, is_metered, code);
    if (found) found = TRY(get());
    if (found) {
        // If the machine code cannot be used, the interpreter runs.
        if (Result<void> used = use_native(*found, begin); !used)
            note("interpreted, its machine code cannot be used: " + used.error().to_string());
    } else if (native_device().takes_late_native()) {
        if (is_early) TRY(get());
        late_.push_back({images, begin});
    }
    return {};
}

// Makes quick code of the functions whose number modulo `of` is `rest`.
Result<void> Store::use_quick(const wasm::Module& module, const translate::Code& code, u32 begin,
                              u32 rest, u32 of) {
    const bool is_host = native_target() == codegen::Target::host;
    if (!is_host || !codegen::QuickCode::is_available()) return {};
    auto quick = TRY(codegen::QuickCode::make(code.words.size()));
    std::vector<codegen::QuickCode::Function> functions;
    for (u32 func = module.imported_funcs; func < code.entries.size(); func++) {
        if (func % of != rest) continue;
        const u32 first = code.entries[func];
        const u32 end = func + 1 < code.entries.size() ? code.entries[func + 1] : code.instantiate;
        functions.push_back(
            TRY(quick->add(std::span(code.words).subspan(first, end - first), first)));
    }
    const device::NativePart part{device::use_quick_code(quick, std::move(functions)), begin};
    TRY(space_->use_native(part));
    native_.push_back(part);
    return {};
}

// Makes machine code of every other function, in two pieces, as it is made for lanes of a warp, and
// quick code of half of the rest.
Result<void> Store::use_some(const wasm::Module& module, const translate::Code& code, u32 begin) {
    TRY(use_quick(module, code, begin, 2, 4));
    const auto compiler = codegen::Compiler::make(module, code, true);
    std::shared_ptr<const device::NativeCode> first;
    for (u32 rest : {1u, 3u}) {
        codegen::Image image;
        std::vector<u32> functions;
        image.all_functions = u32(module.funcs.size());
        for (u32 func = module.imported_funcs; func < image.all_functions; func++)
            if (func % 4 == rest && compiler->can_compile(func)) functions.push_back(func);
        if (functions.empty()) continue;
        image.pieces.push_back(TRY(compiler->compile(functions, image.seconds)));
        auto made = TRY(native_device().load_native(image, codegen::Target::host, first.get()));
        first = made;
        TRY(space_->use_native({made, begin}));
        native_.push_back({made, begin});
        facts_.functions += u32(functions.size());
    }
    return {};
}

// Looks for machine code that has been made meanwhile. Called after the process has been
// interpreted for a while.
void Store::look_for_native(std::chrono::nanoseconds ran, const device::Activity& activity) {
    interpreted_ += ran;
    const codegen::Target target = native_target();
    for (LateCode& late : late_) {
        if (!late.hot) continue;
        late.hot->saw(activity, late.begin, ran, [&](u32 position, std::span<u64> words) {
            return space_->read_code(position, words);
        });
        take_hot(late);
    }
    std::erase_if(late_, [&](const LateCode& late) {
        if (late.hot) return false;
        auto found = late.images->await(target, options_.fuel.has_value(), ran,
                                        native_device().assembler(target));
        if (!found) return false;
        if (Result<void> used = use_native(*found, late.begin); !used)
            note("interpreted, its machine code cannot be used: " + used.error().to_string());
        else if (!facts_.switched)
            facts_.switched = interpreted_;
        return true;
    });
}

Result<ThreadState> Store::run(const RunControl& control) {
    using std::chrono::steady_clock;
    for (const auto end = steady_clock::now() + control.slice;;) {
        const ThreadState state = TRY(run_awake(control));
        if (!TRY(waits_for_time(state)) || control.wants_stop()) return state;
        if (control.slice.count() > 0 && steady_clock::now() >= end) return state;
        TRY(nap());
    }
}

Result<bool> Store::waits_for_time(ThreadState state) {
    return state == ThreadState::sleeping ||
           (state == ThreadState::waiting && TRY(wait_end()) != no_deadline);
}

Result<u64> Store::wait_end() { return read_wide(current_.at + thread_wait_until); }

// Sleeps for a moment, or until the thread's wait is over. Without system memory that is a time of
// the device's clock, which the host does not know.
Result<void> Store::nap() {
    using namespace std::chrono;
    nanoseconds left = milliseconds(5);  // then a stop request is looked at
    if (system_) {
        const u64 until = TRY(wait_end()),
                  now = u64(nanoseconds(steady_clock::now().time_since_epoch()).count());
        left = nanoseconds(std::min<u64>(u64(left.count()), until > now ? until - now : 0));
    }
    std::this_thread::sleep_for(left);
    return {};
}

Result<ThreadState> Store::run_awake(const RunControl& control) {
    using namespace std::chrono;
    const bool is_early = options_.tier == device::Tier::early;
    const microseconds between(is_early ? 1 : 1'000);
    RunControl piece = control;
    for (auto since = steady_clock::now(); !late_.empty();) {
        if (is_early && options_.bursts_on) break;  // that is for the processes
        const microseconds left = piece.slice;
        piece.slice = left.count() > 0 ? std::min(left, between) : between;
        ThreadState state = TRY(space_->run(current_.at, piece));
        const nanoseconds ran = steady_clock::now() - std::exchange(since, steady_clock::now());
        // A thread that has ended already would be no test.
        if (state == ThreadState::ready || !is_early)
            look_for_native(ran, state == ThreadState::ready ? space_->activity(current_.at)
                                                             : device::Activity());
        if (state != ThreadState::ready || control.wants_stop()) return state;
        piece.slice = left - duration_cast<microseconds>(ran);
        if (left.count() == 0) piece.slice = left;
        if (piece.slice.count() < 0 || (left.count() > 0 && piece.slice.count() == 0)) return state;
    }
    return space_->run(current_.at, piece);
}

device::Burst::Late Store::take_late_native(const device::Activity& activity) {
    const auto now = std::chrono::steady_clock::now();
    const s64 before = s64(native_.size());
    look_for_native(now - burst_begin_.value_or(now), activity);
    burst_begin_ = now;
    return {{native_.begin() + before, native_.end()}, late_.empty()};
}

bool Store::prepare_native(Layout layout, std::chrono::nanoseconds ran) {
    if (!native_for(layout).empty()) return true;
    if (!options_.images || cannot_load_other_) return false;
    const codegen::Target target = native_device().target(device::Mode::burst, layout);
    const auto found = options_.images->await(target, options_.fuel.has_value(), ran,
                                              native_device().assembler(target));
    if (!found) return false;
    for (const LoadedCode& code : codes_) {
        if (code.module != options_.images->module()) continue;
        PhaseTimer timer(Phase::link);
        auto loaded = native_device().load_native(found->image, target, nullptr);
        if (loaded) {
            other_native_.push_back({*loaded, code.begin});
            continue;
        }
        cannot_load_other_ = true;
        note("memories stay as they are, machine code for the other layout cannot be used: " +
             loaded.error().to_string());
        return false;
    }
    return true;
}

// Uses machine code of functions that has been made and is worth linking.
void Store::take_hot(LateCode& late) {
    const u32 before = late.taken.functions;
    if (!late.hot->take(native_device(), late.taken)) return;
    for (const std::shared_ptr<const device::NativeCode>& code : late.taken.parts) {
        const device::NativePart part{code, late.begin};
        if (native_target() == space_target())
            if (Result<void> used = space_->use_native(part); !used) return;
        native_.push_back(part);
    }
    if (late.taken.functions == before) return;
    if (before == 0) facts_.interpreted += late.hot->function_count();
    facts_.functions += late.taken.functions - before;
    facts_.interpreted -= late.taken.functions - before;
    facts_.source = late.hot->source();
    facts_.seconds = late.hot->seconds();
    if (before == 0 && !facts_.switched && interpreted_.count() > 0) facts_.switched = interpreted_;
}

Result<void> Store::use_native(const FoundImage& found, u32 begin) {
    PhaseTimer timer(Phase::link);
    const codegen::Image& image = found.image;
    const device::NativePart part{TRY(native_device().load_native(image, native_target(), nullptr)),
                                  begin};
    // A burst's template is interpreted if the burst has an image for another target.
    if (native_target() == space_target()) TRY(space_->use_native(part));
    native_.push_back(part);
    facts_.functions += image.functions;
    facts_.interpreted += image.interpreted;
    facts_.source = found.source;
    facts_.seconds.build += image.seconds.build;
    facts_.seconds.optimise += image.seconds.optimise;
    facts_.seconds.emit += image.seconds.emit;
    return {};
}

Result<u32> Store::load_code(const std::shared_ptr<const wasm::Module>& module_ptr) {
    if (auto found = code_of_.find(module_ptr.get()); found != code_of_.end()) return found->second;
    const wasm::Module& module = *module_ptr;
    translate::Code code = TRY(translate_module(module_ptr));
    std::vector<u32> types = TRY(add_types(module));
    u32 begin = next_code_;
    TRY(append_code(code.words));

    // The tables follow the instructions, with the header that finds them.
    std::vector<u64> words;
    auto at = [&] { return next_code_ + position_of(words.size()); };
    ModuleHeader header{};
    std::vector<u32> entries = code.entries;
    for (u32 i = module.imported_funcs; i < entries.size(); i++) entries[i] += begin;
    header.funcs = at();
    for (u32 i = 0; i < entries.size(); i++)
        words.push_back(code_pair(entries[i], type_positions_[types[module.funcs[i].type]]));
    header.types = at();
    std::vector<u32> positions;
    for (u32 type : types) positions.push_back(type_positions_[type]);
    append_u32s(words, positions);

    std::vector<u64> segments;
    for (const wasm::Data& data : module.data) {
        segments.push_back(code_pair(at(), data.end - data.begin));
        append_bytes(words, {module.bytes.data() + data.begin, data.end - data.begin});
    }
    header.data = at();
    words.insert(words.end(), segments.begin(), segments.end());
    segments.clear();
    for (usize i = 0; i < module.elems.size(); i++) {
        const wasm::Elem& elem = module.elems[i];
        bool evaluated = code.layout.elem_is_evaluated[i];
        segments.push_back(code_pair(evaluated ? 0 : at(), elem.size()));
        if (!evaluated) append_u32s(words, elem.funcs);
    }
    header.elems = at();
    words.insert(words.end(), segments.begin(), segments.end());
    header.data_state = code.layout.data_state;
    header.elem_state = code.layout.elem_state;
    header.memories = module.memories.empty() ? 0 : code.layout.memories;
    header.code = begin;
    u32 header_at = at();
    append_bytes(words, {reinterpret_cast<const u8*>(&header), sizeof header});
    TRY(append_code(words));
    const bool is_system = module_ptr == system_module_ || module_ptr == host_module_;
    if (options_.tier != device::Tier::interp && !is_system)
        TRY(find_native(module_ptr, code, begin));

    codes_.push_back({module_ptr, std::move(code.layout), std::move(entries), std::move(types),
                      begin, begin + code.instantiate, header_at});
    u32 number = u32(codes_.size() - 1);
    code_of_[module_ptr.get()] = number;
    return number;
}

// ---- calls -------------------------------------------------------------------------

Result<void> Store::begin_thread(u32 entry, u32 instance_at, std::span<const u32> argument_words) {
    u32 bottom = current_.stack_end - record_words;
    const u32 record[record_words] = {halt_position, current_.stack, instance_at};
    if (argument_words.size() > bottom - current_.stack)
        return Error{"the arguments do not fit the stack; --stack makes it larger"};
    TRY(space_->write_words(bottom, record));
    TRY(space_->write_words(current_.stack, argument_words));
    u32 thread[thread_words] = {};
    thread[thread_next] = current_.next;
    thread[thread_state] = u32(ThreadState::ready);
    thread[thread_pc] = entry;
    thread[thread_fp] = current_.stack;
    thread[thread_rp] = bottom;
    thread[thread_instance] = instance_at;
    thread[thread_stack] = current_.stack;
    thread[thread_stack_end] = current_.stack_end;
    TRY(space_->write_words(current_.at, thread));
    return set_fuel(options_.fuel.value_or(0));
}

Result<u64> Store::fuel() { return read_wide(current_.at + thread_fuel); }

Result<void> Store::set_fuel(u64 fuel) {
    fuel = std::min<u64>(fuel, ~u64{0} >> 1);  // it is signed there
    const u32 words[2] = {u32(fuel), u32(fuel >> 32)};
    return space_->write_words(current_.at + thread_fuel, words);
}

Result<void> Store::begin_call(const Extern& func, std::span<const Value> arguments) {
    const wasm::FuncType& type = type_of(func);
    CHECK(func.kind == wasm::ExternKind::func && arguments.size() == type.params.size());
    std::vector<u32> words;
    for (usize i = 0; i < arguments.size(); i++) {
        u32 count = translate::words_of(type.params[i]);
        words.insert(words.end(), arguments[i].bits.word, arguments[i].bits.word + count);
    }
    return begin_thread(entry_of(func), instances_[ref_instance(func.at) - 1]->at_, words);
}

u32 Store::entry_of(const Extern& func) const {
    const Instance& instance = *instances_[ref_instance(func.at) - 1];
    return codes_[instance.code_].entries[ref_function(func.at)];
}

SystemStubs Store::system_stubs() const {
    if (system_instance_ == nullptr) return {};
    const std::vector<u32>& entries = codes_[system_instance_->code_].entries;
    return {function_ref(system_instance_->number_, 0), u32(entries.size()), entries.front()};
}

Result<Extern> Store::add_beginning(const Instance& instance, const wasm::Export* initialize,
                                    const wasm::Export& func) {
    LoadedCode& code = codes_[instance.code_];
    const std::vector<u64> words = TRY(translate::translate_beginning(
        *code.module, code.layout, code.entries, code.instantiate, next_code_,
        initialize ? std::optional(initialize->index) : std::nullopt, func.index));
    Extern made;
    made.kind = wasm::ExternKind::func;
    made.at = function_ref(instance.number_, u32(code.entries.size()));
    made.type = code.types[code.module->funcs[func.index].type];
    code.entries.push_back(next_code_);
    TRY(append_code(words));
    return made;
}

Result<u32> Store::most_frame_slots() {
    u32 most = 0;
    for (const LoadedCode& code : codes_) {
        std::vector<u32> entries(code.entries.begin() + code.module->imported_funcs,
                                 code.entries.end());
        entries.push_back(code.instantiate);
        for (u32 entry : entries) {
            u64 words[2];
            TRY(space_->read_code(entry, words));
            CHECK(CodeOp(op_of(words[0])) == CodeOp::enter);
            most = std::max(most, frame_slots(words[0], words[1]));
        }
    }
    return most;
}

std::vector<Extern> Store::all_memories() const {
    std::vector<Extern> memories = provided_memories_;
    for (const auto& instance : instances_)
        memories.insert(memories.end(),
                        instance->memories_.begin() + instance->module_->imported_memories,
                        instance->memories_.end());
    return memories;
}

Result<Completion> Store::call(const Extern& func, std::span<const Value> arguments,
                               const RunControl& control) {
    TRY(begin_call(func, arguments));
    return resume(func, control);
}

Result<Completion> Store::resume(const Extern& func, const RunControl& control) {
    ThreadState state = TRY(run(control));
    return finish_call(func, state);
}

Result<Completion> Store::finish_call(const Extern& func, ThreadState state) {
    Completion completion = TRY(complete(state));
    if (completion.kind != Completion::Kind::returned) return completion;
    u32 count = 0;
    for (ValType type : type_of(func).results) count += translate::words_of(type);
    std::vector<u32> words(count);
    TRY(space_->read_words(current_.stack, words));
    completion.results = results_from(func, words);
    return completion;
}

std::vector<Value> Store::results_from(const Extern& func, std::span<const u32> words) const {
    std::vector<Value> results;
    for (ValType type : type_of(func).results) {
        Value value{type};
        u32 count = translate::words_of(type);
        std::copy_n(words.begin(), count, value.bits.word);
        words = words.subspan(count);
        results.push_back(value);
    }
    return results;
}

Result<Completion> Store::complete(ThreadState state) {
    Completion completion;
    switch (state) {
        case ThreadState::finished: return completion;
        case ThreadState::trapped:
            completion.kind = Completion::Kind::trapped;
            completion.trap = Trap(TRY(read_word(current_.at + thread_trap)));
            break;
        case ThreadState::uncaught: completion.kind = Completion::Kind::uncaught_exception; break;
        case ThreadState::out_of_fuel: completion.kind = Completion::Kind::out_of_fuel; break;
        case ThreadState::waiting:
            completion.kind =
                TRY(waits_for_time(state)) ? Completion::Kind::stopped : Completion::Kind::blocked;
            break;
        case ThreadState::exited:
            completion.kind = Completion::Kind::exited;
            completion.exit_code = TRY(exit_code());
            return completion;
        case ThreadState::ready:
        case ThreadState::outgrown:
        case ThreadState::sleeping:
        case ThreadState::blocked:
        case ThreadState::host: completion.kind = Completion::Kind::stopped; break;
    }
    completion.backtrace = TRY(backtrace());
    return completion;
}

Result<u32> Store::exit_code() {
    CHECK(system_ != nullptr);
    Handle block = TRY(read_word(process_block));
    ProcessBlock me;
    TRY(system_->read(u64(block) << handle_shift, {reinterpret_cast<u8*>(&me), sizeof me}));
    return me.exit_code;
}

const Store::LoadedCode* Store::find_code(u32 position) const {
    for (const LoadedCode& code : codes_)
        if (position >= code.begin && position < code.instantiate) return &code;
    return nullptr;
}

const translate::FunctionMap& Store::map_of(const LoadedCode& code, u32 func) {
    // The map of the last function is kept: recursion asks for the same one again and again.
    if (!mapped_ || mapped_->module != code.module.get() || mapped_->func != func) {
        translate::Options options;
        options.metered = options_.fuel.has_value();
        mapped_ = {code.module.get(), func, translate::map_function(*code.module, func, options)};
    }
    return mapped_->map;
}

std::optional<Frame> Store::frame_at(u32 position) {
    if (auto known = frames_at_.find(position); known != frames_at_.end()) return known->second;
    const LoadedCode* code = find_code(position);
    if (!code) return std::nullopt;
    auto first = code->entries.begin() + code->module->imported_funcs;
    auto after = std::upper_bound(first, code->entries.end(), position);
    if (after == first) return std::nullopt;
    u32 func = u32(after - code->entries.begin() - 1);
    u32 offset = map_of(*code, func).wasm_offset_at(position - code->entries[func]);
    return frames_at_[position] = Frame{codegen::demangled(code->module->func_name(func)), func,
                                        offset, wasm::source_line(*code->module, offset)};
}

Result<std::vector<Frame>> Store::backtrace() {
    constexpr usize max_frames = 100;
    std::vector<Frame> frames;
    auto add = [&](u32 position) {
        if (std::optional<Frame> frame = frame_at(position)) frames.push_back(std::move(*frame));
    };
    add(TRY(read_word(current_.at + thread_pc)));
    u32 record = TRY(read_word(current_.at + thread_rp));
    for (; record < current_.stack_end && frames.size() < max_frames; record += record_words) {
        u32 position = TRY(read_word(record + record_pc));
        if (!(position & handler_bit) && position > ret_position) add(position - 1);
    }
    return frames;
}

std::string Completion::to_string() const {
    switch (kind) {
        case Kind::returned: return "returned";
        case Kind::exited: return format("exited with %u", exit_code);
        case Kind::trapped: return gpurun::to_string(trap);
        case Kind::uncaught_exception: return "uncaught exception";
        case Kind::out_of_fuel: return "out of fuel";
        case Kind::stopped: return "interrupted";
        case Kind::blocked: return "waits for a notification that cannot come";
    }
    return "";
}

// ---- values ------------------------------------------------------------------------

Result<Value> Store::read_global(const Extern& global) {
    CHECK(global.kind == wasm::ExternKind::global);
    Value value{global.value};
    TRY(space_->read_words(global.at, {value.bits.word, translate::words_of(global.value)}));
    return value;
}

Result<wasm::Heap> Store::kind_of(u32 ref) {
    if (is_i31(ref)) return wasm::Heap::i31;
    if (is_host_value(ref)) return wasm::Heap::any;
    u32 type = TRY(read_word(object_index(ref) + object_type));
    auto found = std::find(type_positions_.begin(), type_positions_.end(), type);
    CHECK(found != type_positions_.end());
    return types_[u32(found - type_positions_.begin())].kind == wasm::TypeKind::array
               ? wasm::Heap::array
               : wasm::Heap::struct_;
}

}  // namespace gpurun::engine
