// A process as the host sees it: its instances, what they export, and calls into them. All of its
// state is in a Space of some device; a Store only knows where things are in it.
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

// How much a process may have. The comments say what happens when a limit is exceeded.
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

// Returns options that fit a device: generous ones if memory is only taken once it is touched.
StoreOptions options_for(const device::DeviceInfo& device);
// Returns options that fit a device and one module alone, each of whose memories may grow to
// memory_bytes.
StoreOptions options_for(const device::DeviceInfo& device, const wasm::Module& module,
                         std::optional<u64> memory_bytes);

// Returns the address space that a module's own memories take, none larger than memory_bytes.
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

// How much of the modules of a process is machine code.
struct NativeFacts {
    u32 functions = 0, interpreted = 0;  // compiled ones, and those that stay in the interpreter
    std::optional<ImageSource> source;   // nothing: the interpreter runs all of it
    codegen::Image::Times seconds;       // that compiling took, if it was done here
    // Tier::automatic: how long the process was interpreted before machine code took over, if it
    // did.
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
    // Makes a store on a device, which outlives it, or on the CPU.
    static Result<std::unique_ptr<Store>> create(const StoreOptions& options);
    static Result<std::unique_ptr<Store>> create(const StoreOptions& options,
                                                 device::Device& device,
                                                 device::SystemMemory* system = nullptr);

    // Offers functions of the host that modules may import. Called once, before modules are loaded.
    Result<void> offer(std::span<const HostFunction> functions);
    // Returns what a module imports of the host or the runtime: host functions, WASI, and the
    // module gpu. Makes memories that it imports. An Error names the first import that nobody
    // offers.
    Result<std::vector<Extern>> system_imports(const wasm::Module& module);

    // Makes an instance; imports are in the module's order. An Error means that it could not be
    // linked. `completion` says how its initialisation ended, and the instance may be in use even
    // if that is a trap.
    struct Instantiated {
        Instance* instance;
        Completion completion;
    };
    Result<Instantiated> instantiate(std::shared_ptr<const wasm::Module> module,
                                     std::span<const Extern> imports,
                                     const device::RunControl& control);

    // Makes an instance whose initialisation has begun but not run. The caller runs the thread and
    // then calls complete().
    Result<Instance*> begin_instance(std::shared_ptr<const wasm::Module> module,
                                     std::span<const Extern> imports);
    Result<Completion> complete(ThreadState state);

    std::optional<Extern> find_export(const Instance& instance, std::string_view name) const;

    // Calls a function. Arguments must fit its parameters, which type_of() returns.
    Result<Completion> call(const Extern& func, std::span<const Value> arguments,
                            const device::RunControl& control);
    // Begins a call without running it, so that the caller can step through it.
    Result<void> begin_call(const Extern& func, std::span<const Value> arguments);
    Result<Completion> finish_call(const Extern& func, ThreadState state);
    Result<Completion> resume(const Extern& func, const device::RunControl& control);
    u32 thread() const { return current_.at; }
    // A thread, with a stack of its own. Calls are made on the thread in use. One that is blocked
    // goes on with resume() once another thread has woken it.
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
    // Returns when its wait ends, in ns of the process's monotonic clock, or no_deadline.
    Result<u64> wait_end();
    device::Space& space() { return *space_; }
    // Returns the position of a function's code.
    u32 entry_of(const Extern& func) const;
    // Returns the positions of functions that are system calls, or none if nothing imports one.
    SystemStubs system_stubs() const;
    // Returns the size of the largest frame of all functions that are loaded.
    Result<u32> most_frame_slots();
    // Return and set what is left of a call's fuel. A call that ran out goes on once it has more.
    Result<u64> fuel();
    Result<void> set_fuel(u64 fuel);

    // Copies the process with its code into an empty space of the same sizes. It goes on there, and
    // the old space is freed.
    Result<void> move_to(std::unique_ptr<device::Space> space);
    device::Sizes sizes() const {
        return {options_.code_words, words_,  options_.all_memory_bytes,
                options_.is_watched, system_, options_.tier};
    }

    // Makes a burst of processes that begin in the present state of this one and call `func`.
    // `argument_words` has the arguments of one process after another.
    Result<device::Burst> make_burst(const Extern& func, std::vector<u32> argument_words,
                                     u32 processes);
    // Adds a function that initialises `instance`, which was begun but not run, calls `initialize`
    // unless that is null, and then `func`, whose type it has. Processes made from here that begin
    // with it initialise themselves. Functions are exports of the instance's module.
    Result<Extern> add_beginning(const Instance& instance, const wasm::Export* initialize,
                                 const wasm::Export& func);
    // For bursts that were made here: awaits_native() returns true if machine code may come while
    // they run, and take_late_native(), which is called at intervals, what has come by now.
    bool awaits_native() const { return !late_.empty(); }
    device::Burst::Late take_late_native(const device::Activity& activity);
    // Lets other threads make machine code for bursts of another layout than StoreOptions::layout,
    // once the module has run for a while; `ran` is how long it did since the last call. Returns
    // true once that code is loaded, which never happens if the module has no Images.
    bool prepare_native(Layout layout, std::chrono::nanoseconds ran);
    // Returns the machine code that is loaded for bursts of a layout.
    const std::vector<device::NativePart>& native_for(Layout layout) const {
        return layout == options_.layout ? native_ : other_native_;
    }
    // Returns the results of `func`, whose words these are.
    std::vector<Value> results_from(const Extern& func, std::span<const u32> words) const;
    // Returns the state of a thread that ended, for a dump. `memory` is this process's, or that of
    // one of a burst made here.
    Result<ProcessSnapshot> capture(device::ProcessMemory& memory);
    // Returns the positions in the frames of the thread in use, innermost first: at most `most`,
    // and halt_position if there may be more. `memory` is as for capture().
    Result<std::vector<u32>> stack_positions(device::ProcessMemory& memory, usize most);
    // Returns the function and the place in the module that a position of the code belongs to.
    std::optional<Frame> frame_at(u32 position);

    Result<Value> read_global(const Extern& global);
    const wasm::FuncType& type_of(const Extern& func) const { return types_[func.type].func; }
    const wasm::TypeTable& types() const { return types_; }
    const NativeFacts& native_facts() const { return facts_; }
    // Returns what a non-null reference of the any hierarchy refers to: i31, struct, array or host.
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
    // Returns the device that machine code is for.
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
    // Returns each memory once, however many instances import it.
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
