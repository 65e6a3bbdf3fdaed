// Stands in for operator new, pthread_create and the system calls that gpu-run makes.
#include "faults.h"

#include <dirent.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "codegen/codegen.h"

namespace gpurun::faults {
namespace {

std::atomic<Kind> armed_kind = Kind::count;
std::atomic<u64> armed_number = 0, calls = 0, failed = 0;
std::atomic<FailureMode> armed_failure = FailureMode::once;
std::atomic<s64> live = 0;
// How many Offs a thread has: of each kind, and of all.
struct Offs {
    u32 of[u32(Kind::count) + 1] = {};
    bool has(Kind kind) const { return of[u32(kind)] + of[u32(Kind::count)] > 0; }
};
thread_local Offs offs;

// LLVM is built without exceptions: what is not there for it ends the program (codegen/target.h).
struct Range {
    uintptr_t begin = 0, end = 0;
} llvm;

int find_llvm(dl_phdr_info* info, size_t, void*) {
    if (!std::strstr(info->dlpi_name, "libLLVM")) return 0;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const auto& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        const uintptr_t at = info->dlpi_addr + header.p_vaddr;
        if (llvm.begin == 0 || at < llvm.begin) llvm.begin = at;
        llvm.end = std::max<uintptr_t>(llvm.end, at + header.p_memsz);
    }
    return 1;
}

bool is_in_llvm() {
    void* frames[64];
    const int count = backtrace(frames, 64);
    for (int i = 0; i < count; i++) {
        const auto at = reinterpret_cast<uintptr_t>(frames[i]);
        if (at >= llvm.begin && at < llvm.end) return true;
    }
    return false;
}

[[gnu::constructor]] void prepare() {
    void* frame;
    backtrace(&frame, 1);  // it loads a library, the first time
    dl_iterate_phdr(find_llvm, nullptr);
}

void* next(const char* name) { return dlsym(RTLD_NEXT, name); }

void* allocate(std::size_t size, std::size_t alignment) {
    if (fails(Kind::allocation)) return nullptr;
    void* made =
        alignment <= alignof(std::max_align_t)
            ? std::malloc(size ? size : 1)
            : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    if (made) live++;
    return made;
}

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
    if (void* made = allocate(size, alignment)) return made;
    throw std::bad_alloc();
}

void release(void* block) {
    if (!block) return;
    live--;
    std::free(block);
}

// What a call that fails leaves in errno.
bool fails_with(Kind kind, int error, bool is_transfer = false) {
    if (!fails(kind, is_transfer)) return false;
    errno = error;
    return true;
}

bool is_interrupted() { return armed_failure == FailureMode::interrupted; }
bool is_partial() { return armed_failure == FailureMode::partial; }

struct Begun {
    void* (*function)(void*);
    void* argument;
    Offs offs;
};

void* begin(void* given) {
    const Begun begun = *static_cast<Begun*>(given);
    std::free(given);
    offs = begun.offs;
    return begun.function(begun.argument);
}

}  // namespace

const char* name_of(Kind kind) {
    static constexpr const char* names[] = {"allocation", "thread", "open", "read",  "write",
                                            "rename",     "sync",   "mmap", "driver"};
    static_assert(sizeof names / sizeof *names == usize(Kind::count));
    return names[usize(kind)];
}

const char* name_of(FailureMode failure) {
    static constexpr const char* names[] = {"once", "lasting", "interrupted", "partial"};
    return names[usize(failure)];
}

void arm(const Plan& plan) {
    calls = failed = 0;
    armed_number = plan.number;
    armed_failure = plan.failure;
    armed_kind = plan.kind;
}

Seen disarm() {
    armed_kind = Kind::count;
    return {calls, failed};
}

bool fails(Kind kind, bool is_transfer) {
    if (armed_kind != kind || offs.has(kind)) return false;
    if (kind == Kind::allocation && codegen::llvm_calls > 0) return false;
    if (!is_transfer && (is_interrupted() || is_partial())) return false;
    const u64 call = ++calls, number = armed_number;
    if (number == 0 || call < number) return false;
    if (call > number && armed_failure != FailureMode::lasting) return false;
    if (kind == Kind::allocation) {
        const Off off;
        if (is_in_llvm()) return false;
    }
    failed++;
    return true;
}

Off::Off(Kind kind) : kind_(kind) { offs.of[u32(kind)]++; }
Off::~Off() { offs.of[u32(kind_)]--; }

s64 live_blocks() { return live; }

}  // namespace gpurun::faults

using namespace gpurun;
using faults::fails_with;
using faults::Kind;

// ---- memory ------------------------------------------------------------------------

void* operator new(std::size_t size) { return faults::allocate_or_throw(size, 1); }
void* operator new[](std::size_t size) { return faults::allocate_or_throw(size, 1); }
void* operator new(std::size_t size, std::align_val_t to) {
    return faults::allocate_or_throw(size, std::size_t(to));
}
void* operator new[](std::size_t size, std::align_val_t to) {
    return faults::allocate_or_throw(size, std::size_t(to));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    return faults::allocate(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
    return faults::allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
    return faults::allocate(size, std::size_t(to));
}
void* operator new[](std::size_t size, std::align_val_t to, const std::nothrow_t&) noexcept {
    return faults::allocate(size, std::size_t(to));
}
void operator delete(void* block) noexcept { faults::release(block); }
void operator delete[](void* block) noexcept { faults::release(block); }
void operator delete(void* block, std::size_t) noexcept { faults::release(block); }
void operator delete[](void* block, std::size_t) noexcept { faults::release(block); }
void operator delete(void* block, std::align_val_t) noexcept { faults::release(block); }
void operator delete[](void* block, std::align_val_t) noexcept { faults::release(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
    faults::release(block);
}
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
    faults::release(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept { faults::release(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { faults::release(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
    faults::release(block);
}
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
    faults::release(block);
}

// ---- system calls ------------------------------------------------------------------

// A call of the function that this program's one hides.
#define NEXT(name) (reinterpret_cast<decltype(&::name)>(faults::next(#name)))

#pragma GCC visibility push(default)  // for shared libraries too
extern "C" {

// Sanitizers have their own, and offer it by this name to those who define another.
[[gnu::weak]] int __interceptor_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*),
                                               void*);

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
    if (faults::fails(Kind::thread)) return EAGAIN;
    auto* begun = static_cast<faults::Begun*>(std::malloc(sizeof(faults::Begun)));
    *begun = {function, argument, faults::offs};
    auto* create = __interceptor_pthread_create;
    if (!create) create = NEXT(pthread_create);
    const int error = create(thread, attributes, faults::begin, begun);
    if (error != 0) std::free(begun);
    return error;
}

// The mode is there if a file may be made.
#define OPEN(name, parameters, arguments)                            \
    int name parameters {                                            \
        static const auto real = NEXT(name);                         \
        mode_t mode = 0;                                             \
        if (__OPEN_NEEDS_MODE(flags)) {                              \
            va_list rest;                                            \
            va_start(rest, flags);                                   \
            mode = va_arg(rest, mode_t);                             \
            va_end(rest);                                            \
        }                                                            \
        return fails_with(Kind::open, EMFILE) ? -1 : real arguments; \
    }
OPEN(open, (const char* path, int flags, ...), (path, flags, mode))
OPEN(open64, (const char* path, int flags, ...), (path, flags, mode))
OPEN(openat, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))
OPEN(openat64, (int folder, const char* path, int flags, ...), (folder, path, flags, mode))

// Others are alike.
#define CALL(type, name, parameters, arguments, kind, error, failure)            \
    type name parameters {                                                       \
        static const auto real = NEXT(name);                                     \
        return fails_with(Kind::kind, error) ? (type)(failure) : real arguments; \
    }
CALL(FILE*, fopen, (const char* path, const char* mode), (path, mode), open, EMFILE, nullptr)
CALL(DIR*, opendir, (const char* path), (path), open, EMFILE, nullptr)
CALL(DIR*, fdopendir, (int folder), (folder), open, ENOMEM, nullptr)
CALL(int, mkdir, (const char* path, mode_t mode) noexcept, (path, mode), write, ENOSPC, -1)
CALL(int, mkdirat, (int folder, const char* path, mode_t mode) noexcept, (folder, path, mode),
     write, ENOSPC, -1)
CALL(int, symlinkat, (const char* to, int folder, const char* path) noexcept, (to, folder, path),
     write, ENOSPC, -1)
CALL(int, linkat, (int from, const char* a, int to, const char* b, int flags) noexcept,
     (from, a, to, b, flags), write, ENOSPC, -1)
CALL(int, ftruncate, (int file, off_t size) noexcept, (file, size), write, EIO, -1)
CALL(int, rename, (const char* from, const char* to) noexcept, (from, to), rename, EIO, -1)
CALL(int, renameat, (int from, const char* a, int to, const char* b) noexcept, (from, a, to, b),
     rename, EIO, -1)
CALL(int, renameat2, (int from, const char* a, int to, const char* b, unsigned flags) noexcept,
     (from, a, to, b, flags), rename, EIO, -1)
CALL(int, fsync, (int file), (file), sync, EIO, -1)
CALL(int, fdatasync, (int file), (file), sync, EIO, -1)
CALL(void*, mmap,
     (void* at, size_t size, int protection, int flags, int file, off_t offset) noexcept,
     (at, size, protection, flags, file, offset), map, ENOMEM, MAP_FAILED)
CALL(void*, mmap64,
     (void* at, size_t size, int protection, int flags, int file, off64_t offset) noexcept,
     (at, size, protection, flags, file, offset), map, ENOMEM, MAP_FAILED)

// These may do less than they are asked to.
#define TRANSFER(name, bytes_type, parameters, arguments, kind, error) \
    ssize_t name parameters {                                          \
        static const auto real = NEXT(name);                           \
        if (fails_with(Kind::kind, error, true)) {                     \
            if (faults::is_interrupted()) errno = EINTR;               \
            if (!faults::is_partial()) return -1;                      \
            if (size > 1) size = 1;                                    \
        }                                                              \
        return real arguments;                                         \
    }
TRANSFER(read, void*, (int file, void* bytes, size_t size), (file, bytes, size), read, EIO)
TRANSFER(pread, void*, (int file, void* bytes, size_t size, off_t at), (file, bytes, size, at),
         read, EIO)
TRANSFER(pread64, void*, (int file, void* bytes, size_t size, off64_t at), (file, bytes, size, at),
         read, EIO)
TRANSFER(write, const void*, (int file, const void* bytes, size_t size), (file, bytes, size), write,
         ENOSPC)
TRANSFER(pwrite, const void*, (int file, const void* bytes, size_t size, off_t at),
         (file, bytes, size, at), write, ENOSPC)
TRANSFER(pwrite64, const void*, (int file, const void* bytes, size_t size, off64_t at),
         (file, bytes, size, at), write, ENOSPC)

}  // extern "C"
#pragma GCC visibility pop
