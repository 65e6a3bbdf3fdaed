// The modes on the CPU. Between arm() and disarm() is nothing but calls of the interface.
#include "modes.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <sstream>

#include "base/threads.h"
#include "engine/script_runner.h"
#include "mode_parts.h"

namespace gpurun::faults {
namespace {

namespace fs = std::filesystem;

// Copies its input to its output, the file "in" to "out", removes "gone", renames "old" to "new"
// and makes the directory "made". Exits with 0, or with 100 and what went wrong.
constexpr const char* guest = R"((module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_unlink_file" (func $unlink (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_rename"
    (func $rename (param i32 i32 i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_create_directory"
    (func $mkdir (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "inoutgoneoldnewmade")
  (func $try (param i32)
    (if (local.get 0) (then (call $exit (i32.add (i32.const 100) (local.get 0))))))
  (func (export "_start")
    (i32.store (i32.const 64) (i32.const 1024))
    (loop $again
      (i32.store (i32.const 68) (i32.const 1000))
      (call $try (call $read (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 72)))
      (i32.store (i32.const 68) (i32.load (i32.const 72)))
      (if (i32.load (i32.const 72))
        (then
          (call $try (call $write (i32.const 1) (i32.const 64) (i32.const 1) (i32.const 72)))
          (br $again))))
    (call $try (call $open (i32.const 3) (i32.const 0) (i32.const 0) (i32.const 2) (i32.const 0)
      (i64.const 2) (i64.const 0) (i32.const 0) (i32.const 80)))
    (i32.store (i32.const 68) (i32.const 1000))
    (call $try (call $read (i32.load (i32.const 80)) (i32.const 64) (i32.const 1) (i32.const 72)))
    (i32.store (i32.const 68) (i32.load (i32.const 72)))
    (call $try (call $open (i32.const 3) (i32.const 0) (i32.const 2) (i32.const 3) (i32.const 9)
      (i64.const 64) (i64.const 0) (i32.const 0) (i32.const 84)))
    (call $try (call $write (i32.load (i32.const 84)) (i32.const 64) (i32.const 1) (i32.const 72)))
    (call $try (call $unlink (i32.const 3) (i32.const 5) (i32.const 4)))
    (call $try (call $rename (i32.const 3) (i32.const 9) (i32.const 3) (i32.const 3) (i32.const 12)
      (i32.const 3)))
    (call $try (call $mkdir (i32.const 3) (i32.const 15) (i32.const 4)))
    (call $exit (i32.const 0))))
)";

// Traps, and has something in its memory then.
constexpr const char* traps = R"((module
  (memory (export "memory") 1)
  (func (export "_start") (i32.store (i32.const 0) (i32.const 7)) (unreachable))))";

constexpr const char* threads = R"(
(module $Memory (memory (export "shared") 1 1 shared))
(register "memory" $Memory)
(thread $First (shared (module $Memory))
  (register "memory" $Memory)
  (module
    (memory (import "memory" "shared") 1 1 shared)
    (func (export "set") (i32.store (i32.const 0) (i32.const 42))))
  (assert_return (invoke "set")))
(wait $First)
(module
  (memory (import "memory" "shared") 1 1 shared)
  (func (export "get") (result i32) (i32.load (i32.const 0))))
(assert_return (invoke "get") (i32.const 42))
)";

constexpr char input[] = "what it is given";
constexpr u32 processes = 5;

void write_file(const fs::path& path, std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
}

std::string read_file(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

// What the calls of a run made and did. Nothing here takes memory.
struct Calls {
    gpurun_device* device = nullptr;
    gpurun_module* module = nullptr;
    gpurun_config *config = nullptr, *own = nullptr;
    gpurun_machine* machine = nullptr;
    gpurun_result* results[2] = {};
    gpurun_error* error = nullptr;
    char output[64] = {};
    size_t output_size = 0, input_used = 0;
    bool has_no_config = false;  // gpurun_config_new() says so by NULL

    // The first error is the answer.
    bool is_done(gpurun_error* given) {
        if (!error)
            error = given;
        else
            gpurun_error_delete(given);
        return given == nullptr;
    }
    gpurun_config* new_config() {
        gpurun_config* made = gpurun_config_new();
        has_no_config |= !made;
        return made;
    }
    void end() {
        gpurun_machine_delete(machine);
        gpurun_config_delete(config);
        gpurun_config_delete(own);
        gpurun_module_delete(module);
        gpurun_device_delete(device);
    }
};

bool take_output(void* data, uint32_t, int stream, const void* bytes, size_t size) {
    const Off off;
    auto& calls = *static_cast<Calls*>(data);
    if (stream != 1 || calls.output_size + size > sizeof calls.output) return stream != 1;
    std::memcpy(calls.output + calls.output_size, bytes, size);
    calls.output_size += size;
    return true;
}

// Two pieces.
size_t bring_input(void* data, void* bytes, size_t capacity) {
    const Off off;
    auto& calls = *static_cast<Calls*>(data);
    const size_t size = std::min({sizeof input - 1 - calls.input_used, sizeof input / 2, capacity});
    std::memcpy(bytes, input + calls.input_used, size);
    calls.input_used += size;
    return size;
}

// How the results are told from right ones: nobody said that something went wrong.
void examine(const gpurun_result* result, u32 expected, Outcome& outcome) {
    if (gpurun_result_processes(result) != expected) outcome.wrong = "another number of processes";
    for (u32 i = 0; i < gpurun_result_processes(result); i++) {
        if (const char* problem = gpurun_result_file_problem(result)) outcome.reported = problem;
        if (gpurun_result_ending(result, i) != GPURUN_EXITED ||
            gpurun_result_exit_code(result, i) != 0) {
            outcome.reported = gpurun_result_message(result, i);
            continue;
        }
        size_t size = 0;
        const char* output = gpurun_result_output(result, i, 1, &size);
        if (size > 0 && std::string_view(output, size) != input)
            outcome.wrong = "another output: " + std::string(output, size);
    }
}

void check_output(const gpurun_result* result, Outcome& outcome) {
    for (u32 i = 0; i < gpurun_result_processes(result); i++) {
        size_t size = 0;
        gpurun_result_output(result, i, 1, &size);
        if (outcome.reported.empty() && size != sizeof input - 1) outcome.wrong = "no output";
    }
}

gpurun_error* open_cpu(gpurun_device** device) { return gpurun_device_open("cpu", device); }

bool begin(Calls& calls, const char* path, const char* mount, gpurun_tier tier,
           OpenDevice* open = open_cpu) {
    if (!calls.is_done(open(&calls.device))) return false;
    if (!calls.is_done(gpurun_module_load_file(path, &calls.module))) return false;
    calls.config = calls.new_config();
    if (!calls.config) return false;
    if (mount) gpurun_config_add_directory(calls.config, mount, "/", true);
    gpurun_config_add_argument(calls.config, "an argument that is not so short");
    gpurun_config_add_environment(calls.config, "NAME=value");
    gpurun_config_set_tier(calls.config, tier);
    return true;
}

// Arms around `body`, and reads what is common to all.
template <class Body, class Check>
Outcome run(const Plan& plan, Seen& seen, Body body, Check check) {
    Calls calls;
    arm(plan);
    body(calls);
    calls.end();
    seen = disarm();
    Outcome outcome;
    if (calls.has_no_config) {
        outcome.error = "no configuration";
    } else if (calls.error) {
        outcome.error = gpurun_error_message(calls.error);
        if (outcome.error.empty()) outcome.wrong = "an error that says nothing";
    } else {
        check(calls, outcome);
    }
    gpurun_error_delete(calls.error);
    for (gpurun_result* result : calls.results) gpurun_result_delete(result);
    return outcome;
}

void check_files(const Folder& folder, Outcome& outcome) {
    if (outcome.reported.empty() && outcome.wrong.empty()) outcome.wrong = folder.problem();
}

Outcome run_streams(const Folder& folder, const Plan& plan, Seen& seen) {
    const std::string path = folder.module(), mount = folder.mount();
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), GPURUN_TIER_INTERP)) return;
            gpurun_config_set_input_callback(calls.config, bring_input, &calls);
            gpurun_config_set_output_callback(calls.config, take_output, &calls);
            calls.is_done(gpurun_run(calls.device, calls.module, calls.config, &calls.results[0]));
        },
        [&](Calls& calls, Outcome& outcome) {
            examine(calls.results[0], 1, outcome);
            if (outcome.reported.empty() &&
                std::string_view(calls.output, calls.output_size) != input)
                outcome.wrong = "another output";
            check_files(folder, outcome);
        });
}

// As gpu-run map does it: launches one after another, each process with input of its own, and files
// that are stored.
Outcome run_chunks(const Folder& folder, const Plan& plan, Seen& seen) {
    const std::string path = folder.module(), mount = folder.mount(), out = folder.path() + "/out";
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), GPURUN_TIER_INTERP)) return;
            gpurun_config_keep_files(calls.config, true);
            for (gpurun_result*& result : calls.results) {
                for (u32 i = 0; i < processes; i++)
                    gpurun_config_add_process(calls.config, nullptr, 0, input, sizeof input - 1);
                if (!calls.is_done(gpurun_run(calls.device, calls.module, calls.config, &result)))
                    return;
                gpurun_config_clear_processes(calls.config);
            }
            calls.is_done(gpurun_result_store_files(calls.results[1], 1, out.c_str()));
        },
        [&](Calls& calls, Outcome& outcome) {
            for (gpurun_result* result : calls.results) {
                examine(result, processes, outcome);
                check_output(result, outcome);
            }
            if (outcome.reported.empty() && read_file(fs::path(out) / "out") != "contents")
                outcome.wrong = "a file that was not stored";
        });
}

// By the engine: there is nothing of scripts in the interface.
Outcome run_script(const Folder&, const Plan& plan, Seen& seen) {
    engine::ScriptOptions options;
    std::string said;
    options.say = [&](const std::string& line) {
        const Off off;
        said += line;
    };
    arm(plan);
    Result<engine::ScriptReport> report =
        gpurun::guarded([&] { return engine::run_script(threads, "threads.wast", options); });
    seen = disarm();
    Outcome outcome;
    if (!report)
        outcome.error = report.error().to_string();
    else if (!said.empty())
        outcome.reported = said;
    else if (report->failed > 0 || report->passed != 2)
        outcome.wrong = std::to_string(report->passed) + " passed";
    return outcome;
}

}  // namespace

Outcome run_alone(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                  OpenDevice* open) {
    const std::string path = folder.module(), mount = folder.mount();
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), tier, open)) return;
            gpurun_config_set_input(calls.config, input, sizeof input - 1);
            calls.is_done(gpurun_run(calls.device, calls.module, calls.config, &calls.results[0]));
        },
        [&](Calls& calls, Outcome& outcome) {
            examine(calls.results[0], 1, outcome);
            check_output(calls.results[0], outcome);
            check_files(folder, outcome);
        });
}

Outcome run_many(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                 OpenDevice* open) {
    const std::string path = folder.module(), mount = folder.mount();
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), tier, open)) return;
            gpurun_config_set_input(calls.config, input, sizeof input - 1);
            gpurun_config_set_processes(calls.config, processes);
            gpurun_config_keep_files(calls.config, true);
            calls.is_done(gpurun_run(calls.device, calls.module, calls.config, &calls.results[0]));
        },
        [&](Calls& calls, Outcome& outcome) {
            examine(calls.results[0], processes, outcome);
            check_output(calls.results[0], outcome);
            for (u32 i = 0; i < processes; i++)
                if (outcome.reported.empty() && gpurun_result_file_count(calls.results[0], i) != 5)
                    outcome.wrong = "another number of files: " +
                                    std::to_string(gpurun_result_file_count(calls.results[0], i));
        });
}

Outcome run_machine(const Folder& folder, const Plan& plan, Seen& seen, gpurun_tier tier,
                    OpenDevice* open) {
    const std::string path = folder.module(), mount = folder.mount();
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), tier, open)) return;
            calls.own = calls.new_config();
            if (!calls.own) return;
            gpurun_config_set_tier(calls.own, tier);
            gpurun_config_set_input_callback(calls.own, bring_input, &calls);
            u32 program = 0, process = 0;
            if (!calls.is_done(gpurun_machine_open(calls.device, calls.config, &calls.machine)))
                return;
            if (calls.is_done(gpurun_machine_load(calls.machine, "guest", calls.module, calls.own,
                                                  &program)) &&
                calls.is_done(gpurun_machine_spawn(calls.machine, program, calls.own, &process)))
                calls.is_done(
                    gpurun_machine_next(calls.machine, -1, nullptr, &process, &calls.results[0]));
            calls.is_done(gpurun_machine_close(calls.machine));
        },
        [&](Calls& calls, Outcome& outcome) {
            if (gpurun_result_ending(calls.results[0], 0) == GPURUN_REFUSED)
                outcome.reported = "refused";
            else
                examine(calls.results[0], 1, outcome);
            check_output(calls.results[0], outcome);
            check_files(folder, outcome);
        });
}

// A process that traps and is dumped, on a machine.
Outcome run_dump(const Folder& folder, const Plan& plan, Seen& seen) {
    const std::string path = folder.trapping_module(), mount = folder.mount(), dump = folder.dump();
    return run(
        plan, seen,
        [&](Calls& calls) {
            if (!begin(calls, path.c_str(), mount.c_str(), GPURUN_TIER_INTERP, open_cpu)) return;
            gpurun_config_set_dump(calls.config, dump.c_str());
            u32 program = 0, process = 0;
            if (!calls.is_done(gpurun_machine_open(calls.device, calls.config, &calls.machine)))
                return;
            if (calls.is_done(
                    gpurun_machine_load(calls.machine, "traps", calls.module, nullptr, &program)) &&
                calls.is_done(gpurun_machine_spawn(calls.machine, program, nullptr, &process)))
                calls.is_done(
                    gpurun_machine_next(calls.machine, -1, nullptr, &process, &calls.results[0]));
            calls.is_done(gpurun_machine_close(calls.machine));
            calls.is_done(gpurun_machine_observe(calls.machine, &calls.results[1]));
        },
        [&](Calls& calls, Outcome& outcome) {
            const gpurun_ending ending = gpurun_result_ending(calls.results[0], 0);
            if (const char* problem = gpurun_result_dump_problem(calls.results[1]))
                outcome.reported = problem;
            else if (ending == GPURUN_REFUSED)
                outcome.reported = "refused";
            else if (ending != GPURUN_TRAPPED)
                outcome.wrong = "it did not trap";
            else if (gpurun_result_dump_count(calls.results[1]) != 1)
                outcome.wrong = "it was not dumped";
            else if (fs::file_size(fs::path(dump) / "0" / "memory.0") != 65536 ||
                     read_file(fs::path(dump) / "0" / "state").empty())
                outcome.wrong = "its dump is not whole";
        });
}

Folder::Folder() {
    static const fs::path outer = fs::temp_directory_path();  // before TMPDIR is set
    path_ = outer / ("gpurun-faults-" + std::to_string(getpid()));
    fs::create_directories(path_);
    write_file(module(), guest);
    write_file(trapping_module(), traps);
    setenv("GPURUN_CACHE", (path_ / "cache").c_str(), 1);
    setenv("TMPDIR", (path_ / "tmp").c_str(), 1);
}

Folder::~Folder() { fs::remove_all(path_); }

void Folder::reset() const {
    for (const char* name : {"mount", "cache", "out", "dump", "tmp"}) fs::remove_all(path_ / name);
    fs::create_directories(path_ / "tmp");
    fs::create_directories(path_ / "mount" / "below");
    write_file(path_ / "mount" / "in", "contents");
    write_file(path_ / "mount" / "gone", "to be removed");
    write_file(path_ / "mount" / "old", "to be renamed");
}

std::string Folder::problem() const {
    const fs::path at = path_ / "mount";
    if (read_file(at / "out") != "contents") return "the file that was written is not there";
    if (fs::exists(at / "gone")) return "the file that was removed is there";
    if (fs::exists(at / "old") || read_file(at / "new") != "to be renamed")
        return "nothing renamed";
    if (!fs::is_directory(at / "made")) return "no directory was made";
    for (const auto& entry : fs::directory_iterator(at))
        if (entry.path().filename().string().starts_with("."))
            return "a temporary file was left: " + entry.path().string();
    return "";
}

const Mode alone{"alone",
                 [](const Folder& folder, const Plan& plan, Seen& seen) {
                     return run_alone(folder, plan, seen, GPURUN_TIER_INTERP, open_cpu);
                 },
                 true};
const Mode alone_streams{"alone_streams", run_streams, true};
const Mode alone_native{"alone_native",
                        [](const Folder& folder, const Plan& plan, Seen& seen) {
                            return run_alone(folder, plan, seen, GPURUN_TIER_NATIVE, open_cpu);
                        },
                        false};
const Mode many{"many",
                [](const Folder& folder, const Plan& plan, Seen& seen) {
                    return run_many(folder, plan, seen, GPURUN_TIER_INTERP, open_cpu);
                },
                true};
const Mode many_native{"many_native",
                       [](const Folder& folder, const Plan& plan, Seen& seen) {
                           return run_many(folder, plan, seen, GPURUN_TIER_NATIVE, open_cpu);
                       },
                       false};
const Mode chunks{"chunks", run_chunks, true};
const Mode machine{"machine",
                   [](const Folder& folder, const Plan& plan, Seen& seen) {
                       return run_machine(folder, plan, seen, GPURUN_TIER_INTERP, open_cpu);
                   },
                   true};
const Mode machine_native{"machine_native",
                          [](const Folder& folder, const Plan& plan, Seen& seen) {
                              return run_machine(folder, plan, seen, GPURUN_TIER_NATIVE, open_cpu);
                          },
                          false};
const Mode machine_dump{"machine_dump", run_dump, true};
const Mode script{"script", run_script, true};

}  // namespace gpurun::faults
