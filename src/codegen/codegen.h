// code -> machine code: compiles the functions of a module for a target, by LLVM. LLVM itself is
// seen in this folder alone.
//
// What is compiled is the interpreter's code, so slots, positions, fuel and traps are what they are
// there. Nothing in an image is absolute: it serves wherever its module's code lies in a store.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "translate/translate.h"
#include "wasm/module.h"

namespace gpurun::codegen {

// Machine code of a module: objects that are linked with each other and with the functions of
// abi/native_calls.def.
struct Image {
    struct Piece {
        std::vector<u8> object;
        std::string enter;           // the function that enters it, by number
        std::vector<u32> entries;    // number -> position, relative to the module's code
        std::vector<u32> functions;  // that it has, in ascending order
    };
    std::vector<Piece> pieces;
    // For GPUs so many pieces after another are a group, which is assembled and loaded by itself:
    // one core would take minutes for a module of megabytes.
    static constexpr usize group_pieces = 24;
    usize group_count() const { return (pieces.size() + group_pieces - 1) / group_pieces; }
    std::span<const Piece> group(usize number) const {
        const usize first = number * group_pieces;
        return std::span(pieces).subspan(first, std::min(group_pieces, pieces.size() - first));
    }
    u32 functions = 0, interpreted = 0;  // compiled ones, and those that stay in the interpreter
    u32 missing = 0;                     // that may be compiled yet
    u32 all_functions = 0;               // of the module, with those that it imports
    // What it took to make, in seconds of all threads together. Not kept.
    struct Times {
        double build = 0, optimise = 0, emit = 0;  // LLVM's IR, that made better, machine code
    } seconds;
};

// What images are for: this machine's CPU, or NVIDIA's GPUs, where stacks and memories lie
// differently in a burst of many processes (by its Layout), in a space of one, and in a machine. Of
// the latter an image is PTX.
enum class Target : u8 { host, cuda_burst, cuda_space, cuda_machine, cuda_interleaved };
inline constexpr Target targets[] = {Target::host, Target::cuda_burst, Target::cuda_space,
                                     Target::cuda_machine, Target::cuda_interleaved};
const char* name_of(Target target);

struct Options {
    Target target = Target::host;
    // For the host: a CPU, as LLVM names it, and what it has or has not: "x86-64-v3,+bmi,-avx".
    // Empty: this machine's.
    std::string cpu = {};
    u32 threads = 0;       // 0: as many as the machine has
    bool is_text = false;  // assembly in place of objects, for people to read
    bool is_nice = false;  // threads leave the cores to others, from then on
    // Asked before each piece, by any thread: then it ends with an Error.
    std::function<bool()> is_cancelled = {};
    // Told by any thread after each piece: how many are done of how many.
    std::function<void(usize, usize)> has_progress = {};
};

// Compiles all functions of a module but those that `begun` has, which becomes part of the result.
Result<Image> compile(const wasm::Module& module, const translate::Code& code,
                      const Options& options, Image begun = {});

// Compiles functions of a module for the host as somebody asks for them. Several threads may do so
// at once.
class Compiler {
public:
    // `module` and `code` outlive it. `lanes_meet`: code is made as for the lanes of a warp, to
    // test that on a CPU.
    static std::unique_ptr<const Compiler> make(const wasm::Module& module,
                                                const translate::Code& code,
                                                bool lanes_meet = false);
    virtual ~Compiler() = default;
    // Returns false if the function stays in the interpreter.
    virtual bool can_compile(u32 func) const = 0;
    // Compiles functions that it can compile, in ascending order, into a piece.
    virtual Result<Image::Piece> compile(std::span<const u32> functions,
                                         Image::Times& seconds) const = 0;
};
// What images depend on beside module and options: the CPU if it is for one, and how we compile.
std::string target_key(Target target, const std::string& cpu = "");
// CPUs as in Options: this machine's; one that machines of its kind have had for years; and what
// one has of which this machine has nothing: "avx512f, bmi2", or nothing. An Error: LLVM does not
// know it.
std::string this_cpu();
std::string common_cpu();
Result<std::string> missing_features(const std::string& cpu);
// An image as bytes, and back; `code_words` are its module's.
std::vector<u8> to_bytes(const Image& image);
Result<Image> from_bytes(std::span<const u8> bytes, u32 code_words);
// What LLVM makes of it, before optimisation: text, a module a piece.
Result<std::string> emit_ir(const wasm::Module& module, const translate::Code& code, Target target);

// How many calls of LLVM this thread is in: what memory that runs out there does nobody can handle.
extern thread_local u32 llvm_calls;

// Pieces of an image in memory, ready to run. Their code is gone when this is.
class LoadedImage {
public:
    struct Symbol {
        const char* name;
        const void* address;
    };
    struct Entry {
        u32 position;  // relative to the module's code
        void* enter;   // rt::NativeEnter
        u32 number;
    };
    virtual ~LoadedImage() = default;
    // Links a piece, so that those that are loaded can call it, and returns where it can be
    // entered. Any thread may do so, while others run what is there.
    virtual Result<std::vector<Entry>> add(const Image::Piece& piece) = 0;
};
// An image without pieces. `functions` is how many the module has, with those that it imports.
std::shared_ptr<LoadedImage> make_loaded_image(u32 functions,
                                               std::span<const LoadedImage::Symbol> symbols);

}  // namespace gpurun::codegen
