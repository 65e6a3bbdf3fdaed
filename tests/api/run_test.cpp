// Runs through gpurun.hpp, and so gpurun.h: everything a program that embeds gpu-run can ask for.
#include <gpurun/gpurun.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "common.h"

namespace gpurun::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* functions = R"(
  (module
    (func (export "add") (param i32 i64 f32 f64) (result i64 f64)
      (i64.add (i64.extend_i32_s (local.get 0)) (local.get 1))
      (f64.add (f64.promote_f32 (local.get 2)) (local.get 3)))
    (func $divide (export "divide") (param i32 i32) (result i32)
      (i32.div_s (local.get 0) (local.get 1)))
    (func (export "outer") (param i32) (result i32)
      (call $divide (i32.const 1) (local.get 0)))
    (func (export "vector") (result v128) (v128.const i32x4 1 2 3 4))
    (func (export "null") (result externref) (ref.null extern))
    (func (export "forever") (loop $l (br $l))))
)";

TEST(Api, VersionsAgree) {
    std::string header = std::to_string(GPURUN_VERSION_MAJOR) + "." +
                         std::to_string(GPURUN_VERSION_MINOR) + "." +
                         std::to_string(GPURUN_VERSION_PATCH);
    EXPECT_EQ(gpurun_version(), header);
}

TEST(Api, ListsDevices) {
    std::vector<DeviceInfo> list = devices();
    ASSERT_FALSE(list.empty());
    EXPECT_EQ(list[0].id, "cpu");
    EXPECT_GT(list[0].memory, 0u);
    EXPECT_THAT(error_of([] { Device("toaster"); }), HasSubstr("unknown device \"toaster\""));
}

TEST(Api, DevicesTellWhatTheyDid) {
    device().prepare(true);
    EXPECT_GT(device().lanes(), 0u);
    run(device(), module(functions), Config().function("vector").processes(2));
    bool is_cpu = device().id() == "cpu";
    EXPECT_EQ(device().driver().empty(), is_cpu);
    for (uint64_t figure :
         {device().launches(), device().bytes_in(), device().bytes_out(), device().peak_bytes()})
        EXPECT_EQ(figure == 0, is_cpu);
    const gpurun_kernels kernels = device().kernels();
    EXPECT_EQ(kernels.loaded == 0, is_cpu);
    EXPECT_LE(kernels.shipped + kernels.refused, kernels.loaded);
    double run_seconds = 0;
    for (const auto& [name, seconds] : phases())
        if (name == "run") run_seconds = seconds;
    EXPECT_GT(run_seconds, 0);
    EXPECT_EQ(gpurun_phase_name(gpurun_phase_count()), nullptr);
}

TEST(Api, ModulesTellWhatTheyHave) {
    Module made = module(copier);
    EXPECT_TRUE(made.has_export("memory"));
    EXPECT_FALSE(made.has_export("fd_read"));
    EXPECT_TRUE(made.has_import("wasi_snapshot_preview1", "fd_read"));
    EXPECT_FALSE(made.has_import("env", "fd_read"));
}

TEST(Api, MachineCodeOfFilesRunsIfItIsAllowed) {
    const char* command = std::getenv("GPURUN");
    if (!command || device().id() != "cpu") GTEST_SKIP() << "no gpu-run to make a .gpu file with";
    char folder[] = "/tmp/gpurun-api-XXXXXX";
    ASSERT_TRUE(mkdtemp(folder));
    const std::string place = folder, source = place + "/m.wat", file = place + "/m.gpu";
    std::ofstream(source) << "(module (func (export \"f\") (result i32) (i32.const 7)))";
    const std::string make =
        std::string(command) + " --quiet compile --target cpu -o " + file + " " + source;
    ASSERT_EQ(std::system(make.c_str()), 0);

    std::string heard;
    auto hear = [](void* data, const char* text) { static_cast<std::string*>(data)->append(text); };
    gpurun_set_notes(hear, &heard);
    Config config;
    config.function("f").tier(GPURUN_TIER_NATIVE);
    Module distrusted = Module::from_file(file), trusted = Module::from_file(file);
    trusted.allow_precompiled();
    gpurun_module_allow_precompiled(nullptr);
    for (Module* module : {&trusted, &distrusted}) {
        EXPECT_EQ(heard, "");
        Result result = run(device(), *module, config);
        EXPECT_EQ(to_string(result[0].values()[0]), "7");
        EXPECT_EQ(result.native().source == GPURUN_IMAGE_FILE, module == &trusted);
    }
    EXPECT_THAT(heard, HasSubstr("m.gpu: its machine code is not used"));
    gpurun_set_notes(nullptr, nullptr);
    std::filesystem::remove_all(folder);
}

TEST(Api, TellsHowMuchIsCompiled) {
    if (device().id() != "cpu") GTEST_SKIP() << "the cache may have it";
    const std::string unique = "(module (func (export \"f\") (result i64) (i64.const " +
                               std::to_string(std::random_device()()) + ")))";
    std::vector<std::pair<uint64_t, uint64_t>> progress;
    gpurun_set_compile_progress(
        [](void* data, uint64_t done, uint64_t all) {
            static_cast<decltype(progress)*>(data)->emplace_back(done, all);
        },
        &progress);
    run(device(), module(unique), Config().function("f").tier(GPURUN_TIER_NATIVE));
    gpurun_set_compile_progress(nullptr, nullptr);
    ASSERT_GE(progress.size(), 2u);
    EXPECT_EQ(progress.front(), std::pair(uint64_t{0}, uint64_t{1}));
    EXPECT_EQ(progress.back(), std::pair(uint64_t{1}, uint64_t{1}));
}

TEST(Api, BadModulesAreErrors) {
    EXPECT_THAT(error_of([] { Module::from_bytes(""); }), HasSubstr("is empty"));
    EXPECT_THAT(error_of([] { Module::from_bytes(std::string_view("\0asm", 4)); }),
                HasSubstr("module: 0x4"));
    EXPECT_THAT(error_of([] { Module::from_bytes("(module (func (result i32)))", "a.wat"); }),
                HasSubstr("a.wat:1:"));
    EXPECT_THAT(error_of([] { Module::from_file("/no/such.wasm"); }),
                HasSubstr("/no/such.wasm: No such file"));
    EXPECT_THAT(error_of([] { Module::from_file("/"); }), HasSubstr("is a directory"));
}

TEST(Api, OneProgram) {
    Result result =
        run(device(), module(copier), Config().argument("a").argument("b").input("ping"));
    ASSERT_EQ(result.size(), 1u);
    EXPECT_EQ(result[0].ending(), GPURUN_EXITED);
    EXPECT_EQ(result[0].exit_code(), 43u);
    EXPECT_EQ(result[0].message(), "exited with 43");
    EXPECT_FALSE(result[0].is_success());
    EXPECT_EQ(result[0].output(), "ping");
    EXPECT_EQ(result[0].error(), "err");
    EXPECT_GT(result.seconds(), 0);
    EXPECT_THAT(error_of([&] { result[1]; }), HasSubstr("no process"));
}

TEST(Api, StreamsByCallback) {
    std::string output, error;
    int left = 3;
    Config config;
    config
        .input_callback([&](size_t most) {
            EXPECT_GT(most, 1000u);
            return left-- > 0 ? std::string(1000, char('a' + left)) : std::string();
        })
        .output_callback([&](uint32_t process, int stream, std::string_view bytes) {
            EXPECT_EQ(process, 0u);
            (stream == 1 ? output : error) += bytes;
            return true;
        });
    Result result = run(device(), module(copier), config);
    EXPECT_EQ(output, std::string(1000, 'c') + std::string(1000, 'b') + std::string(1000, 'a'));
    EXPECT_EQ(error, "err");
    EXPECT_EQ(result[0].output(), "");
}

TEST(Api, NobodyWantsTheOutput) {
    Config config;
    config
        .input_callback([](size_t most) { return std::string(most, 'x'); })  // without end
        .output_callback([](uint32_t, int stream, std::string_view) { return stream == 2; });
    Result result = run(device(), module(copier), config);
    EXPECT_EQ(result[0].ending(), GPURUN_CLOSED);
}

TEST(Api, ManyPrograms) {
    Config config;
    config.processes(100).input("x").argument("{}");
    Result result = run(device(), module(copier), config);
    ASSERT_EQ(result.size(), 100u);
    for (uint32_t i = 0; i < 100; i++) {
        EXPECT_EQ(result[i].output(), "x");
        EXPECT_EQ(result[i].exit_code(), 42u);
    }
    std::vector<uint32_t> order;
    config.output_callback([&](uint32_t process, int stream, std::string_view bytes) {
        if (stream == 1) order.push_back(process);
        EXPECT_EQ(bytes, stream == 1 ? "x" : "err");
        return process < 2;
    });
    Result taken = run(device(), module(copier), config);
    EXPECT_THAT(order, ElementsAre(0, 1, 2));
    EXPECT_EQ(taken[0].output(), "");
    EXPECT_EQ(taken[50].output(), "");
}

TEST(Api, LargeOutputsOfManyAreWhole) {
    constexpr uint32_t numbers = 5 << 18;
    Config config;
    config.processes(5);
    Result result = run(device(), module(counter(numbers)), config);
    EXPECT_EQ(result.output_problem(), "");
    for (uint32_t i = 0; i < result.size(); i++) {
        EXPECT_EQ(result[i].output().size(), numbers * 4u);
        EXPECT_TRUE(counts(result[i].output()));
        EXPECT_EQ(result[i].output().data()[numbers * 4u], '\0');
    }
}

// However much that is, it is not read again once somebody wants to stop, and nothing is lost.
TEST(Api, LargeOutputsOfManyAreWholeAfterAStop) {
    Stop stop;
    Config config;
    config.processes(4).stop(stop);
    std::thread other([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        stop.request();
    });
    Result result = run(device(), module(counter(0)), config);
    other.join();
    EXPECT_EQ(result.output_problem(), "");
    for (uint32_t i = 0; i < result.size(); i++) {
        EXPECT_EQ(result[i].ending(), GPURUN_STOPPED);
        EXPECT_TRUE(counts(result[i].output()));
    }
    EXPECT_GT(result[0].output().size(), 0u);
}

TEST(Api, ProcessesWithInputOfTheirOwn) {
    Config config;
    config.input("for all").argument("{}");
    config.process({})
        .process({}, "mine")
        .process({"a", "b"}, "")
        .process({"a"}, std::string(5000, 'x'));
    Result result = run(device(), module(copier), config);
    ASSERT_EQ(result.size(), 4u);
    EXPECT_EQ(result[0].output(), "for all");
    EXPECT_EQ(result[1].output(), "mine");
    EXPECT_EQ(result[2].output(), "");
    EXPECT_EQ(result[3].output(), std::string(5000, 'x'));
    EXPECT_EQ(result[1].exit_code(), 42u);
    EXPECT_EQ(result[2].exit_code(), 44u);
    EXPECT_EQ(result[3].exit_code(), 43u);
    EXPECT_THAT(error_of([&] { run(device(), module(copier), config.processes(3)); }),
                HasSubstr("3 processes were asked for, and 4 were added"));
}

TEST(Api, ProcessesWithArgumentsOfTheirOwn) {
    Config config;
    config.function("divide").argument("10{}").first_number(5);
    config.process({"5"}).process({"2"}).process({"0"});
    Result result = run(device(), module(functions), config);
    EXPECT_EQ(result[0].value<int32_t>(), 105 / 5);
    EXPECT_EQ(result[1].value<int32_t>(), 106 / 2);
    EXPECT_EQ(result[2].message(), "integer divide by zero");
    EXPECT_THAT(error_of([&] { run(device(), module(functions), config.process({})); }),
                HasSubstr("divide takes 2 arguments, got 1"));

    Config numbered;
    numbered.function("divide").argument("{}").argument("1").first_number(1000).processes(3);
    EXPECT_EQ(run(device(), module(functions), numbered)[2].value<int32_t>(), 1002);
}

TEST(Api, ManyCannotShareLiveStreams) {
    EXPECT_THAT(
        error_of([] { run(device(), module(copier), Config().processes(2).inherit_streams()); }),
        HasSubstr("cannot share the standard streams"));
    EXPECT_THAT(error_of([] {
                    Config config;
                    config.processes(2).input_callback([](size_t) { return std::string(); });
                    run(device(), module(copier), config);
                }),
                HasSubstr("input callback"));
}

TEST(Api, Functions) {
    Config config;
    config.function("add").value(int32_t(-2)).value(int64_t(44)).value(1.5f).value(0.25);
    Result result = run(device(), module(functions), config);
    EXPECT_EQ(result[0].ending(), GPURUN_RETURNED);
    EXPECT_EQ(result[0].message(), "");
    EXPECT_TRUE(result[0].is_success());
    EXPECT_EQ(result[0].value<int64_t>(0), 42);
    EXPECT_EQ(result[0].value<double>(1), 1.75);
    EXPECT_EQ(to_string(result[0].values()[1]), "1.75");
    char small[3] = "xx";
    EXPECT_EQ(gpurun_value_text(result[0].values()[1], small, sizeof small), 4u);
    EXPECT_STREQ(small, "1.");
    EXPECT_EQ(gpurun_value_text(gpurun_value{}, nullptr, 0), 0u);
    EXPECT_THAT(error_of([&] { result[0].value<float>(1); }), HasSubstr("no result of that type"));

    Result vector = run(device(), module(functions), Config().function("vector"));
    gpurun_value value = vector[0].values().at(0);
    EXPECT_EQ(value.type, uint32_t(GPURUN_V128));
    EXPECT_THAT(value.of.v128, ElementsAre(1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0));
    Result null = run(device(), module(functions), Config().function("null"));
    EXPECT_EQ(null[0].values().at(0).type, uint32_t(GPURUN_REFERENCE));
    EXPECT_EQ(null[0].values().at(0).of.i32, 0);
    EXPECT_EQ(to_string(null[0].values().at(0)), "null");
}

TEST(Api, TrapsHaveABacktrace) {
    Result result = run(device(), module(functions), Config().function("outer").value(0));
    EXPECT_EQ(result[0].ending(), GPURUN_TRAPPED);
    EXPECT_EQ(result[0].message(), "integer divide by zero");
    std::vector<Frame> frames = result[0].frames();
    ASSERT_EQ(frames.size(), 2u);
    EXPECT_EQ(frames[0].function, "divide");
    EXPECT_EQ(frames[1].function, "outer");
    EXPECT_GT(frames[0].offset, 0u);

    Config many;
    many.function("divide").processes(3).argument("6").argument("{}");
    Result all = run(device(), module(functions), many);
    EXPECT_EQ(all[0].ending(), GPURUN_TRAPPED);
    EXPECT_EQ(all[0].frames().at(0).function, "divide");
    EXPECT_EQ(all[1].value<int32_t>(), 6);
    EXPECT_EQ(all[2].value<int32_t>(), 3);
}

TEST(Api, WrongCallsAreErrors) {
    Module made = module(functions);
    auto problem = [&](const Config& config) {
        return error_of([&] { run(device(), made, config); });
    };
    EXPECT_THAT(problem(Config()), HasSubstr("_start"));
    EXPECT_THAT(problem(Config().processes(2)), HasSubstr("_start"));
    EXPECT_THAT(problem(Config().function("divid")), HasSubstr("did you mean \"divide\"?"));
    EXPECT_THAT(problem(Config().function("divide").value(1)),
                HasSubstr("divide takes 2 arguments, got 1"));
    EXPECT_THAT(problem(Config().function("divide").argument("1").argument("x")),
                HasSubstr("argument 2 of divide"));
    EXPECT_THAT(problem(Config().environment("=x")), HasSubstr("is not NAME=VALUE"));
    EXPECT_THAT(problem(Config().timeout(-1)), HasSubstr("is no time in seconds"));
    EXPECT_THAT(problem(Config().function("forever").directory("/no/such", "/")),
                HasSubstr("/no/such"));
}

TEST(Api, Limits) {
    Module made = module(functions);
    Result fuel = run(device(), made, Config().function("forever").fuel(1000));
    EXPECT_EQ(fuel[0].ending(), GPURUN_NO_FUEL);
    Result time = run(device(), made, Config().function("forever").timeout(0.05));
    EXPECT_EQ(time[0].ending(), GPURUN_TIMED_OUT);
    Result many = run(device(), made, Config().function("forever").timeout(0.05).processes(3));
    EXPECT_EQ(many[2].ending(), GPURUN_TIMED_OUT);
}

TEST(Api, StopFromAnotherThread) {
    Module made = module(functions);
    Config config;
    {
        Stop stop;
        config.function("forever").stop(stop);
        std::thread other([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            stop.request();
        });
        Result result = run(device(), made, config);
        other.join();
        EXPECT_EQ(result[0].ending(), GPURUN_STOPPED);
    }
    // The configuration still knows the request, though its handle is gone.
    EXPECT_EQ(run(device(), made, config)[0].ending(), GPURUN_STOPPED);
}

TEST(Api, RunsOfSeveralThreads) {
    Module made = module(functions);
    std::atomic<int> sum = 0;
    std::vector<std::thread> threads;
    for (int32_t i = 1; i <= 8; i++)
        threads.emplace_back([&, i] {
            Config config;
            config.function("divide").value(10 * i).value(i).processes(uint32_t(i % 2));
            sum += run(device(), made, config)[0].value<int32_t>();
        });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(sum, 80);
}

TEST(Api, HostFunctions) {
    Module made = module(R"(
      (module
        (import "env" "mix" (func $mix (param i32 i64 f32 f64) (result f64)))
        (import "env" "turn" (func $turn (param i32 i32)))
        (memory (export "memory") 1)
        (data (i32.const 8) "drawer")
        (func (export "go") (param i32) (result i32 f64)
          (call $turn (i32.const 8) (local.get 0))
          (i32.load8_u (i32.const 8))
          (call $mix (i32.const 1) (i64.const 2) (f32.const 4) (f64.const 8)))))");
    Config config;
    config.function("go").argument("6");
    config.host_function<double, int32_t, int64_t, float, double>(
        "env", "mix", [](Call& call, int32_t a, int64_t b, float c, double d) {
            return a + double(b) + c + d + 100 * call.process();
        });
    config.host_function<void, uint32_t, uint32_t>(
        "env", "turn", [](Call& call, uint32_t at, uint32_t size) {
            std::string text = call.read(at, size);
            call.write(at, std::string(text.rbegin(), text.rend()));
        });
    Result one = run(device(), made, config);
    EXPECT_EQ(one[0].value<int32_t>(0), 'r');
    EXPECT_EQ(one[0].value<double>(1), 15);
    Result many = run(device(), made, config.processes(50));
    for (uint32_t i = 0; i < 50; i++) EXPECT_EQ(many[i].value<double>(1), 15 + 100.0 * i);

    // An exception of the host's function is a trap of the guest; here a range outside of memory.
    Config bad;
    bad.function("go").argument("100000");
    bad.host_function<double, int32_t, int64_t, float, double>(
        "env", "mix", [](Call&, int32_t, int64_t, float, double) { return 0.0; });
    bad.host_function<void, uint32_t, uint32_t>(
        "env", "turn", [](Call& call, uint32_t at, uint32_t size) { call.read(at, size); });
    Result trapped = run(device(), made, bad);
    EXPECT_EQ(trapped[0].message(), "a host function failed");
    EXPECT_THAT(error_of([&] { run(device(), made, Config().function("go").argument("6")); }),
                HasSubstr("env"));
}

// What they would wait for waits for them. Another handle is another device.
TEST(Api, CallbacksCannotRunSomethingOnTheirOwnDevice) {
    Module made = module(R"(
      (module
        (import "env" "nested" (func $nested (result i32)))
        (func (export "go") (result i32) (call $nested))
        (func (export "answer") (result i32) (i32.const 42))))");
    Config inner;
    inner.function("answer").host_function<int32_t>("env", "nested", [](Call&) { return 0; });
    std::string said;
    Config config;
    config.function("go").host_function<int32_t>("env", "nested", [&](Call&) {
        said = error_of([&] { run(device(), made, inner); });
        return 7;
    });
    EXPECT_EQ(run(device(), made, config)[0].value<int32_t>(0), 7);
    EXPECT_THAT(said, HasSubstr("cannot run something on it"));
    said.clear();
    Result many = run(device(), made, config.processes(20));
    for (uint32_t i = 0; i < 20; i++) EXPECT_EQ(many[i].value<int32_t>(0), 7);
    EXPECT_THAT(said, HasSubstr("cannot run something on it"));

    Config output;
    output.input("x").output_callback([&](uint32_t, int, std::string_view) {
        said = error_of([&] { Machine machine(device()); });
        return true;
    });
    said.clear();
    run(device(), module(copier), output);
    EXPECT_THAT(said, HasSubstr("cannot run something on it"));

    Device other("cpu");
    Config apart;
    apart.function("go").host_function<int32_t>("env", "nested", [&](Call&) {
        return run(other, made, inner.processes(3))[2].value<int32_t>(0);
    });
    EXPECT_EQ(run(device(), made, apart.processes(4))[3].value<int32_t>(0), 42);
}

TEST(Api, Traces) {
    std::vector<std::string> lines;
    Config config;
    config.input("x").trace([&](std::string_view line) { lines.emplace_back(line); });
    run(device(), module(copier), config);
    ASSERT_EQ(lines.size(), 6u);
    EXPECT_THAT(lines[0], HasSubstr("fd_write(2, \"err\""));
    EXPECT_THAT(lines[5], HasSubstr("proc_exit(41)"));
    lines.clear();
    Result many = run(device(), module(copier), config.processes(2));
    EXPECT_EQ(lines.size(), 12u);
    EXPECT_THAT(lines[0], HasSubstr("process "));
    EXPECT_TRUE(many.debug().empty());
}

TEST(Api, TracesAreKept) {
    Config config;
    config.input("x").traced().processes(2);
    std::vector<std::string> lines = run(device(), module(copier), config).debug();
    ASSERT_EQ(lines.size(), 12u);
    EXPECT_THAT(lines[0], HasSubstr("fd_write(2, \"err\""));
}

// Notes the numbers up to 1000.
constexpr const char* noter = R"((module
    (import "gpu" "debug_i32" (func $debug (param i32)))
    (func (export "_start") (local $i i32)
      (loop $next
        (call $debug (local.get $i))
        (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1)))
                               (i32.const 1000)))))))";

// Processes wait for whoever takes their lines. In a result there is room for some.
TEST(Api, NotesOfManyAreNotLost) {
    constexpr uint32_t processes = 20;
    std::vector<int> next(processes);
    Config config;
    config.processes(processes).debug([&](std::string_view line) {
        uint32_t process = 0;
        int number = 0;
        ASSERT_EQ(std::sscanf(std::string(line).c_str(), "process %u: %d", &process, &number), 2);
        ASSERT_LT(process, processes);
        EXPECT_EQ(number, next[process]++);
    });
    Result shown = run(device(), module(noter), config);
    EXPECT_EQ(next, std::vector<int>(processes, 1000));
    EXPECT_TRUE(shown.debug().empty());
    EXPECT_EQ(shown.debug_dropped(), 0u);
    Result kept = run(device(), module(noter), Config().processes(processes));
    EXPECT_GT(kept.debug().size(), 1000u);
    EXPECT_EQ(kept.debug().size() + kept.debug_dropped(), processes * 1000u);
}

TEST(Api, ChecksBeforeRuns) {
    Module made = module(functions);
    auto check = [&](const Config& config) { return error_of([&] { config.check(made); }); };
    EXPECT_EQ(check(Config().function("outer").value(1)), "no error");
    EXPECT_THAT(check(Config()), HasSubstr("_start"));
    EXPECT_THAT(check(Config().function("outer")), HasSubstr("outer takes 1 argument, got 0"));
    EXPECT_THAT(check(Config().function("inner").processes(2)), HasSubstr("inner"));
}

TEST(Api, SeveralModulesInOneLaunch) {
    Module one = module(copier), other = module(functions);
    Config copies, divides;
    copies.process({"a"}, "first").process_number(7).process({}, "second");
    divides.function("divide").argument("6").argument("{}").processes(4);
    const Job jobs[] = {{&one, &copies}, {&other, &divides}};
    std::vector<Result> results = run_jobs(device(), jobs);
    ASSERT_EQ(results.size(), 2u);
    EXPECT_EQ(results[0][0].output(), "first");
    EXPECT_EQ(results[0][0].exit_code(), 42u);
    EXPECT_EQ(results[0][1].output(), "second");
    EXPECT_EQ(results[1][0].message(), "integer divide by zero");
    EXPECT_EQ(results[1][3].value<int32_t>(), 2);
    EXPECT_GT(results[0].slots(), 0u);
    EXPECT_GT(results[0].launches(), 0u);
    EXPECT_LT(results[0].stop_seconds(), 0);
    EXPECT_GT(results[0].system_bytes(), 0u);
    EXPECT_EQ(results[1].system_bytes(), 0u);
    // One process where none was asked for.
    copies.clear_processes().input("all");
    EXPECT_EQ(run_jobs(device(), {jobs, 1})[0][0].output(), "all");
    EXPECT_THAT(error_of([] { run_jobs(device(), {}); }), HasSubstr("wants a device, jobs"));
}

TEST(Api, ProcessesHaveNumbersOfTheirOwn) {
    Config config;
    config.function("divide").argument("{}").process({"1"}).process({"1"});
    config.process_number(40).process({"1"}).first_number(5);
    Result result = run(device(), module(functions), config);
    EXPECT_EQ(result[0].value<int32_t>(), 5);
    EXPECT_EQ(result[1].value<int32_t>(), 40);
    EXPECT_EQ(result[2].value<int32_t>(), 7);
    EXPECT_THAT(error_of([] { run(device(), module(functions), Config().process_number(1)); }),
                HasSubstr("no process was added"));
}

TEST(Api, Profiles) {
    Config config;
    config.function("forever").profiled().timeout(0.2);
    Result result = run(device(), module(functions), config);
    ASSERT_EQ(result[0].ending(), GPURUN_TIMED_OUT);
    std::vector<StackSample> stacks = result.stacks();
    ASSERT_EQ(stacks.size(), 1u);
    EXPECT_GT(stacks[0].count, 1u);
    EXPECT_THAT(stacks[0].functions, ElementsAre("forever"));
    EXPECT_EQ(gpurun_result_stack_function(result.get(), 1, 0), nullptr);
    EXPECT_TRUE(run(device(), module(functions), config.profiled(false)).stacks().empty());
    config.profiled().processes(5);
    stacks = run(device(), module(functions), config).stacks();
    ASSERT_EQ(stacks.size(), 1u);
    EXPECT_GT(stacks[0].count, 1u);
    EXPECT_THAT(stacks[0].functions, ElementsAre("forever"));
}

TEST(Api, WatchesItself) {
    Config config;
    config.function("vector").processes(3).watched();
    Result result = run(device(), module(functions), config);
    for (uint32_t i = 0; i < 3; i++) EXPECT_TRUE(result[i].is_success());
}

// ---- files -------------------------------------------------------------------------

class Files : public testing::Test {
protected:
    // Makes out.txt with "hi" in its first directory.
    static constexpr const char* writer = R"(
      (module
        (import "wasi_snapshot_preview1" "path_open"
          (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
        (import "wasi_snapshot_preview1" "fd_write"
          (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 16) "out.txthi")
        (func (export "_start")
          (if (call $open (i32.const 3) (i32.const 0) (i32.const 16) (i32.const 7) (i32.const 1)
                          (i64.const 0x1fffffff) (i64.const 0) (i32.const 0) (i32.const 0))
            (then unreachable))
          (i32.store (i32.const 4) (i32.const 23))
          (i32.store (i32.const 8) (i32.const 2))
          (if (call $write (i32.load (i32.const 0)) (i32.const 4) (i32.const 1) (i32.const 12))
            (then unreachable))))
    )";

    void SetUp() override {
        std::string pattern =
            (std::filesystem::temp_directory_path() / "gpurun-api-XXXXXX").string();
        ASSERT_TRUE(mkdtemp(pattern.data()));
        folder_ = pattern;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    std::string read(const std::filesystem::path& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::filesystem::path folder_;
};

TEST_F(Files, OfOneProcessAreWrittenBack) {
    Result result = run(device(), module(writer), Config().directory(folder_, "/", true));
    ASSERT_TRUE(result[0].is_success()) << result[0].message();
    EXPECT_EQ(result.file_problem(), "");
    EXPECT_EQ(read(folder_ / "out.txt"), "hi");
    EXPECT_TRUE(result[0].files().empty());
}

TEST_F(Files, ProgressOfWritingBack) {
    using Progress = std::vector<std::pair<uint64_t, uint64_t>>;
    Progress progress;
    Config config;
    config.directory(folder_, "/", true).write_progress([&](uint64_t done, uint64_t all) {
        progress.emplace_back(done, all);
    });
    ASSERT_TRUE(run(device(), module(writer), config)[0].is_success());
    EXPECT_EQ(progress, (Progress{{0, 1}, {1, 1}}));
    gpurun_config_set_write_progress(config.get(), nullptr, nullptr);
    std::filesystem::remove(folder_ / "out.txt");
    ASSERT_TRUE(run(device(), module(writer), config)[0].is_success());
    EXPECT_EQ(progress.size(), 2u);
}

TEST(Many, ProgressIsTold) {
    uint64_t last = 0, of = 0, calls = 0;
    Config config;
    config.processes(1000).progress([&](uint64_t ended, uint64_t all) {
        EXPECT_GE(ended, last);
        last = ended;
        of = all;
        calls++;
    });
    Result result = run(device(), module(R"((func (export "_start")))"), config);
    EXPECT_EQ(result.size(), 1000u);
    if (device().id() == "cpu") EXPECT_GT(calls, 0u);  // elsewhere it may be over before
    if (calls > 0) EXPECT_EQ(of, 1000u);
    EXPECT_LE(last, 1000u);
}

TEST_F(Files, OfManyProcessesAreRead) {
    Config config;
    config.directory(folder_, "/data", true).processes(3).keep_files();
    Result result = run(device(), module(writer), config);
    for (uint32_t i = 0; i < 3; i++) {
        ASSERT_TRUE(result[i].is_success()) << result[i].message();
        std::vector<File> files = result[i].files();
        ASSERT_EQ(files.size(), 1u);
        EXPECT_EQ(files[0].change, GPURUN_FILE_WRITTEN);
        EXPECT_EQ(files[0].path, "/data/out.txt");
        EXPECT_EQ(result[i].read_file(0), "hi");
    }
    EXPECT_THAT(error_of([&] { result[0].read_file(1); }), HasSubstr("wants a file"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "out.txt"));
    result[2].store_files(folder_ / "two");
    EXPECT_EQ(read(folder_ / "two/out.txt"), "hi");
}

TEST_F(Files, OfOneProcessAreKept) {
    Result result =
        run(device(), module(writer), Config().directory(folder_, "/", true).keep_files());
    ASSERT_EQ(result[0].files().size(), 1u);
    EXPECT_EQ(result[0].read_file(0), "hi");
}

TEST_F(Files, OfADump) {
    Config config;
    config.function("outer").value(0).dump(folder_ / "dump");
    Result result = run(device(), module(functions), config);
    EXPECT_EQ(result.dump_problem(), "");
    EXPECT_EQ(result.dump_count(), 1u);
    EXPECT_THAT(read(folder_ / "dump/0/state"), HasSubstr("integer divide by zero"));
    config.dump(folder_ / "many").processes(2);
    EXPECT_EQ(run(device(), module(functions), config).dump_count(), 2u);
    EXPECT_THAT(read(folder_ / "many/1/state"), HasSubstr("integer divide by zero"));
    Config numbered;
    numbered.function("outer").process({"0"}).process({"0"}).process_number(40);
    EXPECT_EQ(run(device(), module(functions), numbered.dump(folder_ / "own")).dump_count(), 2u);
    EXPECT_THAT(read(folder_ / "own/0/state"), HasSubstr("process 0\n"));
    EXPECT_THAT(read(folder_ / "own/40/state"), HasSubstr("process 40\n"));
    EXPECT_EQ(run(device(), module(functions), numbered.dump("")).dump_count(), 0u);
    EXPECT_THAT(error_of([&] { run(device(), module(functions), config.dump("/dev/null/x")); }),
                HasSubstr("/dev/null/x"));
    EXPECT_THAT(error_of([] { make_dump_folder("/dev/null/x", module(functions)); }),
                HasSubstr("/dev/null/x"));
    make_dump_folder(folder_ / "early", module(functions));
    EXPECT_FALSE(read(folder_ / "early/module.wasm").empty());
    // What is in the way of a dump does not keep the process from its end.
    std::ofstream(folder_ / "early/0") << "in the way";
    Result full = run(device(), module(functions), config.dump(folder_ / "early"));
    EXPECT_THAT(full.dump_problem(), HasSubstr("early/0"));
    EXPECT_EQ(full[0].ending(), GPURUN_TRAPPED);
}

// ---- the C functions by themselves -------------------------------------------------

TEST(Api, NothingIsFineToo) {
    gpurun_error_delete(nullptr);
    gpurun_device_delete(nullptr);
    gpurun_devices_delete(nullptr);
    gpurun_module_delete(nullptr);
    gpurun_config_delete(nullptr);
    gpurun_stop_delete(nullptr);
    gpurun_result_delete(nullptr);
    gpurun_bytes_delete(nullptr);
    EXPECT_STREQ(gpurun_error_message(nullptr), "");
    EXPECT_EQ(gpurun_result_processes(nullptr), 0u);
    EXPECT_EQ(gpurun_result_output(nullptr, 0, 1, nullptr), nullptr);
    gpurun_config_set_function(nullptr, "x");
    EXPECT_THAT(error_of([] { detail::check(gpurun_run(nullptr, nullptr, nullptr, nullptr)); }),
                HasSubstr("gpurun_run wants"));
    EXPECT_THAT(error_of([] { detail::check(gpurun_device_open(nullptr, nullptr)); }),
                HasSubstr("gpurun_device_open wants"));
}

TEST(Api, WhatASetterCannotUseIsAnErrorOfTheRun) {
    Config config;
    gpurun_config_set_function(config.get(), nullptr);
    gpurun_config_add_argument(config.get(), nullptr);  // the first is told
    EXPECT_EQ(error_of([&] { run(device(), module(functions), config); }),
              "gpurun_config_set_function: a text is NULL");
    Config typed;
    gpurun_config_add_value(typed.get(), gpurun_value{});
    EXPECT_EQ(error_of([&] { run(device(), module(functions), typed); }),
              "gpurun_config_add_value: 0 is no type of a number or vector");
}

TEST(Api, DataOfHostFunctionsIsReleased) {
    static int released;
    released = 0;
    auto function = [](void*, gpurun_call*, const gpurun_value*, gpurun_value*) { return true; };
    auto release = [](void* data) { ++*static_cast<int*>(data); };
    gpurun_config* config = gpurun_config_new();
    gpurun_config_add_function(config, "a", "b", nullptr, 0, nullptr, 0, function, &released,
                               release);
    EXPECT_EQ(released, 0);
    gpurun_config_add_function(config, nullptr, "b", nullptr, 0, nullptr, 0, function, &released,
                               release);
    EXPECT_EQ(released, 1);
    gpurun_config_delete(config);
    EXPECT_EQ(released, 2);
    gpurun_config_add_function(nullptr, "a", "b", nullptr, 0, nullptr, 0, function, &released,
                               release);
    EXPECT_EQ(released, 3);
}

}  // namespace
}  // namespace gpurun::api
