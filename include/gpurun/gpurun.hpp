/**
 * @file
 * gpurun.h for C++20: handles that delete themselves, errors as exceptions. Everything is here, and
 * is inline; nothing but the library's C functions is needed to link.
 *
 *     namespace gpu = gpurun::api;
 *     gpu::Device device("auto");
 *     gpu::Module module = gpu::Module::from_file("hello.wasm");
 *     gpu::Result result = gpu::run(device, module, gpu::Config().argument("world"));
 *     std::cout << result[0].output();
 */
#ifndef GPURUN_GPURUN_HPP
#define GPURUN_GPURUN_HPP

#include <gpurun/gpurun.h>

#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace gpurun::api {

/** What gpurun_error says. */
class Error : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

namespace detail {

inline void check(gpurun_error* error) {
    if (!error) return;
    Error thrown(gpurun_error_message(error));
    gpurun_error_delete(error);
    throw thrown;
}

template <auto function>
struct Deleter {
    void operator()(auto* handle) const { function(handle); }
};
template <class T, auto function>
using Handle = std::unique_ptr<T, Deleter<function>>;

template <class T>
T* made(T* handle) {
    if (!handle) throw std::bad_alloc();
    return handle;
}

inline std::string text(const char* given) { return given ? given : ""; }

}  // namespace detail

/** A device that is open. */
class Device {
public:
    explicit Device(const std::string& name = "auto") {
        gpurun_device* opened = nullptr;
        detail::check(gpurun_device_open(name.c_str(), &opened));
        handle_.reset(opened);
    }
    std::string id() const { return detail::text(gpurun_device_id(get())); }
    std::string name() const { return detail::text(gpurun_device_name(get())); }
    uint64_t memory() const { return gpurun_device_memory(get()); }
    std::string driver() const { return detail::text(gpurun_device_driver(get())); }
    uint32_t lanes() const { return gpurun_device_lanes(get()); }
    void prepare(bool for_several) const {
        detail::check(gpurun_device_prepare(get(), for_several));
    }
    uint64_t launches() const { return gpurun_device_launches(get()); }
    uint64_t bytes_in() const { return gpurun_device_bytes_in(get()); }
    uint64_t bytes_out() const { return gpurun_device_bytes_out(get()); }
    uint64_t peak_bytes() const { return gpurun_device_peak_bytes(get()); }
    gpurun_kernels kernels() const {
        gpurun_kernels kernels;
        gpurun_device_get_kernels(get(), &kernels);
        return kernels;
    }
    std::map<std::string, uint64_t> driver_calls() const {
        std::map<std::string, uint64_t> calls;
        auto add = [](void* data, const char* name, uint64_t count) noexcept {
            (*static_cast<std::map<std::string, uint64_t>*>(data))[name] = count;
        };
        gpurun_device_driver_calls(get(), add, &calls);
        return calls;
    }
    gpurun_device* get() const { return handle_.get(); }

private:
    detail::Handle<gpurun_device, gpurun_device_delete> handle_;
};

/** A device that is here, open or not. */
struct DeviceInfo {
    std::string id, name;
    uint64_t memory;
};

inline std::vector<DeviceInfo> devices() {
    gpurun_devices* list = nullptr;
    detail::check(gpurun_devices_list(&list));
    detail::Handle<gpurun_devices, gpurun_devices_delete> handle(list);
    std::vector<DeviceInfo> infos;
    for (size_t i = 0; i < gpurun_devices_count(list); i++)
        infos.push_back({gpurun_devices_id(list, i), gpurun_devices_name(list, i),
                         gpurun_devices_memory(list, i)});
    return infos;
}

/** A module, decoded and validated. */
class Module {
public:
    static Module from_file(const std::string& path) {
        gpurun_module* loaded = nullptr;
        detail::check(gpurun_module_load_file(path.c_str(), &loaded));
        return Module(loaded);
    }
    static Module from_bytes(std::string_view bytes, const std::string& name = "module") {
        gpurun_module* loaded = nullptr;
        detail::check(gpurun_module_load(bytes.data(), bytes.size(), name.c_str(), &loaded));
        return Module(loaded);
    }
    /** Lets runs use the machine code of a .gpu file: gpurun_module_allow_precompiled(). */
    Module& allow_precompiled() {
        gpurun_module_allow_precompiled(get());
        return *this;
    }
    bool has_export(const std::string& name) const {
        return gpurun_module_has_export(get(), name.c_str());
    }
    bool has_import(const std::string& module, const std::string& name) const {
        return gpurun_module_has_import(get(), module.c_str(), name.c_str());
    }
    gpurun_module* get() const { return handle_.get(); }

private:
    explicit Module(gpurun_module* handle) : handle_(handle) {}
    detail::Handle<gpurun_module, gpurun_module_delete> handle_;
};

/** A request to stop, for other threads and signal handlers. */
class Stop {
public:
    void request() { gpurun_stop_request(get()); }
    void reset() { gpurun_stop_reset(get()); }
    bool is_requested() const { return gpurun_stop_is_requested(get()); }
    gpurun_stop* get() const { return handle_.get(); }

private:
    detail::Handle<gpurun_stop, gpurun_stop_delete> handle_{detail::made(gpurun_stop_new())};
};

/** A guest's call of a host function, while it lasts. */
class Call {
public:
    explicit Call(gpurun_call* handle) : handle_(handle) {}
    uint32_t process() const { return gpurun_call_process(handle_); }
    uint64_t memory_size() const { return gpurun_call_memory_size(handle_); }
    /** Throws if the range is not in the guest's memory. */
    std::string read(uint64_t address, size_t size) const {
        if (size > memory_size()) throw Error("the guest's memory is smaller than what was asked");
        std::string bytes(size, '\0');
        if (!gpurun_call_read(handle_, address, bytes.data(), size))
            throw Error("the range is not in the guest's memory");
        return bytes;
    }
    void write(uint64_t address, std::string_view bytes) const {
        if (!gpurun_call_write(handle_, address, bytes.data(), bytes.size()))
            throw Error("the range is not in the guest's memory");
    }

private:
    gpurun_call* handle_;
};

namespace detail {

template <class T>
constexpr gpurun_type type_of() {
    if constexpr (std::is_same_v<T, int32_t> || std::is_same_v<T, uint32_t>) return GPURUN_I32;
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, uint64_t>) return GPURUN_I64;
    if constexpr (std::is_same_v<T, float>) return GPURUN_F32;
    if constexpr (std::is_same_v<T, double>) return GPURUN_F64;
}
template <class T>
T get(const gpurun_value& value) {
    if constexpr (type_of<T>() == GPURUN_I32) return T(value.of.i32);
    if constexpr (type_of<T>() == GPURUN_I64) return T(value.of.i64);
    if constexpr (type_of<T>() == GPURUN_F32) return value.of.f32;
    if constexpr (type_of<T>() == GPURUN_F64) return value.of.f64;
}
inline gpurun_value value(int32_t v) { return gpurun_i32(v); }
inline gpurun_value value(uint32_t v) { return gpurun_i32(int32_t(v)); }
inline gpurun_value value(int64_t v) { return gpurun_i64(v); }
inline gpurun_value value(uint64_t v) { return gpurun_i64(int64_t(v)); }
inline gpurun_value value(float v) { return gpurun_f32(v); }
inline gpurun_value value(double v) { return gpurun_f64(v); }

// A C++ function as a host function: its C form and its types.
template <class Result, class... Parameters>
struct Function {
    using Body = std::function<Result(Call&, Parameters...)>;
    static constexpr size_t result_count = std::is_void_v<Result> ? 0 : 1;

    // An exception ends the process with a trap.
    static bool call(void* data, gpurun_call* handle, const gpurun_value* arguments,
                     gpurun_value* results) noexcept {
        try {
            Call made(handle);
            return apply(*static_cast<Body*>(data), made, arguments, results,
                         std::index_sequence_for<Parameters...>());
        } catch (...) {
            return false;
        }
    }
    static void release(void* data) noexcept { delete static_cast<Body*>(data); }

private:
    template <size_t... i>
    static bool apply(const Body& body, Call& call, [[maybe_unused]] const gpurun_value* arguments,
                      [[maybe_unused]] gpurun_value* results, std::index_sequence<i...>) {
        if constexpr (std::is_void_v<Result>) {
            body(call, get<Parameters>(arguments[i])...);
        } else {
            results[0] = value(body(call, get<Parameters>(arguments[i])...));
        }
        return true;
    }
};

}  // namespace detail

/** "42", "-1.5": what argument() takes. */
inline std::string to_string(const gpurun_value& value) {
    char text[64];
    gpurun_value_text(value, text, sizeof text);
    return text;
}

/** What to run and what it sees; see the functions gpurun_config_* of the same names. */
class Config {
public:
    Config& function(const std::string& name) {
        gpurun_config_set_function(get(), name.c_str());
        return *this;
    }
    Config& argument(const std::string& text) {
        gpurun_config_add_argument(get(), text.c_str());
        return *this;
    }
    /** An argument of a function: (u)int32_t, (u)int64_t, float or double. */
    template <class T>
        requires std::is_arithmetic_v<T>
    Config& value(T value) {
        gpurun_config_add_value(get(), detail::value(value));
        return *this;
    }
    Config& program_name(const std::string& name) {
        gpurun_config_set_program_name(get(), name.c_str());
        return *this;
    }
    Config& environment(const std::string& variable) {
        gpurun_config_add_environment(get(), variable.c_str());
        return *this;
    }
    Config& directory(const std::string& host_path, const std::string& guest_path,
                      bool is_writable = false) {
        gpurun_config_add_directory(get(), host_path.c_str(), guest_path.c_str(), is_writable);
        return *this;
    }
    /** A function that the guest imports, with its types as given:
     * `host_function<int32_t, int32_t>("env", "twice", [](Call&, int32_t x) { return 2 * x; })`.
     * An exception that it throws ends the process with a trap. */
    template <class Result, class... Parameters>
    Config& host_function(const std::string& module, const std::string& name,
                          std::function<Result(Call&, std::type_identity_t<Parameters>...)> body) {
        using Function = detail::Function<Result, Parameters...>;
        const gpurun_type parameters[] = {detail::type_of<Parameters>()..., GPURUN_I32};
        gpurun_type result = GPURUN_I32;
        if constexpr (Function::result_count == 1) result = detail::type_of<Result>();
        auto* data = new typename Function::Body(std::move(body));
        gpurun_config_add_function(get(), module.c_str(), name.c_str(), parameters,
                                   sizeof...(Parameters), &result, Function::result_count,
                                   Function::call, data, Function::release);
        return *this;
    }
    Config& input(std::string_view bytes) {
        gpurun_config_set_input(get(), bytes.data(), bytes.size());
        return *this;
    }
    /** Brings the next bytes of input; none: it has ended. At most as many as are asked for. */
    Config& input_callback(std::function<std::string(size_t most)> callback) {
        input_ = std::make_unique<Input>(std::move(callback));
        auto bring = [](void* data, void* bytes, size_t capacity) noexcept -> size_t {
            try {
                std::string brought = (*static_cast<Input*>(data))(capacity);
                return brought.copy(static_cast<char*>(bytes), capacity);
            } catch (...) {
                return 0;
            }
        };
        gpurun_config_set_input_callback(get(), bring, input_.get());
        return *this;
    }
    /** Takes output; false, or an exception: nobody wants more. */
    Config& output_callback(
        std::function<bool(uint32_t process, int stream, std::string_view bytes)> callback) {
        output_ = std::make_unique<Output>(std::move(callback));
        auto take = [](void* data, uint32_t process, int stream, const void* bytes,
                       size_t size) noexcept -> bool {
            try {
                return (*static_cast<Output*>(data))(process, stream,
                                                     {static_cast<const char*>(bytes), size});
            } catch (...) {
                return false;
            }
        };
        gpurun_config_set_output_callback(get(), take, output_.get());
        return *this;
    }
    Config& inherit_streams() {
        gpurun_config_inherit_streams(get());
        return *this;
    }
    Config& processes(uint32_t count) {
        gpurun_config_set_processes(get(), count);
        return *this;
    }
    Config& process(const std::vector<std::string>& arguments) {
        return process(arguments, nullptr, 0);
    }
    Config& process(const std::vector<std::string>& arguments, std::string_view input) {
        return process(arguments, input.data() ? input.data() : "", input.size());
    }
    Config& clear_processes() {
        gpurun_config_clear_processes(get());
        return *this;
    }
    Config& first_number(uint32_t number) {
        gpurun_config_set_first_number(get(), number);
        return *this;
    }
    Config& process_number(uint32_t number) {
        gpurun_config_set_process_number(get(), number);
        return *this;
    }
    Config& stack(uint32_t slots) {
        gpurun_config_set_stack(get(), slots);
        return *this;
    }
    Config& heap(uint32_t words) {
        gpurun_config_set_heap(get(), words);
        return *this;
    }
    Config& output_buffer(uint64_t bytes) {
        gpurun_config_set_output_buffer(get(), bytes);
        return *this;
    }
    Config& memory(uint64_t bytes) {
        gpurun_config_set_memory(get(), bytes);
        return *this;
    }
    Config& fuel(uint64_t instructions) {
        gpurun_config_set_fuel(get(), instructions);
        return *this;
    }
    Config& timeout(double seconds) {
        gpurun_config_set_timeout(get(), seconds);
        return *this;
    }
    Config& seed(uint64_t seed) {
        gpurun_config_set_seed(get(), seed);
        return *this;
    }
    Config& stop(const Stop& stop) {
        gpurun_config_set_stop(get(), stop.get());
        return *this;
    }
    Config& keep_files(bool is_kept = true) {
        gpurun_config_keep_files(get(), is_kept);
        return *this;
    }
    /** Tells how many files of how many have been written back; must not throw. */
    Config& write_progress(std::function<void(uint64_t done, uint64_t all)> callback) {
        write_progress_ = std::make_unique<Progress>(std::move(callback));
        gpurun_config_set_write_progress(get(), &tell_progress, write_progress_.get());
        return *this;
    }
    /** Tells how many of several processes have ended; must not throw. */
    Config& progress(std::function<void(uint64_t ended, uint64_t all)> callback) {
        progress_ = std::make_unique<Progress>(std::move(callback));
        gpurun_config_set_progress(get(), &tell_progress, progress_.get());
        return *this;
    }
    /** Shows every system call; the function must not throw. */
    Config& trace(std::function<void(std::string_view line)> callback) {
        return debug(std::move(callback)).traced();
    }
    /** Takes what guests say by the debug functions; must not throw. */
    Config& debug(std::function<void(std::string_view line)> callback) {
        line_ = std::make_unique<Line>(std::move(callback));
        auto show = [](void* data, const char* line) noexcept {
            (*static_cast<Line*>(data))(line);
        };
        gpurun_config_set_debug(get(), show, line_.get());
        return *this;
    }
    Config& traced(bool is_traced = true) {
        gpurun_config_set_traced(get(), is_traced);
        return *this;
    }
    Config& dump(const std::string& folder) {
        gpurun_config_set_dump(get(), folder.c_str());
        return *this;
    }
    Config& profiled(bool is_profiled = true) {
        gpurun_config_set_profiled(get(), is_profiled);
        return *this;
    }
    Config& tier(gpurun_tier tier) {
        gpurun_config_set_tier(get(), tier);
        return *this;
    }
    Config& layout(gpurun_layout layout) {
        gpurun_config_set_layout(get(), layout);
        return *this;
    }
    Config& watched(bool is_watched = true) {
        gpurun_config_set_watched(get(), is_watched);
        return *this;
    }
    Config& spoil(uint32_t process) {
        gpurun_config_spoil(get(), process);
        return *this;
    }
    Config& priority(uint32_t priority) {
        gpurun_config_set_priority(get(), priority);
        return *this;
    }
    Config& share(uint32_t percent) {
        gpurun_config_set_share(get(), percent);
        return *this;
    }
    Config& machine_memory(uint64_t bytes) {
        gpurun_config_set_machine_memory(get(), bytes);
        return *this;
    }
    Config& machine_processes(uint32_t processes, uint32_t threads = 0) {
        gpurun_config_set_machine_processes(get(), processes, threads);
        return *this;
    }
    Config& spin(uint32_t microseconds) {
        gpurun_config_set_spin(get(), microseconds);
        return *this;
    }
    /** Throws what run() would throw before anything runs. */
    void check(const Module& module) const {
        detail::check(gpurun_config_check(get(), module.get()));
    }
    gpurun_config* get() const { return handle_.get(); }

private:
    Config& process(const std::vector<std::string>& arguments, const char* input, size_t size) {
        std::vector<const char*> texts;
        for (const std::string& argument : arguments) texts.push_back(argument.c_str());
        gpurun_config_add_process(get(), texts.data(), texts.size(), input, size);
        return *this;
    }

    using Input = std::function<std::string(size_t)>;
    using Output = std::function<bool(uint32_t, int, std::string_view)>;
    std::unique_ptr<Input> input_;
    using Line = std::function<void(std::string_view)>;
    std::unique_ptr<Output> output_;
    std::unique_ptr<Line> line_;
    using Progress = std::function<void(uint64_t, uint64_t)>;
    static void tell_progress(void* data, uint64_t done, uint64_t all) noexcept {
        (*static_cast<Progress*>(data))(done, all);
    }
    std::unique_ptr<Progress> progress_, write_progress_;
    detail::Handle<gpurun_config, gpurun_config_delete> handle_{detail::made(gpurun_config_new())};
};

/** A place in a module. */
struct Frame {
    std::string function;
    uint64_t offset;
    std::string source;  // "main.c:12:5", or empty
};

/** A file that a process changed. */
struct File {
    gpurun_change change;
    std::string path;
};

/** A stack that a process had when it was looked at, and how often. */
struct StackSample {
    std::vector<std::string> functions;  // outermost first
    uint64_t count = 0;
};

/** How one process ended. Points into the Result. */
class Process {
public:
    Process(const gpurun_result* result, uint32_t number) : result_(result), number_(number) {}

    gpurun_ending ending() const { return gpurun_result_ending(result_, number_); }
    /** It returned, or exited with 0. */
    bool is_success() const {
        return ending() == GPURUN_RETURNED || (ending() == GPURUN_EXITED && exit_code() == 0);
    }
    uint32_t exit_code() const { return gpurun_result_exit_code(result_, number_); }
    bool is_initialising() const { return gpurun_result_is_initialising(result_, number_); }
    std::string message() const { return detail::text(gpurun_result_message(result_, number_)); }
    std::vector<Frame> frames() const {
        std::vector<Frame> list;
        for (size_t i = 0; i < gpurun_result_frame_count(result_, number_); i++)
            list.push_back({gpurun_result_frame_function(result_, number_, i),
                            gpurun_result_frame_offset(result_, number_, i),
                            detail::text(gpurun_result_frame_source(result_, number_, i))});
        return list;
    }
    std::vector<gpurun_value> values() const {
        std::vector<gpurun_value> list;
        for (size_t i = 0; i < gpurun_result_value_count(result_, number_); i++)
            list.push_back(gpurun_result_value(result_, number_, i));
        return list;
    }
    /** The first result of the function; throws if it has none of that type. */
    template <class T>
    T value(size_t index = 0) const {
        gpurun_value value = gpurun_result_value(result_, number_, index);
        if (value.type != uint32_t(detail::type_of<T>()))
            throw Error("the process has no result of that type");
        return detail::get<T>(value);
    }
    std::string_view output() const { return stream(1); }
    std::string_view error() const { return stream(2); }
    // Large outputs leave memory until they are read again.
    void unload_output() const { gpurun_result_unload_output(result_, number_); }
    std::vector<File> files() const {
        std::vector<File> list;
        for (size_t i = 0; i < gpurun_result_file_count(result_, number_); i++)
            list.push_back({gpurun_result_file_change(result_, number_, i),
                            gpurun_result_file_path(result_, number_, i)});
        return list;
    }
    std::string read_file(size_t index) const {
        char* bytes = nullptr;
        size_t size = 0;
        detail::check(gpurun_result_file_read(result_, number_, index, &bytes, &size));
        detail::Handle<char, gpurun_bytes_delete> handle(bytes);
        return std::string(bytes, size);
    }
    void store_files(const std::string& folder) const {
        detail::check(gpurun_result_store_files(result_, number_, folder.c_str()));
    }

private:
    std::string_view stream(int number) const {
        size_t size = 0;
        const char* bytes = gpurun_result_output(result_, number_, number, &size);
        return {bytes, size};
    }
    const gpurun_result* result_;
    uint32_t number_;
};

/** How all processes of a run ended. */
class Result {
public:
    explicit Result(gpurun_result* handle) : handle_(handle) {}
    uint32_t size() const { return gpurun_result_processes(get()); }
    /** Throws if there is no such process. */
    Process operator[](uint32_t process) const {
        if (process >= size()) throw Error("there is no process of that number");
        return Process(get(), process);
    }
    double seconds() const { return gpurun_result_seconds(get()); }
    gpurun_layout layout() const { return gpurun_result_layout(get()); }
    gpurun_layout_choice layout_choice() const {
        gpurun_layout_choice choice;
        gpurun_result_get_layout_choice(get(), &choice);
        return choice;
    }
    uint32_t slots() const { return gpurun_result_slots(get()); }
    uint32_t launches() const { return gpurun_result_launches(get()); }
    double lanes_busy() const { return gpurun_result_lanes_busy(get()); }
    double stop_seconds() const { return gpurun_result_stop_seconds(get()); }
    uint64_t system_bytes() const { return gpurun_result_system_bytes(get()); }
    gpurun_native native() const {
        gpurun_native native;
        gpurun_result_get_native(get(), &native);
        return native;
    }
    std::string file_problem() const { return detail::text(gpurun_result_file_problem(get())); }
    uint32_t dump_count() const { return gpurun_result_dump_count(get()); }
    uint64_t fault_count() const { return gpurun_result_fault_count(get()); }
    std::string dump_problem() const { return detail::text(gpurun_result_dump_problem(get())); }
    std::string output_problem() const { return detail::text(gpurun_result_output_problem(get())); }
    std::vector<StackSample> stacks() const {
        std::vector<StackSample> list(gpurun_result_stack_count(get()));
        for (size_t i = 0; i < list.size(); i++) {
            list[i].count = gpurun_result_stack_seen(get(), i);
            for (size_t k = 0; k < gpurun_result_stack_depth(get(), i); k++)
                list[i].functions.push_back(gpurun_result_stack_function(get(), i, k));
        }
        return list;
    }
    std::vector<std::string> debug() const {
        std::vector<std::string> list;
        for (size_t i = 0; i < gpurun_result_debug_count(get()); i++)
            list.push_back(gpurun_result_debug(get(), i));
        return list;
    }
    uint64_t debug_dropped() const { return gpurun_result_debug_dropped(get()); }
    gpurun_result* get() const { return handle_.get(); }

private:
    detail::Handle<gpurun_result, gpurun_result_delete> handle_;
};

/** Runs all processes to their end; throws if they could not be run. */
inline Result run(const Device& device, const Module& module, const Config& config) {
    gpurun_result* result = nullptr;
    detail::check(gpurun_run(device.get(), module.get(), config.get(), &result));
    return Result(result);
}

/** Processes of one module among those of others. Points to what it runs. */
struct Job {
    const Module* module;
    const Config* config;
};

/** The same for several modules, all in one launch; a result for each. */
inline std::vector<Result> run_jobs(const Device& device, std::span<const Job> jobs) {
    std::vector<gpurun_job> all;
    for (const Job& job : jobs) all.push_back({job.module->get(), job.config->get()});
    std::vector<gpurun_result*> made(jobs.size());
    std::vector<Result> results;
    results.reserve(jobs.size());
    detail::check(gpurun_run_jobs(device.get(), all.data(), all.size(), made.data()));
    for (gpurun_result* result : made) results.emplace_back(result);
    return results;
}

/** A program of a machine, and how it is called there. Points to what it has. */
struct Program {
    std::string name;
    const Module* module;
    const Config* config;
};

/** A device that runs by itself. */
class Machine {
public:
    explicit Machine(const Device& device, const Config& config = {}) {
        gpurun_machine* opened = nullptr;
        detail::check(gpurun_machine_open(device.get(), config.get(), &opened));
        handle_.reset(opened);
    }
    uint32_t load(const std::string& name, const Module& module, const Config& config = {}) {
        uint32_t program = 0;
        detail::check(
            gpurun_machine_load(get(), name.c_str(), module.get(), config.get(), &program));
        return program;
    }
    /** Several at once: where it has to park for machine code, it does so once for all. */
    std::vector<uint32_t> load(std::span<const Program> programs) {
        std::vector<gpurun_program> all;
        for (const Program& program : programs)
            all.push_back({program.name.c_str(), program.module->get(), program.config->get()});
        std::vector<uint32_t> numbers(programs.size());
        detail::check(gpurun_machine_load_programs(get(), all.data(), all.size(), numbers.data()));
        return numbers;
    }
    /** The configuration's callbacks are used for as long as the machine is there. */
    uint32_t spawn(uint32_t program, const Config& config) {
        uint32_t process = 0;
        detail::check(gpurun_machine_spawn(get(), program, config.get(), &process));
        return process;
    }
    uint32_t pid(uint32_t process) const { return gpurun_machine_pid(get(), process); }
    void kill(uint32_t pid, uint32_t signal) {
        detail::check(gpurun_machine_kill(get(), pid, signal));
    }
    /** How a process ended, with the number that spawn() gave it. */
    struct Ended {
        uint32_t process;
        Result result;
    };
    /** Nothing: the time was over first, or somebody wanted to stop. */
    std::optional<Ended> next(double seconds = -1, const gpurun_stop* stop = nullptr) {
        uint32_t process = 0;
        gpurun_result* result = nullptr;
        detail::check(gpurun_machine_next(get(), seconds, stop, &process, &result));
        if (!result) return std::nullopt;
        return Ended{process, Result(result)};
    }
    bool wait_idle(double seconds = -1, const gpurun_stop* stop = nullptr) {
        bool is_idle = false;
        detail::check(gpurun_machine_wait_idle(get(), seconds, stop, &is_idle));
        return is_idle;
    }
    /** What was seen so far of all its processes: stacks and dumps. */
    Result observe() const {
        gpurun_result* result = nullptr;
        detail::check(gpurun_machine_observe(get(), &result));
        return Result(result);
    }
    double ping() {
        double seconds = 0;
        detail::check(gpurun_machine_ping(get(), &seconds));
        return seconds;
    }
    gpurun_machine_stats stats() const {
        gpurun_machine_stats stats{};
        gpurun_machine_get_stats(get(), &stats);
        return stats;
    }
    void close() { detail::check(gpurun_machine_close(get())); }
    gpurun_machine* get() const { return handle_.get(); }

private:
    detail::Handle<gpurun_machine, gpurun_machine_delete> handle_;
};

/** Makes the folder of Config::dump() now rather than when it runs. */
inline void make_dump_folder(const std::string& folder, const Module& module) {
    detail::check(gpurun_dump_folder_make(folder.c_str(), module.get()));
}

/** Seconds that the library spent on each of its phases so far. */
inline std::vector<std::pair<std::string, double>> phases() {
    std::vector<std::pair<std::string, double>> list;
    for (size_t i = 0; i < gpurun_phase_count(); i++)
        list.emplace_back(gpurun_phase_name(i), gpurun_phase_seconds(i));
    return list;
}

}  // namespace gpurun::api

#endif
