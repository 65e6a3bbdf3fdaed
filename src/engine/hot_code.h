// Makes machine code of a module for the CPU, function by function. Functions in which a run is
// seen become quick code at once; other threads compile those that take most of the time, and runs
// take over what is compiled and worth linking. The rest stays interpreted. The cache keeps all
// that was compiled, whenever the runs end.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "codegen/codegen.h"
#include "codegen/quick.h"
#include "device/device.h"

namespace gpurun::engine {

enum class ImageSource : u8 { compiled, cache, file };

class HotCode : public std::enable_shared_from_this<HotCode> {
public:
    // Writes an image into the cache.
    using Keep = std::function<void(const codegen::Image& image)>;
    // `begun` is what was compiled before, `from` says where it was found, and `name` is what notes
    // call the module.
    HotCode(std::shared_ptr<const wasm::Module> module, std::string name,
            const translate::Code& code, bool is_metered, codegen::Image begun, ImageSource from,
            Keep keep);

    // Reads words of the code memory that the run has, from a position on.
    using ReadCode = std::function<Result<void>(u32 position, std::span<u64> words)>;
    // Counts what threads did in the time `ran`, makes quick code of the functions that they were
    // in, and begins to compile what is worth it. `begin` is where the module's code lies.
    void saw(const device::Activity& activity, u32 begin, std::chrono::nanoseconds ran,
             const ReadCode& read);
    // Lets runs load everything that was compiled, hot or not.
    void want_all();
    // The part of the machine code that a run has.
    struct CodeOfRun {
        std::vector<std::shared_ptr<const device::NativeCode>> parts;  // the new ones
        usize count = 0;                                               // of all
        u32 functions = 0;                                             // of all, less quick code
    };
    // Loads what is worth it, unless another run has, and adds it to what this run has. Returns
    // true if that is more than before.
    bool take(device::Device& device, CodeOfRun& taken);
    ~HotCode();
    // Stops compiling, and writes what there is into the cache.
    void give_up();

    u32 function_count() const { return u32(code_begins_.size()) - imported_; }
    // Return how long compiling took so far, and where most of the machine code is from.
    codegen::Image::Times seconds();
    ImageSource source();

private:
    struct Piece {
        codegen::Image image;  // with this piece alone
        u64 heat = 0;          // nanoseconds
        bool is_wanted = false, is_loaded = false;
    };
    struct LoadedPiece {
        std::shared_ptr<const device::NativeCode> code;
        u32 functions;  // 0: quick code
    };
    enum class State : u8 { cold, begun, compiled, refused };
    struct Function {
        u64 heat = 0;  // nanoseconds that it was seen to run without LLVM's code
        u32 piece = 0;
        State state = State::cold;
        bool is_quick = false;
    };
    struct Compilation;

    u32 words_of(u32 func) const;
    std::optional<u32> function_at(u32 position) const;
    u64 patience(u32 func) const;
    void heat(u32 func, u64 time);
    void make_quick(u32 func, u32 begin, const ReadCode& read);
    Result<std::vector<u32>> add_quick(u32 func, u32 begin, const ReadCode& read);
    void take_quick();
    void add(codegen::Image::Piece piece);
    std::vector<u32> choose();
    void work();
    void begin_work();
    void save();
    codegen::Image all_there_is() const;

    const std::shared_ptr<const wasm::Module> module_;
    const std::string name_;
    const bool is_metered_;
    const u32 imported_;
    const ImageSource from_;
    const Keep keep_;
    std::vector<u32> code_begins_;  // by function
    u32 code_end_;
    std::atomic<bool> is_given_up_ = false;

    std::once_flag once_;  // for compilation_
    std::mutex saving_;    // is taken before the next
    std::mutex mutex_;
    std::vector<Function> functions_;
    std::vector<Piece> pieces_;
    std::vector<LoadedPiece> loaded_;
    std::shared_ptr<const device::NativeCode> first_image_;  // of these
    std::shared_ptr<codegen::QuickCode> quick_;
    std::vector<codegen::QuickCode::Function> new_quick_;  // that nobody has taken
    bool has_quick_;                                       // or may have
    bool has_hot_ = false;  // some that nobody compiles yet may be hot
    std::unique_ptr<Compilation> compilation_;
    std::chrono::steady_clock::time_point last_save_;
    codegen::Image::Times seconds_;
    u32 workers_ = 0;
    usize kept_ = 0;  // pieces that the cache has
    bool has_failed_ = false;
};

}  // namespace gpurun::engine
