// A process as the host sees it: its instances, what they export, and calls into them. All of
// its state is in a Space of some device; this keeps only where things are.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi/trap.h"
#include "base/result.h"
#include "device/device.h"
#include "engine/dump.h"
#include "engine/host_function.h"
#include "engine/images.h"
#include "engine/value.h"
#include "translate/translate.h"
#include "wasm/module.h"

namespace gpurun::engine {

// How much a process may have. Exceeding one is an error or a trap, as said.
struct StoreOptions {
    u32 stack_slots = 1 << 20;            // of a thread: "call stack exhausted"; at least 64
    u32 heap_words = 1 << 26;             // objects and exceptions: "object heap exhausted"
    u32 table_elements = 10'000'000;      // of one table: table.grow fails, or linking
    u64 memory_bytes = u64{4} << 30;      // of one memory: memory.grow fails, or linking
    u64 all_memory_bytes = u64{1} << 42;  // address space for all of them: linking fails
    u64 code_words = u64{1} << 30;        // of all modules: loading fails
    u32 instances = max_instances;        // linking fails
    u32 instance_words = 1 << 28;  // globals, tables, segments of all instances: linking fails
    u32 table_growth = 4096;       // elements that a table without a maximum can grow by
    std::optional<u64> fuel;       // for each call: "out of fuel"
    device::Tier tier = device::Tier::interp;
    std::shared_ptr<Images> images = {};  // of a module that will be loaded; others have their own
    device::Device* bursts_on = nullptr;  // where what it makes will run in bursts, if it does,
    bool is_for_machine = false;          // or in a machine
    Layout layout = Layout::linear;       // of memories in bursts
    bool may_interleave = false;          // later ranges of a burst may have the other one
    bool is_watched = false;          // with canaries, checked after every run: finds bugs of ours
    device::RunControl control = {};  // who may stop it while machine code is made
};

// What fits a device: defaults are generous where memory is only taken once it is touched.
StoreOptions options_for(const device::DeviceInfo& device);
// The same for one module alone; each of its memories may grow to memory_bytes.
StoreOptions options_for(const device::DeviceInfo& device, const wasm::Module& module,
                         std::optional<u64> memory_bytes);

// Address space for a module's own memories, none larger than memory_bytes.
u64 memory_room(const wasm::Module& module, u64 memory_bytes);

// Something that an instance exports or imports. Types are the store's.
struct Extern {
    wasm::ExternKind kind = wasm::ExternKind::func;
    u32 at = 0;             // word index of the record, cell or tag; of functions the reference
    u32 type = 0;           // functions and tags
    wasm::ValType value{};  // globals: type; tables: element type
    bool is_mutable = false;
    wasm::Limits limits;  // tables and memories, as declared
};

struct Frame {
    std::string function;
    u32 func = 0;
    u32 wasm_offset = 0;  // of the instruction, in the module's bytes
    std::string source;   // "main.c:12:5", or empty: the module does not say
};

// How a call ended.
struct Completion {
    enum class Kind : u8 {
        returned,
        exited,
        trapped,
        uncaught_exception,
        out_of_fuel,
        stopped,
        blocked
    };

    Kind kind = Kind::returned;
    Trap trap = Trap::none;
    u32 exit_code = 0;
    std::vector<Value> results;
    std::vector<Frame> backtrace;  // innermost first; not for `returned`

    std::string to_string() const;  // "out of bounds memory access"
};

// What of the modules of a process is machine code.
struct NativeFacts {
    u32 functions = 0, interpreted = 0;  // compiled ones, and those that stay in the interpreter
    std::optional<ImageSource> source;   // nothing: the interpreter runs all of it
    codegen::Image::Times seconds;       // that compiling took, if it was done here
    // Tier::automatic: how long it was interpreted before there was any. Nothing: not at all.
    std::optional<std::chrono::duration<double>> switched;
};

class Instance {
public:
    const wasm::Module& module() const { return *module_; }

private:
    friend class Store;
    std::shared_ptr<const wasm::Module> module_;
    u32 number_ = 0, at_ = 0;    // in the process
    u32 code_ = 0;               // Store::codes_
    std::vector<Extern> funcs_;  // imported ones only
    std::vector<Extern> tables_, memories_, globals_, tags_;
};

class Store {
public:
    // On a device that outlives it; the CPU if none is given.
    static Result<std::unique_ptr<Store>> create(const StoreOptions& options);
    static Result<std::unique_ptr<Store>> create(const StoreOptions& options,
                                                 device::Device& device,
                                                 device::SystemMemory* system = nullptr);

    // Functions of the host that modules may import; once, before them.
    Result<void> offer(std::span<const HostFunction> functions);
    // What a module imports, as far as the host or the runtime offers it: WASI, and the module
    // gpu; memories are made as the module wants them. An Error names the first import that nobody
    // offers.
    Result<std::vector<Extern>> system_imports(const wasm::Module& module);

    // Imports in the module's order. An Error means that it could not be linked; whatever
    // happens later is in `completion`, and the instance may be in use even if that is a trap.
    struct Instantiated {
        Instance* instance;
        Completion completion;
    };
    Result<Instantiated> instantiate(std::shared_ptr<const wasm::Module> module,
                                     std::span<const Extern> imports,
                                     const device::RunControl& control);

    // The same, begun but not run: for whoever goes on with the thread and then calls complete().
    Result<Instance*> begin_instance(std::shared_ptr<const wasm::Module> module,
                                     std::span<const Extern> imports);
    Result<Completion> complete(ThreadState state);

    std::optional<Extern> find_export(const Instance& instance, std::string_view name) const;

    // Arguments must fit the function's parameters (type_of tells them).
    Result<Completion> call(const Extern& func, std::span<const Value> arguments,
                            const device::RunControl& control);
    // The same call, begun but not run: for whoever wants to step through it.
    Result<void> begin_call(const Extern& func, std::span<const Value> arguments);
    Result<Completion> finish_call(const Extern& func, ThreadState state);
    Result<Completion> resume(const Extern& func, const device::RunControl& control);
    u32 thread() const { return current_.at; }
    // Another thread, with a stack of its own. Calls are made on the one in use; one that is
    // blocked goes on with resume() once another thread has woken it.
    struct Thread {
        u32 at = 0, stack = 0, stack_end = 0;  // word indices
        u32 next = 0;                          // the process's next thread
    };
    Result<u32> add_thread();
    void use_thread(u32 number) {
        threads_[current_number_] = current_;
        current_ = threads_[number];
        current_number_ = number;
    }
    // Runs the thread in use as Space::run() does, and sleeps while it waits for time alone. Under
    // Tier::automatic machine code takes over once there is some.
    Result<ThreadState> run(const device::RunControl& control);
    // Returns true if the thread in use, which stopped in that state, waits for a time to come.
    Result<bool> waits_for_time(ThreadState state);
    // When its wait ends: ns of the process's monotonic clock, or no_deadline.
    Result<u64> wait_end();
    device::Space& space() { return *space_; }
    // Position of a function's code.
    u32 entry_of(const Extern& func) const;
    // Of the functions that are system calls; none if nothing imports one.
    SystemStubs system_stubs() const;
    // What the frame of a function needs at the most, of all that are loaded.
    Result<u32> most_frame_slots();
    // What is left of a call's fuel; a call that ran out goes on once it has more.
    Result<u64> fuel();
    Result<void> set_fuel(u64 fuel);

    // Copies the process as it stands, code and all, into an empty space of the same sizes; it
    // goes on there, and the old space is gone.
    Result<void> move_to(std::unique_ptr<device::Space> space);
    device::Sizes sizes() const {
        return {options_.code_words, words_,  options_.all_memory_bytes,
                options_.is_watched, system_, options_.tier};
    }

    // Processes that begin where this one is now and call `func`: the words of their arguments
    // one process after another.
    Result<device::Burst> make_burst(const Extern& func, std::vector<u32> argument_words,
                                     u32 processes);
    // Adds a function that initialises `instance`, which was begun but not run, calls `initialize`
    // unless that is null, and then `func`, whose type it has. Processes made from here that begin
    // with it initialise themselves. Functions are exports of the instance's module.
    Result<Extern> add_beginning(const Instance& instance, const wasm::Export* initialize,
                                 const wasm::Export& func);
    // Of bursts that were made here: whether machine code may come while they run, and then what
    // has come by now. The latter at intervals, as the processes run.
    bool awaits_native() const { return !late_.empty(); }
    device::Burst::Late take_late_native(const device::Activity& activity);
    // Has machine code made for bursts of another layout than StoreOptions::layout, by other
    // threads, once the module has run for a while; `ran` is how long it did since the last call.
    // Returns true once that code is loaded. It is never there if the module has no Images.
    bool prepare_native(Layout layout, std::chrono::nanoseconds ran);
    // Returns the machine code that is loaded for bursts of a layout.
    const std::vector<device::NativePart>& native_for(Layout layout) const {
        return layout == options_.layout ? native_ : other_native_;
    }
    // Results of `func` from their words.
    std::vector<Value> results_from(const Extern& func, std::span<const u32> words) const;
    // What a thread left that ended: as a dump has it. `memory` is this process's, or that of one
    // of a burst made here.
    Result<ProcessSnapshot> capture(device::ProcessMemory& memory);
    // Positions of the code in the frames of the thread in use, innermost first: `most` of them,
    // and halt_position if there may be more. `memory` is as capture() has it.
    Result<std::vector<u32>> stack_positions(device::ProcessMemory& memory, usize most);
    // Where a position of the code stands.
    std::optional<Frame> frame_at(u32 position);

    Result<Value> read_global(const Extern& global);
    const wasm::FuncType& type_of(const Extern& func) const { return types_[func.type].func; }
    const wasm::TypeTable& types() const { return types_; }
    const NativeFacts& native_facts() const { return facts_; }
    // What a non-null reference of the any hierarchy refers to: i31, struct, array or host.
    Result<wasm::Heap> kind_of(u32 ref);

private:
    // A module's code in the code memory.
    struct LoadedCode {
        std::shared_ptr<const wasm::Module> module;
        translate::InstanceLayout layout;
        std::vector<u32> entries;  // absolute
        std::vector<u32> types;    // local type id -> the store's
        u32 begin;                 // position of its first instruction
        u32 instantiate, header;
    };

    // Modules whose machine code may come later, and where their code begins.
    struct LateCode {
        std::shared_ptr<Images> images;
        u32 begin;
        std::shared_ptr<HotCode> hot = {};  // where it comes function by function
        HotCode::CodeOfRun taken = {};
    };

    Store(const StoreOptions& options, device::Device& device)
        : options_(options), device_(device) {}
    // Whose machine code it is.
    device::Device& native_device() { return options_.bursts_on ? *options_.bursts_on : device_; }
    codegen::Target native_target() {
        const device::Mode mode = options_.is_for_machine ? device::Mode::machine
                                  : options_.bursts_on    ? device::Mode::burst
                                                          : device::Mode::space;
        return native_device().target(mode, options_.layout);
    }
    codegen::Target space_target() const {
        return device_.target(device::Mode::space, Layout::linear);
    }
    const LoadedCode* find_code(u32 position) const;
    const translate::FunctionMap& map_of(const LoadedCode& code, u32 func);
    Result<void> prepare();
    Result<ThreadState> run_awake(const device::RunControl& control);
    Result<void> nap();
    Result<void> find_native(const std::shared_ptr<const wasm::Module>& module,
                             const translate::Code& code, u32 begin);
    Result<void> use_native(const FoundImage& found, u32 begin);
    void look_for_native(std::chrono::nanoseconds ran, const device::Activity& activity);
    void take_hot(LateCode& late);
    Result<void> use_some(const wasm::Module& module, const translate::Code& code, u32 begin);
    Result<void> use_quick(const wasm::Module& module, const translate::Code& code, u32 begin,
                           u32 rest, u32 of);
    Result<translate::Code> translate_module(const std::shared_ptr<const wasm::Module>& module);
    Result<u32> load_code(const std::shared_ptr<const wasm::Module>& module);
    Result<std::vector<u32>> add_types(const wasm::Module& module);
    wasm::ValType store_type(wasm::ValType type, const std::vector<u32>& types) const;
    Result<void> append_code(std::span<const u64> words);
    Result<u32> take_words(u64 count, const char* what);
    Result<void> check_import(const wasm::Module& module, const std::vector<u32>& types,
                              const wasm::Import& import, const Extern& given);
    Result<void> check_limits(const wasm::Limits& wanted, const Extern& given, u64 current);
    Result<Extern> make_table(const wasm::Table& table, const std::vector<u32>& types);
    Result<Extern> make_memory(const wasm::MemoryType& memory);
    Result<void> write_instance(Instance& instance);
    // Each once, whoever imports them.
    std::vector<Extern> all_memories() const;
    Result<void> begin_thread(u32 entry, u32 instance_at, std::span<const u32> argument_words);
    Result<std::vector<Frame>> backtrace();
    Result<u32> exit_code();
    Result<u64> read_wide(u32 index);
    Result<u32> read_word(u32 index);

    StoreOptions options_;
    device::Device& device_;
    device::SystemMemory* system_ = nullptr;
    std::vector<device::NativePart> native_;
    std::vector<device::NativePart> other_native_;  // for bursts of the other layout
    bool cannot_load_other_ = false;
    std::vector<LateCode> late_;
    std::optional<std::chrono::steady_clock::time_point> burst_begin_;
    std::chrono::nanoseconds interpreted_{0};  // how long it ran without
    NativeFacts facts_;
    std::unique_ptr<device::Space> space_;
    Instance* system_instance_ = nullptr;
    std::shared_ptr<const wasm::Module> system_module_, host_module_;
    Instance* host_instance_ = nullptr;
    std::vector<std::pair<std::string, std::string>> host_names_;
    wasm::TypeTable types_;
    std::vector<u32> type_positions_;  // the store's type -> its TypeInfo, 0 if none is loaded
    struct MappedFunction {
        const wasm::Module* module;
        u32 func;
        translate::FunctionMap map;
    };
    std::optional<MappedFunction> mapped_;      // the one that a backtrace asked for last
    std::unordered_map<u32, Frame> frames_at_;  // positions that were asked for
    std::vector<LoadedCode> codes_;
    std::unordered_map<const wasm::Module*, u32> code_of_;
    std::vector<std::unique_ptr<Instance>> instances_;
    std::vector<Extern> provided_memories_;  // that modules import and no instance made
    u32 next_code_ = first_free_position;
    u64 next_word_ = 0, words_ = 0;
    u64 free_end_ = 0;  // then comes the first stack
    u64 next_byte_ = 0;
    u32 last_canary_ = 0, last_memory_ = 0;  // word indices
    u32 instance_table_ = 0;
    std::vector<Thread> threads_;  // number 0 is the first
    Thread current_;
    u32 current_number_ = 0;
};

}  // namespace gpurun::engine
