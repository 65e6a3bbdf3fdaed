// What the tests of this folder share: the device, a program, and errors as text.
#pragma once

#include <gpurun/gpurun.hpp>

#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

namespace gpurun::api {

// GPURUN_DEVICE names another device than the CPU.
inline Device& device() {
    const char* id = std::getenv("GPURUN_DEVICE");
    static Device opened(id ? id : "cpu");
    return opened;
}

// Copies standard input to standard output, writes "err" to standard error, exits with argc + 40.
inline constexpr const char* copier = R"(
  (module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "args_sizes_get" (func $args (param i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2)
    (data (i32.const 16) "err")
    (func (export "_start")
      (i32.store (i32.const 0) (i32.const 16))
      (i32.store (i32.const 4) (i32.const 3))
      (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))
      (i32.store (i32.const 0) (i32.const 1024))
      (loop $again
        (i32.store (i32.const 4) (i32.const 1000))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (if (i32.load (i32.const 8))
          (then
            (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
            (br $again))))
      (drop (call $args (i32.const 0) (i32.const 8)))
      (call $exit (i32.add (i32.load (i32.const 0)) (i32.const 40)))))
)";

// Writes the numbers 0, 1, 2, ... of four bytes each to standard output: so many, or as many as it
// can if that is 0.
inline std::string counter(uint32_t numbers) {
    return R"((module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 2)
    (data (i32.const 0) "\00\00\01\00\00\00\01\00")
    (func (export "_start") (local $number i32)
      (loop $more
        (i32.store (i32.add (i32.const 65536) (i32.and (i32.shl (local.get $number) (i32.const 2))
                                                       (i32.const 65535)))
                   (local.get $number))
        (local.set $number (i32.add (local.get $number) (i32.const 1)))
        (if (i32.eqz (i32.and (local.get $number) (i32.const 16383)))
          (then (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))
        (br_if $more (i32.ne (local.get $number) (i32.const )" +
           std::to_string(numbers) + R"()))))))";
}

// Returns true if bytes are the beginning of what that writes.
inline bool counts(std::string_view bytes) {
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
        uint32_t number;
        std::memcpy(&number, bytes.data() + i, 4);
        if (number != i / 4) return false;
    }
    return true;
}

inline Module module(const std::string& source) { return Module::from_bytes(source, "test.wat"); }

template <class Body>
inline std::string error_of(Body body) {
    try {
        body();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace gpurun::api
