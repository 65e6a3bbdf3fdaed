/**
 * @file
 * gpu-run as a library: WebAssembly programs and functions, one process or many, on a GPU or the
 * CPU. C11; gpurun.hpp is the same for C++.
 *
 * - Handles are made by `*_new`, `*_open` and `*_load` functions and by gpurun_run(), and belong to
 *   the caller, who gives them to the `*_delete` function of their kind. Deleting NULL does
 *   nothing.
 * - Whatever is passed in (strings, bytes, arrays) is copied before the function returns.
 * - Pointers that functions return point into the handle that was asked and live as long as it,
 *   unless the function says otherwise. Strings are UTF-8 and end with a NUL.
 * - What can fail returns an error, which the caller owns, or NULL. Nothing aborts or throws for
 *   what a caller or a guest does wrong. Output parameters are written on success alone.
 * - A handle may be used by one thread at a time. What is never changed (modules, results) may be
 *   read by several; runs on one device wait for each other, and gpurun_stop_request() is for any
 *   thread at any time.
 */
#ifndef GPURUN_GPURUN_H
#define GPURUN_GPURUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The version of this header; the library's own is gpurun_version(). */
#define GPURUN_VERSION_MAJOR 0
#define GPURUN_VERSION_MINOR 1
#define GPURUN_VERSION_PATCH 0

#if defined(__GNUC__)
#define GPURUN_API __attribute__((visibility("default")))
#define GPURUN_MUST_CHECK __attribute__((warn_unused_result))
#else
#define GPURUN_API
#define GPURUN_MUST_CHECK
#endif

#ifdef __cplusplus
extern "C" {
#endif

/** "0.1.0": of the library that is linked. Never freed. */
GPURUN_API const char* gpurun_version(void);

/** @name Errors
 * What went wrong, as one sentence for a person. */
/** @{ */
typedef struct gpurun_error gpurun_error;
GPURUN_API const char* gpurun_error_message(const gpurun_error* error);
GPURUN_API void gpurun_error_delete(gpurun_error* error);
/** @} */

/** @name Devices
 * Where processes run: "cpu", "cuda", "cuda:1", or "auto": a GPU if there is one. */
/** @{ */
typedef struct gpurun_device gpurun_device;
/** Opens a device. Several threads may use it; their runs wait for each other. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_device_open(const char* name,
                                                              gpurun_device** device);
GPURUN_API void gpurun_device_delete(gpurun_device* device);
/** Which one it is: "cuda:0". */
GPURUN_API const char* gpurun_device_id(const gpurun_device* device);
/** What it is called: "NVIDIA H200". */
GPURUN_API const char* gpurun_device_name(const gpurun_device* device);
/** Bytes of memory that were free when it was opened. */
GPURUN_API uint64_t gpurun_device_memory(const gpurun_device* device);
/** The version of its driver; "" if it has none. */
GPURUN_API const char* gpurun_device_driver(const gpurun_device* device);
/** Processes that it can advance at once. */
GPURUN_API uint32_t gpurun_device_lanes(const gpurun_device* device);
/** Gets it ready for runs of several processes, or of one, which otherwise the first run does. On a
 * GPU that takes seconds once if its machine code did not come with the library. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_device_prepare(gpurun_device* device,
                                                                 bool for_several);
/** What it has done so far: kernels that were launched, bytes that were copied to it and from it,
 * and the most bytes of its memory in use at once. All 0 on the CPU, whose memory is the host's. */
GPURUN_API uint64_t gpurun_device_launches(const gpurun_device* device);
GPURUN_API uint64_t gpurun_device_bytes_in(const gpurun_device* device);
GPURUN_API uint64_t gpurun_device_bytes_out(const gpurun_device* device);
GPURUN_API uint64_t gpurun_device_peak_bytes(const gpurun_device* device);
/** Where the device's machine code came from, so far. */
typedef struct gpurun_kernels {
    uint64_t loaded;    /**< kernels of gpu-run that were loaded */
    uint64_t shipped;   /**< how many of these came with the library as machine code */
    uint64_t refused;   /**< kernels that came as machine code and that the driver did not load */
    uint64_t assembled; /**< times that the driver assembled a kernel, or a part of a module */
} gpurun_kernels;
/** Tells that; all 0 on the CPU. */
GPURUN_API void gpurun_device_get_kernels(const gpurun_device* device, gpurun_kernels* kernels);
/** Tells which functions of its driver this program has called so far, and how often. None on the
 * CPU. */
GPURUN_API void gpurun_device_driver_calls(const gpurun_device* device,
                                           void (*each)(void* data, const char* name,
                                                        uint64_t calls),
                                           void* data);

/** The devices that are here. */
typedef struct gpurun_devices gpurun_devices;
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_devices_list(gpurun_devices** devices);
GPURUN_API void gpurun_devices_delete(gpurun_devices* devices);
GPURUN_API size_t gpurun_devices_count(const gpurun_devices* devices);
/** What gpurun_device_open() takes. NULL where `index` is too large, as below. */
GPURUN_API const char* gpurun_devices_id(const gpurun_devices* devices, size_t index);
GPURUN_API const char* gpurun_devices_name(const gpurun_devices* devices, size_t index);
/** Bytes of memory that are free; 0 where `index` is too large. */
GPURUN_API uint64_t gpurun_devices_memory(const gpurun_devices* devices, size_t index);
/** Why there is no GPU, or NULL if there is one. */
GPURUN_API const char* gpurun_devices_missing(const gpurun_devices* devices);
/** @} */

/** @name Modules
 * Decoded and validated; from WebAssembly's binary format or its text format. */
/** @{ */
typedef struct gpurun_module gpurun_module;
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_module_load_file(const char* path,
                                                                   gpurun_module** module);
/** The same from memory. `name` is what messages call it, and the program's name; NULL: "module".
 */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_module_load(const void* bytes, size_t size,
                                                              const char* name,
                                                              gpurun_module** module);
/** Lets runs from now on use the machine code that a .gpu file has, which can do whatever the
 * calling program can. Without it the module in the file is run like any other, and a note says so
 * (gpurun_set_notes()). */
GPURUN_API void gpurun_module_allow_precompiled(gpurun_module* module);
GPURUN_API void gpurun_module_delete(gpurun_module* module);
/** Whether it exports something of that name, and whether it imports `module_name`.`name`. */
GPURUN_API bool gpurun_module_has_export(const gpurun_module* module, const char* name);
GPURUN_API bool gpurun_module_has_import(const gpurun_module* module, const char* module_name,
                                         const char* name);
/** @} */

/** @name Values
 * Arguments and results of functions. */
/** @{ */
typedef enum gpurun_type {
    GPURUN_I32 = 1,
    GPURUN_I64 = 2,
    GPURUN_F32 = 3,
    GPURUN_F64 = 4,
    GPURUN_V128 = 5,
    GPURUN_REFERENCE = 6, /**< as a result only; `i32` is 0 if it is null, otherwise 1 */
} gpurun_type;

typedef struct gpurun_value {
    uint32_t type; /**< gpurun_type */
    uint32_t reserved;
    union {
        int32_t i32;
        int64_t i64;
        float f32;
        double f64;
        uint8_t v128[16];
    } of;
} gpurun_value;

static inline gpurun_value gpurun_i32(int32_t value) {
    gpurun_value made = {GPURUN_I32, 0, {0}};
    made.of.i32 = value;
    return made;
}
static inline gpurun_value gpurun_i64(int64_t value) {
    gpurun_value made = {GPURUN_I64, 0, {0}};
    made.of.i64 = value;
    return made;
}
static inline gpurun_value gpurun_f32(float value) {
    gpurun_value made = {GPURUN_F32, 0, {0}};
    made.of.f32 = value;
    return made;
}
static inline gpurun_value gpurun_f64(double value) {
    gpurun_value made = {GPURUN_F64, 0, {0}};
    made.of.f64 = value;
    return made;
}
/** The value as text that gpurun_config_add_argument() takes: "42", "-1.5", "nan"; of a reference
 * "null" or "ref". Writes at most `capacity` bytes, the last of them a NUL, and returns how long
 * the text is; 64 bytes are enough for every value. */
GPURUN_API size_t gpurun_value_text(gpurun_value value, char* buffer, size_t capacity);
/** @} */

/** @name Host functions
 * Functions of yours that a guest imports. */
/** @{ */
/** A call that a guest makes. Lives while the callback runs. */
typedef struct gpurun_call gpurun_call;
/** The number of the process that calls. */
GPURUN_API uint32_t gpurun_call_process(const gpurun_call* call);
/** Bytes of the guest's first memory. */
GPURUN_API uint64_t gpurun_call_memory_size(const gpurun_call* call);
/** Copies from and to the guest's memory. False: the range is not in it, and nothing was done. */
GPURUN_API bool gpurun_call_read(gpurun_call* call, uint64_t address, void* bytes, size_t size);
GPURUN_API bool gpurun_call_write(gpurun_call* call, uint64_t address, const void* bytes,
                                  size_t size);

/** What a guest calls. `results` has the right types and zeros; fill it in. False ends the process
 * with a trap. Calls come one at a time, from a thread of the library. To run something on the
 * device that the guest runs on is an error, here as in callbacks for streams; a device that was
 * opened once more is another. */
typedef bool (*gpurun_function)(void* data, gpurun_call* call, const gpurun_value* arguments,
                                gpurun_value* results);
/** @} */

/** @name Stopping
 * A request to stop that another thread or a signal handler makes. */
/** @{ */
typedef struct gpurun_stop gpurun_stop;
/** NULL: there is no memory. */
GPURUN_API gpurun_stop* gpurun_stop_new(void);
GPURUN_API void gpurun_stop_delete(gpurun_stop* stop);
/** Runs that were told of it end soon, those that begin later at once. Safe in signal handlers. */
GPURUN_API void gpurun_stop_request(gpurun_stop* stop);
/** Takes the request back. */
GPURUN_API void gpurun_stop_reset(gpurun_stop* stop);
GPURUN_API bool gpurun_stop_is_requested(const gpurun_stop* stop);
/** @} */

/** @name Configuration
 * What to run and what it sees. May be used for any number of runs, of different modules too.
 * These functions do not fail: what is wrong is the error of gpurun_run(). */
/** @{ */
typedef struct gpurun_config gpurun_config;
/** One process that calls `_start`, without arguments, input, files or limits. NULL: there is no
 * memory. */
GPURUN_API gpurun_config* gpurun_config_new(void);
GPURUN_API void gpurun_config_delete(gpurun_config* config);

/** The exported function to call instead of `_start`. */
GPURUN_API void gpurun_config_set_function(gpurun_config* config, const char* name);
/** One more argument: of `_start` what the program sees; of another function a number as text
 * ("42", "-1.5", "0x2a"). With several processes, {} in it is the process's number. */
GPURUN_API void gpurun_config_add_argument(gpurun_config* config, const char* text);
/** The same for a function, as a value. */
GPURUN_API void gpurun_config_add_value(gpurun_config* config, gpurun_value value);
/** What the program sees as its own name; otherwise the module's. */
GPURUN_API void gpurun_config_set_program_name(gpurun_config* config, const char* name);
/** A variable of the environment, as "NAME=VALUE". */
GPURUN_API void gpurun_config_add_environment(gpurun_config* config, const char* variable);
/** A directory of this machine as `guest_path`. What one process changed in a writable one is
 * written back when it ends; several processes have each their own copy. */
GPURUN_API void gpurun_config_add_directory(gpurun_config* config, const char* host_path,
                                            const char* guest_path, bool is_writable);
/** Functions of `count` value types that the guest imports as `module`.`name`. `data` is passed to
 * `function`, and to `release` (if it is not NULL) once neither the configuration nor a run needs
 * it any more. */
GPURUN_API void gpurun_config_add_function(gpurun_config* config, const char* module,
                                           const char* name, const gpurun_type* parameters,
                                           size_t parameter_count, const gpurun_type* results,
                                           size_t result_count, gpurun_function function,
                                           void* data, void (*release)(void* data));

/** All of standard input, of every process. */
GPURUN_API void gpurun_config_set_input(gpurun_config* config, const void* bytes, size_t size);
/** Fills in up to `capacity` bytes and says how many; 0: the input has ended. May wait. */
typedef size_t (*gpurun_input)(void* data, void* bytes, size_t capacity);
/** Standard input of one process, brought when it asks for it. A process of a machine has a thread
 * that calls `input` ahead of it; when 64 such calls have not returned though their processes have
 * ended, the next gpurun_machine_spawn() with a callback is an error. */
GPURUN_API void gpurun_config_set_input_callback(gpurun_config* config, gpurun_input input,
                                                 void* data);
/** What a process wrote to standard output (`stream` 1) or standard error (2). False: nobody wants
 * more; the process is stopped if that was standard output. */
typedef bool (*gpurun_output)(void* data, uint32_t process, int stream, const void* bytes,
                              size_t size);
/** Output goes to `output` instead of into the result: of one process while it runs, of several
 * when all have ended, one process after another. */
GPURUN_API void gpurun_config_set_output_callback(gpurun_config* config, gpurun_output output,
                                                  void* data);
/** One process uses the standard streams of this program, live. SIGPIPE is ignored from then on. */
GPURUN_API void gpurun_config_inherit_streams(gpurun_config* config);

/** As many processes; 0, which is the default, is one that has the device to itself. */
GPURUN_API void gpurun_config_set_processes(gpurun_config* config, uint32_t count);
/** One more process, instead of gpurun_config_set_processes(): with `count` arguments of its own,
 * which come after those of all, and standard input of its own. `input` NULL: that of all. */
GPURUN_API void gpurun_config_add_process(gpurun_config* config, const char* const* arguments,
                                          size_t count, const void* input, size_t size);
/** Takes back all that were added. */
GPURUN_API void gpurun_config_clear_processes(gpurun_config* config);
/** The number that the first of several processes has for its guest and host functions, and in
 * arguments; 0 if it is not set. Results count from 0 all the same. */
GPURUN_API void gpurun_config_set_first_number(gpurun_config* config, uint32_t number);
/** The same for the process that was added last alone. */
GPURUN_API void gpurun_config_set_process_number(gpurun_config* config, uint32_t number);
/** Call stack of a process, in slots of 4 bytes. */
GPURUN_API void gpurun_config_set_stack(gpurun_config* config, uint32_t slots);
/** Its heap of objects, in words of 4 bytes. */
GPURUN_API void gpurun_config_set_heap(gpurun_config* config, uint32_t words);
/** Bytes that the device holds of each stream that it writes, 64 KiB unless told: then it waits
 * until they have been taken away. What several processes write beyond that is kept in a file
 * without a name in $TMPDIR, or /var/tmp, until their result is deleted. */
GPURUN_API void gpurun_config_set_output_buffer(gpurun_config* config, uint64_t bytes);
/** Bytes that a memory of it may grow to. */
GPURUN_API void gpurun_config_set_memory(gpurun_config* config, uint64_t bytes);
/** Instructions that it may execute. */
GPURUN_API void gpurun_config_set_fuel(gpurun_config* config, uint64_t instructions);
/** Seconds that a run may take, from its beginning to the end of all processes. */
GPURUN_API void gpurun_config_set_timeout(gpurun_config* config, double seconds);
/** Makes random numbers repeat. */
GPURUN_API void gpurun_config_set_seed(gpurun_config* config, uint64_t seed);
/** Runs end when `stop` is requested; it may be deleted before. NULL: nothing stops them. */
GPURUN_API void gpurun_config_set_stop(gpurun_config* config, gpurun_stop* stop);
/** Keeps what processes changed in writable directories for gpurun_result_file_count(). */
GPURUN_API void gpurun_config_keep_files(gpurun_config* config, bool is_kept);
/** How many of how many things are done. */
typedef void (*gpurun_progress)(void* data, uint64_t done, uint64_t all);
/** Tells `progress` how far writing back changed files is, be it those that an interrupted run
 * left: when it begins (`done` is 0), about ten times a second, and when it ends (`done` is `all`).
 * Calls come one at a time, from whatever thread writes. NULL: nobody is told. */
GPURUN_API void gpurun_config_set_write_progress(gpurun_config* config, gpurun_progress progress,
                                                 void* data);
/** Tells `progress` from time to time how many of several processes have ended at the least, and
 * how many there are. Of jobs that run together, the first one's is told of all. Calls come one at
 * a time, from any thread, while the processes run. NULL: nobody is told. */
GPURUN_API void gpurun_config_set_progress(gpurun_config* config, gpurun_progress progress,
                                           void* data);
/** A line of text for a person, without an end of line. */
typedef void (*gpurun_line)(void* data, const char* line);
/** Shows every system call to `line` while processes run. What guests say by the debug functions
 * comes there too, instead of into the result. Calls come one at a time, from any thread; processes
 * wait for them rather than lose something. NULL: nothing is shown. */
GPURUN_API void gpurun_config_set_trace(gpurun_config* config, gpurun_line line, void* data);
/** The two parts of it: what guests say by the debug functions goes to `line`, or for NULL into the
 * result; and system calls are shown among that, or not. */
GPURUN_API void gpurun_config_set_debug(gpurun_config* config, gpurun_line line, void* data);
GPURUN_API void gpurun_config_set_traced(gpurun_config* config, bool is_traced);
/** Where the state of processes that trap is written, for `gpu-run inspect`: of one hundred of them
 * at the most. Made if it is not there; empty: nowhere. A process's number is the name of its state
 * there; on a machine those that others started have their pid. */
GPURUN_API void gpurun_config_set_dump(gpurun_config* config, const char* folder);
/** What gpurun_run() does with it first: makes it, with the module in it. For whoever wants to know
 * before whether that works. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_dump_folder_make(const char* folder,
                                                                   const gpurun_module* module);
/** Looks at the stacks of processes while they run, for gpurun_result_stack_count(): every half a
 * millisecond at that of one alone, and of several on the CPU at those of the ones that run.
 * Several on a GPU, and a machine, stop for it now and then: some of those that ran are looked at,
 * and stand for the others. */
GPURUN_API void gpurun_config_set_profiled(gpurun_config* config, bool is_profiled);
/** How processes run. The same results either way. */
typedef enum gpurun_tier {
    GPURUN_TIER_AUTO,      /**< machine code if there is some, else the interpreter, while machine
                                code is made if it runs for long, which then takes over */
    GPURUN_TIER_INTERP,    /**< the interpreter */
    GPURUN_TIER_NATIVE,    /**< machine code, made before the run begins */
    GPURUN_TIER_ALTERNATE, /**< both, in turns at every call and loop: to test that */
    GPURUN_TIER_EARLY,     /**< machine code takes over after a few instructions: to test that */
    GPURUN_TIER_PARTIAL,   /**< on the CPU, machine code of every other function: to test that */
    GPURUN_TIER_QUICK,     /**< on the CPU, machine code that is made at once: to test that */
} gpurun_tier;
GPURUN_API void gpurun_config_set_tier(gpurun_config* config, gpurun_tier tier);
/** How the linear memories of many processes lie on a GPU. The same results either way. */
typedef enum gpurun_layout {
    GPURUN_LAYOUT_AUTO,        /**< the faster one: both are tried, and the answer is kept in the
                                    cache. Linear where they cannot be compared */
    GPURUN_LAYOUT_LINEAR,      /**< each in one piece: for processes that go different ways */
    GPURUN_LAYOUT_INTERLEAVED, /**< those of 32 processes by 4 bytes in turn: for processes that do
                                    the same at the same time */
} gpurun_layout;
GPURUN_API void gpurun_config_set_layout(gpurun_config* config, gpurun_layout layout);
/** Watches over the library's own memory, with canaries that are checked when processes end. A
 * spoilt one is a bug of the library: it ends this program on the CPU, and the run on a GPU. */
GPURUN_API void gpurun_config_set_watched(gpurun_config* config, bool is_watched);
/** Spoils a canary of that process, one of several, to test the watch. */
GPURUN_API void gpurun_config_spoil(gpurun_config* config, uint32_t process);
/** Of processes on a machine: 0 is high, 1 normal, 2 low. */
GPURUN_API void gpurun_config_set_priority(gpurun_config* config, uint32_t priority);
/** Of machines: percent of the time that the device may be busy with it, 100 if it is not set; and
 * what it has for programs and processes: bytes of memory, and how many processes and threads at
 * once. 0, which is the default, is what suits the device. */
GPURUN_API void gpurun_config_set_share(gpurun_config* config, uint32_t percent);
GPURUN_API void gpurun_config_set_machine_memory(gpurun_config* config, uint64_t bytes);
GPURUN_API void gpurun_config_set_machine_processes(gpurun_config* config, uint32_t processes,
                                                    uint32_t threads);
/** Of machines: microseconds that the host looks for news before it sleeps, which makes answers
 * quick and takes a core; 0 if it is not set. */
GPURUN_API void gpurun_config_set_spin(gpurun_config* config, uint32_t microseconds);
/** What gpurun_run() would find wrong before anything runs: the function is not there, or one
 * process's arguments do not fit it. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_config_check(const gpurun_config* config,
                                                               const gpurun_module* module);
/** @} */

/** @name Runs */
/** @{ */
typedef struct gpurun_result gpurun_result;
/** Runs all processes to their end. A trap, an exit code or a timeout is no error but in the
 * result; an error is that they could not be run. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_run(gpurun_device* device,
                                                      const gpurun_module* module,
                                                      const gpurun_config* config,
                                                      gpurun_result** result);
GPURUN_API void gpurun_result_delete(gpurun_result* result);

/** Processes of one module, for a launch that has those of others too. */
typedef struct gpurun_job {
    const gpurun_module* module;
    const gpurun_config* config; /**< 0 processes are 1 here */
} gpurun_job;
/** The same for several modules, all in one launch. `results` has a place for each job, in their
 * order. The time limit and the stop of the first job are those of all. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_run_jobs(gpurun_device* device,
                                                           const gpurun_job* jobs, size_t count,
                                                           gpurun_result** results);

/** Shows `line` what a person may want to know and no result depends on, such as a damaged file of
 * the cache that was dropped: from all threads, one at a time. A fault of a process that another
 * one started has its backtrace in more lines of the same text. NULL: nobody, as at first. */
GPURUN_API void gpurun_set_notes(gpurun_line line, void* data);
/** Tells `progress` how many parts of a module have been compiled while a run waits for its machine
 * code (GPURUN_TIER_NATIVE): from all threads, one at a time. NULL: nobody, as at first. */
GPURUN_API void gpurun_set_compile_progress(gpurun_progress progress, void* data);

/** Whether machine code is still being made for GPURUN_TIER_AUTO, be it that nobody wants it any
 * more. exit() waits for the threads that do, for a second perhaps; _exit() does not. */
GPURUN_API bool gpurun_is_compiling(void);

/** What this library spent its time on so far, in all runs: "load", "translate", "run". */
GPURUN_API size_t gpurun_phase_count(void);
/** NULL where `index` is too large; 0 seconds then. */
GPURUN_API const char* gpurun_phase_name(size_t index);
GPURUN_API double gpurun_phase_seconds(size_t index);
/** @} */

/** @name Results
 * `process` counts from 0. Of a process that there is not, answers are 0, NULL or
 * GPURUN_STOPPED. */
/** @{ */
typedef enum gpurun_ending {
    GPURUN_RETURNED = 0,  /**< the function returned; a program has exit code 0 then */
    GPURUN_EXITED = 1,    /**< the program called exit; see gpurun_result_exit_code() */
    GPURUN_TRAPPED = 2,   /**< see gpurun_result_message() */
    GPURUN_EXCEPTION = 3, /**< it threw an exception that nothing caught */
    GPURUN_NO_FUEL = 4,   /**< it used all of its fuel */
    GPURUN_TIMED_OUT = 5, /**< time was up */
    GPURUN_STOPPED = 6,   /**< somebody asked for it */
    GPURUN_BLOCKED = 7,   /**< it waited for what nobody could do any more */
    GPURUN_CLOSED = 8,    /**< nobody wanted its output */
    GPURUN_KILLED = 9,    /**< on a machine: a signal ended it; its exit code is 128 + the signal */
    GPURUN_REFUSED = 10,  /**< on a machine: there was no room for it, so it never began */
    GPURUN_FAILED = 11,   /**< this program or the device failed it: its output could not be
                               written, say; see gpurun_result_message() */
} gpurun_ending;

GPURUN_API uint32_t gpurun_result_processes(const gpurun_result* result);
/** Seconds that the processes ran. */
GPURUN_API double gpurun_result_seconds(const gpurun_result* result);
/** Of a run of several processes, all of its jobs together: how many had memory of their own at
 * once, in how many launches, which share of the lanes' time they had a process in (0: not known),
 * and the seconds from a request to stop to the end (negative: there was none). */
GPURUN_API uint32_t gpurun_result_slots(const gpurun_result* result);
GPURUN_API uint32_t gpurun_result_launches(const gpurun_result* result);
GPURUN_API double gpurun_result_lanes_busy(const gpurun_result* result);
GPURUN_API double gpurun_result_stop_seconds(const gpurun_result* result);
/** How their linear memories lay: linear or interleaved. If both were tried, how those did that
 * began last. */
GPURUN_API gpurun_layout gpurun_result_layout(const gpurun_result* result);
/** Why they lay like that. */
typedef enum gpurun_layout_reason {
    GPURUN_LAYOUT_UNTRIED,    /**< there is no other layout for them, or it could not be tried */
    GPURUN_LAYOUT_ASKED,      /**< gpurun_config_set_layout() */
    GPURUN_LAYOUT_REMEMBERED, /**< an earlier run has found it faster */
    GPURUN_LAYOUT_MEASURED,   /**< this run has */
} gpurun_layout_reason;
typedef struct gpurun_layout_choice {
    gpurun_layout_reason reason;
    /** Processes in a second with each layout, when it was tried; 0: it was not. */
    double linear_rate, interleaved_rate;
} gpurun_layout_choice;
GPURUN_API void gpurun_result_get_layout_choice(const gpurun_result* result,
                                                gpurun_layout_choice* choice);
/** Bytes that several processes took beside their memories: output, files, descriptors. */
GPURUN_API uint64_t gpurun_result_system_bytes(const gpurun_result* result);

/** Where machine code came from. */
typedef enum gpurun_image_source {
    GPURUN_IMAGE_NONE,     /**< there is none: the interpreter ran everything */
    GPURUN_IMAGE_COMPILED, /**< it was made, for this run or an earlier one with this module */
    GPURUN_IMAGE_CACHE,
    GPURUN_IMAGE_FILE, /**< of the module: a .gpu file */
} gpurun_image_source;
/** What of a run was machine code. */
typedef struct gpurun_native {
    gpurun_image_source source;
    uint32_t functions;   /**< that were compiled */
    uint32_t interpreted; /**< that stay in the interpreter */
    /** What compiling took, of all threads together: the compiler's own form of the functions, that
     * made better, and machine code of it. 0 where nothing was compiled. */
    double build_seconds, optimise_seconds, emit_seconds;
    /** How long it was interpreted before machine code took over; negative: not at all. */
    double interpreted_seconds;
} gpurun_native;
GPURUN_API void gpurun_result_get_native(const gpurun_result* result, gpurun_native* native);
GPURUN_API gpurun_ending gpurun_result_ending(const gpurun_result* result, uint32_t process);
/** What it gave to exit; 0 if it did not call it. */
GPURUN_API uint32_t gpurun_result_exit_code(const gpurun_result* result, uint32_t process);
/** How it ended, in words: "integer divide by zero", "exited with 3"; NULL if it returned. */
GPURUN_API const char* gpurun_result_message(const gpurun_result* result, uint32_t process);
/** True if a fault ended it in no function, but while its segments were copied. */
GPURUN_API bool gpurun_result_is_initialising(const gpurun_result* result, uint32_t process);

/** Where it stood when it did not return or exit: `frame` 0 is the innermost. With several
 * processes, that one alone. */
GPURUN_API size_t gpurun_result_frame_count(const gpurun_result* result, uint32_t process);
GPURUN_API const char* gpurun_result_frame_function(const gpurun_result* result, uint32_t process,
                                                    size_t frame);
/** The instruction, as an offset in the module's bytes. */
GPURUN_API uint64_t gpurun_result_frame_offset(const gpurun_result* result, uint32_t process,
                                               size_t frame);
/** "main.c:12:5", or NULL: the module does not say. */
GPURUN_API const char* gpurun_result_frame_source(const gpurun_result* result, uint32_t process,
                                                  size_t frame);

/** What the function returned. */
GPURUN_API size_t gpurun_result_value_count(const gpurun_result* result, uint32_t process);
/** A value of type 0 if there is none of that number. */
GPURUN_API gpurun_value gpurun_result_value(const gpurun_result* result, uint32_t process,
                                            size_t index);

/** What it wrote to standard output (`stream` 1) or standard error (2), if no callback took it.
 * Ends with a NUL that is not counted. */
GPURUN_API const char* gpurun_result_output(const gpurun_result* result, uint32_t process,
                                            int stream, size_t* size);

typedef enum gpurun_change {
    GPURUN_FILE_REMOVED = 0,
    GPURUN_DIRECTORY_REMOVED = 1,
    GPURUN_DIRECTORY_MADE = 2,
    GPURUN_FILE_WRITTEN = 3,
    GPURUN_SYMLINK_MADE = 4,
} gpurun_change;

/** What it changed in its directories, if the configuration keeps that. */
/** Output of a process that is kept in a file leaves memory until it is read again. */
GPURUN_API void gpurun_result_unload_output(const gpurun_result* result, uint32_t process);

GPURUN_API size_t gpurun_result_file_count(const gpurun_result* result, uint32_t process);
GPURUN_API gpurun_change gpurun_result_file_change(const gpurun_result* result, uint32_t process,
                                                   size_t file);
/** As the guest names it. */
GPURUN_API const char* gpurun_result_file_path(const gpurun_result* result, uint32_t process,
                                               size_t file);
/** What is in a file that was written, or what a symbolic link says. The bytes are the caller's,
 * who frees them with gpurun_bytes_delete(). */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_result_file_read(const gpurun_result* result,
                                                                   uint32_t process, size_t file,
                                                                   char** bytes, size_t* size);
GPURUN_API void gpurun_bytes_delete(char* bytes);
/** Writes all that it made or changed below a folder of this machine. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_result_store_files(const gpurun_result* result,
                                                                     uint32_t process,
                                                                     const char* folder);
/** What kept changed files of one process from being written back; NULL: nothing. */
GPURUN_API const char* gpurun_result_file_problem(const gpurun_result* result);
/** How many states of processes that trapped were written, and what kept others from it. */
GPURUN_API uint32_t gpurun_result_dump_count(const gpurun_result* result);
/** How many processes ended by a trap, by an exception that nothing caught, or without fuel. */
GPURUN_API uint64_t gpurun_result_fault_count(const gpurun_result* result);
GPURUN_API const char* gpurun_result_dump_problem(const gpurun_result* result);
/** Of several processes: why output of some was lost; NULL: it was not. They saw their writes fail.
 */
GPURUN_API const char* gpurun_result_output_problem(const gpurun_result* result);

/** The different stacks that processes which were profiled had when they were looked at. */
GPURUN_API size_t gpurun_result_stack_count(const gpurun_result* result);
/** How often it was seen. */
GPURUN_API uint64_t gpurun_result_stack_seen(const gpurun_result* result, size_t stack);
/** Its functions: 0 is the outermost. */
GPURUN_API size_t gpurun_result_stack_depth(const gpurun_result* result, size_t stack);
GPURUN_API const char* gpurun_result_stack_function(const gpurun_result* result, size_t stack,
                                                    size_t index);

/** What guests said by the debug functions of the import module `gpu`, in order, as lines of text:
 * "process 3: 42". If nobody took them (gpurun_config_set_debug), the first few thousand are kept.
 */
GPURUN_API size_t gpurun_result_debug_count(const gpurun_result* result);
GPURUN_API const char* gpurun_result_debug(const gpurun_result* result, size_t index);
/** How many there was no room for. */
GPURUN_API uint64_t gpurun_result_debug_dropped(const gpurun_result* result);
/** @} */

/** @name Machines
 * A device that runs by itself: one launch, in which processes begin, wait for each other, start
 * others and end while the host sleeps. Programs and processes are brought to it while it runs.
 *
 * Functions of a machine may be called by several threads at once, but for its deletion. */
/** @{ */
typedef struct gpurun_machine gpurun_machine;
/** Boots a machine on a device, which is for nothing else until the machine is deleted, and
 * outlives it. The configuration has its directories, its seed, the functions for machines above,
 * where dumps go and whether stacks are looked at, and whether processes may use the standard
 * streams of this program (gpurun_config_inherit_streams()); NULL: none of that. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_open(gpurun_device* device,
                                                               const gpurun_config* config,
                                                               gpurun_machine** machine);
/** Ends it within a moment, whatever it does, and writes back what the first process, and those
 * that it started, changed in writable directories; nothing if it was opened for several
 * (gpurun_config_set_processes()). Afterwards only endings are left: those of processes that it
 * stopped, too, with what they had written; such a process was stopped, or timed out if the machine
 * was opened with a time limit and nobody asked for a stop. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_close(gpurun_machine* machine);
/** Closes it, if nobody has. */
GPURUN_API void gpurun_machine_delete(gpurun_machine* machine);

/** Brings a program, under the name by which others start it. Its stack, heap, memory and fuel are
 * those of the configuration; NULL: no limits of its own. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_load(gpurun_machine* machine,
                                                               const char* name,
                                                               const gpurun_module* module,
                                                               const gpurun_config* config,
                                                               uint32_t* program);
/** A program of a machine, as gpurun_machine_load() has it. */
typedef struct gpurun_program {
    const char* name;
    const gpurun_module* module;
    const gpurun_config* config;
} gpurun_program;
/** The same for several at once. Where a machine has to park for machine code it does so once for
 * all of them. `numbers` has a place for each, in their order; after an error some of them may be
 * there. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_load_programs(
    gpurun_machine* machine, const gpurun_program* programs, size_t count, uint32_t* numbers);
/** Asks for a process of a program: with the arguments, environment, streams, fuel and priority of
 * the configuration. Output goes to the callback, to the standard streams, or into the result,
 * which has what was written until it ended; callbacks are called by threads of the machine, and
 * know the process by its number, until nobody has the stream any more or the machine is deleted.
 * `process` is the number by which its ending is known; the first one's is 0. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_spawn(gpurun_machine* machine,
                                                                uint32_t program,
                                                                const gpurun_config* config,
                                                                uint32_t* process);
/** What gpurun_machine_spawn() began, as guests name it: its pid. 0: it has not begun, or its
 * ending is known. */
GPURUN_API uint32_t gpurun_machine_pid(gpurun_machine* machine, uint32_t process);
/** Sends a signal to the process of a pid, which ends it unless it is one of those that do not; 0:
 * to all there are. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_kill(gpurun_machine* machine,
                                                               uint32_t pid, uint32_t signal);
/** Waits for the next ending of a process that gpurun_machine_spawn() began, for `seconds` at the
 * most; negative: until there is one. `result` is a result of one process, or NULL where the time
 * was over first or `stop`, which may be NULL, was requested. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_next(gpurun_machine* machine,
                                                               double seconds,
                                                               const gpurun_stop* stop,
                                                               uint32_t* process,
                                                               gpurun_result** result);
/** The same until no process is left, whoever began it, and all output has arrived. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_wait_idle(gpurun_machine* machine,
                                                                    double seconds,
                                                                    const gpurun_stop* stop,
                                                                    bool* is_idle);
/** What was seen so far of all processes of a machine, those that others started too: a result
 * without processes. It has stacks, if the configuration of the machine was profiled, all together;
 * with several programs, a program's name is the outermost function. It tells how many processes
 * ended by a fault, how many of their states were written, and what kept others from it; and, by
 * gpurun_result_output_problem(), if standard output was closed before all was written. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_observe(gpurun_machine* machine,
                                                                  gpurun_result** result);
/** Seconds that a message takes to the machine and back. */
GPURUN_MUST_CHECK GPURUN_API gpurun_error* gpurun_machine_ping(gpurun_machine* machine,
                                                               double* seconds);

/** What a machine has done and has, as it wrote it down last. */
typedef struct gpurun_machine_stats {
    double seconds;          /**< since it was opened */
    double host_cpu_seconds; /**< of this program, in that time */
    uint64_t launches;
    uint64_t driver_calls; /**< of this program, ever */
    uint64_t processes, threads, ready, blocked;
    uint64_t spawned, ended;
    uint64_t lanes, lanes_busy;
    double busy_lane_seconds, lane_seconds; /**< of all lanes together */
    uint64_t memory, memory_used;           /**< bytes for programs and processes */
    uint64_t system_memory, system_memory_used;
    double heartbeat_age, heartbeat_latest; /**< seconds: of the slowest part of it, now and ever */
    uint32_t slowest_warp, slowest_phase;   /**< which part that was, and in what it was then */
} gpurun_machine_stats;
GPURUN_API void gpurun_machine_get_stats(gpurun_machine* machine, gpurun_machine_stats* stats);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
