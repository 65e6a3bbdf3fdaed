// Counts where time is spent, and compares it with the time that compiling and linking take.
#include "engine/hot_code.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/notes.h"
#include "base/phases.h"
#include "base/threads.h"
#include "engine/beside.h"
#include "translate/print.h"

namespace gpurun::engine {
namespace {

constexpr u64 microsecond = 1000, millisecond = 1'000'000;

// A function is compiled once it was seen to run for an eighth of the time that compiling takes:
// the compiler usually has a core of its own, and a program that has run for so long usually goes
// on for longer.
constexpr u64 compile_patience = 3 * millisecond, compile_patience_for_word = 20 * microsecond;
// A compiled piece is linked once the interpreter has spent as much time on it as linking takes.
constexpr u64 link_patience = millisecond, link_patience_for_byte = 4;
// Words of code that become quick code at a time, which takes some hundred microseconds.
constexpr u64 most_quick_words = 4'000;
// The time that it takes to leave machine code for a function that has none, and to come back.
constexpr u64 miss_cost = microsecond;
// The largest piece. Functions that are hot at the same time become one piece, in which they call
// each other directly.
constexpr u64 most_piece_words = 4'000;
// How often the cache is written. If gpu-run is killed, no more than this is lost.
constexpr std::chrono::seconds between_saves(2);

}  // namespace

// What threads need to compile. The first of them makes it.
struct HotCode::Compilation {
    const translate::Code code;
    const std::unique_ptr<const codegen::Compiler> compiler;

    Compilation(const wasm::Module& module, translate::Code translated)
        : code(std::move(translated)), compiler(codegen::Compiler::make(module, code)) {}
};

HotCode::HotCode(std::shared_ptr<const wasm::Module> module, std::string name,
                 const translate::Code& code, bool is_metered, codegen::Image begun,
                 ImageSource from, Keep keep)
    : module_(std::move(module)),
      name_(std::move(name)),
      is_metered_(is_metered),
      imported_(module_->imported_funcs),
      from_(from),
      keep_(std::move(keep)),
      code_begins_(code.entries),
      code_end_(code.instantiate),
      functions_(module_->funcs.size()),
      has_quick_(codegen::QuickCode::is_available()) {
    for (codegen::Image::Piece& piece : begun.pieces) add(std::move(piece));
    kept_ = pieces_.size();
    last_save_ = std::chrono::steady_clock::now();
}

HotCode::~HotCode() = default;

u32 HotCode::words_of(u32 func) const {
    const u32 end = func + 1 < code_begins_.size() ? code_begins_[func + 1] : code_end_;
    return end - code_begins_[func];
}

std::optional<u32> HotCode::function_at(u32 position) const {
    const auto own = code_begins_.begin() + imported_;
    const auto after = std::upper_bound(own, code_begins_.end(), position);
    if (after == own || position >= code_end_) return std::nullopt;
    return u32(after - code_begins_.begin()) - 1;
}

u64 HotCode::patience(u32 func) const {
    return compile_patience + words_of(func) * compile_patience_for_word;
}

void HotCode::add(codegen::Image::Piece piece) {
    Piece made;
    for (u32 func : piece.functions) {
        Function& function = functions_[func];
        if (function.state == State::compiled) return;  // it has one of them already
        made.heat += function.heat;
    }
    for (u32 func : piece.functions)
        functions_[func] = {functions_[func].heat, u32(pieces_.size()), State::compiled,
                            functions_[func].is_quick};
    made.image.all_functions = u32(functions_.size());
    made.image.functions = u32(piece.functions.size());
    made.image.pieces.push_back(std::move(piece));
    pieces_.push_back(std::move(made));
}

void HotCode::heat(u32 func, u64 time) {
    Function& function = functions_[func];
    function.heat += time;
    has_hot_ |= function.state == State::cold && function.heat >= patience(func);
    if (function.state != State::compiled) return;
    Piece& piece = pieces_[function.piece];
    piece.heat += time;
    piece.is_wanted |=
        piece.heat >= link_patience + piece.image.pieces[0].object.size() * link_patience_for_byte;
}

// Makes quick code of one function. Returns the functions that it calls.
Result<std::vector<u32>> HotCode::add_quick(u32 func, u32 begin, const ReadCode& read) {
    if (!quick_) quick_ = TRY(codegen::QuickCode::make(code_end_));
    std::vector<u64> words(words_of(func));
    TRY(read(begin + code_begins_[func], words));
    new_quick_.push_back(TRY(quick_->add(words, code_begins_[func])));
    std::vector<u32> callees;
    for (u32 at = 0; at < words.size(); at += translate::code_size(words[at])) {
        if (CodeOp(op_of(words[at])) != CodeOp::call) continue;
        if (auto callee = function_at(code_begins_[func] + at + imm_of(words[at])))
            callees.push_back(*callee);
    }
    return callees;
}

// Makes quick code of a function and of those that it calls, with the lock held, up to an amount
// whose time nobody notices. Functions for which that fails stay interpreted.
void HotCode::make_quick(u32 func, u32 begin, const ReadCode& read) {
    PhaseTimer timer(Phase::compile);
    std::vector<u32> wanted = {func};
    u64 words = 0;
    for (usize i = 0; i < wanted.size() && words < most_quick_words && has_quick_; i++) {
        Function& function = functions_[wanted[i]];
        if (std::exchange(function.is_quick, true)) continue;
        if (function.state == State::compiled && pieces_[function.piece].is_loaded) continue;
        words += words_of(wanted[i]);
        auto callees = guarded([&] { return add_quick(wanted[i], begin, read); });
        if (callees)
            wanted.insert(wanted.end(), callees->begin(), callees->end());
        else
            has_quick_ = false;
    }
}

void HotCode::take_quick() {
    if (new_quick_.empty()) return;
    loaded_.push_back({device::use_quick_code(quick_, std::exchange(new_quick_, {})), 0});
}

void HotCode::saw(const device::Activity& activity, u32 begin, std::chrono::nanoseconds ran,
                  const ReadCode& read) {
    // This thread does not wait for the lock: a thread that compiles may have it, and no core to
    // run on.
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return;
    std::optional<u32> here;
    if (activity.position >= begin) here = function_at(activity.position - begin);
    if (here) heat(*here, u64(ran.count()));
    if (here) make_quick(*here, begin, read);
    for (u32 callee : activity.missed) {
        const auto func = callee >= begin ? function_at(callee - begin) : std::nullopt;
        if (!func) continue;
        heat(*func, activity.misses * miss_cost / activity.missed.size());
        make_quick(*func, begin, read);
    }
    begin_work();
}

void HotCode::want_all() {
    std::lock_guard lock(mutex_);
    for (Piece& piece : pieces_) piece.is_wanted = true;
}

bool HotCode::take(device::Device& device, CodeOfRun& taken) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    take_quick();
    for (Piece& piece : pieces_) {
        if (!piece.is_wanted || std::exchange(piece.is_loaded, true)) continue;
        PhaseTimer timer(Phase::link);
        auto made = device.load_native(piece.image, codegen::Target::host, first_image_.get());
        if (!made) {
            if (!std::exchange(has_failed_, true))
                note(name_ +
                     ": interpreted, its machine code cannot be used: " + made.error().to_string());
            continue;
        }
        if (!first_image_) first_image_ = *made;
        loaded_.push_back({std::move(*made), piece.image.functions});
    }
    if (taken.count == loaded_.size()) return false;
    taken.parts.clear();
    for (; taken.count < loaded_.size(); taken.count++) {
        taken.parts.push_back(loaded_[taken.count].code);
        taken.functions += loaded_[taken.count].functions;
    }
    return true;
}

// Chooses the functions of the next piece, with the lock held: those that gain most for their cost.
std::vector<u32> HotCode::choose() {
    std::vector<u32> hot;
    for (u32 func = imported_; func < functions_.size(); func++) {
        Function& function = functions_[func];
        if (function.state != State::cold || function.heat < patience(func)) continue;
        if (!compilation_->compiler->can_compile(func)) {
            function.state = State::refused;
            continue;
        }
        hot.push_back(func);
    }
    std::ranges::sort(hot, [&](u32 a, u32 b) {
        return functions_[a].heat * patience(b) > functions_[b].heat * patience(a);
    });
    u64 words = 0;
    usize count = 0;
    for (; count < hot.size() && words < most_piece_words; count++) words += words_of(hot[count]);
    has_hot_ = count < hot.size();
    hot.resize(count);
    std::ranges::sort(hot);
    return hot;
}

// Starts a thread if there is something for it to do, with the lock held.
void HotCode::begin_work() {
    const u32 most = std::max(2u, std::thread::hardware_concurrency()) - 1;
    if (workers_ >= most || has_failed_ || is_given_up_ || !has_hot_) return;
    workers_++;
    Result<void> begun = guarded([&] {
        return begin_beside([self = shared_from_this()] {
            (void)guarded([&]() -> Result<void> {
                self->work();
                return {};
            });
            std::lock_guard lock(self->mutex_);
            self->workers_--;
        });
    });
    if (begun) return;
    workers_--;
    has_failed_ = true;
    note(name_ + ": it stays in the interpreter: " + begun.error().to_string());
}

void HotCode::work() {
    auto is_over = [&] { return is_given_up_ || is_program_ending(); };
    auto fail = [&](const Error& error) {
        std::lock_guard lock(mutex_);
        if (!std::exchange(has_failed_, true))
            note(name_ + ": it stays in the interpreter: " + error.to_string());
    };
    std::call_once(once_, [&] {
        translate::Options options;
        options.metered = is_metered_;
        Result<translate::Code> code = translate::translate(*module_, options);
        CHECK(code.ok());  // it was translated before
        compilation_ = std::make_unique<Compilation>(*module_, std::move(*code));
    });
    while (!is_over()) {
        std::vector<u32> functions;
        {
            std::lock_guard lock(mutex_);
            functions = choose();
            for (u32 func : functions) functions_[func].state = State::begun;
        }
        if (functions.empty()) break;
        PhaseTimer timer(Phase::compile);
        codegen::Image::Times seconds;
        Result<codegen::Image::Piece> piece = compilation_->compiler->compile(functions, seconds);
        if (!piece) return fail(piece.error());
        bool is_due;
        {
            std::lock_guard lock(mutex_);
            add(std::move(*piece));
            pieces_.back().is_wanted = true;
            seconds_.build += seconds.build;
            seconds_.optimise += seconds.optimise;
            seconds_.emit += seconds.emit;
            is_due = std::chrono::steady_clock::now() - last_save_ >= between_saves;
        }
        if (is_due) save();
    }
    save();
}

codegen::Image HotCode::all_there_is() const {
    codegen::Image image;
    image.all_functions = u32(functions_.size());
    for (const Piece& piece : pieces_) image.pieces.push_back(piece.image.pieces[0]);
    for (u32 func = imported_; func < functions_.size(); func++) {
        const State state = functions_[func].state;
        (state == State::compiled  ? image.functions
         : state == State::refused ? image.interpreted
                                   : image.missing)++;
    }
    return image;
}

// Writes all pieces into the cache, if there are new ones.
void HotCode::save() {
    std::lock_guard saving(saving_);
    codegen::Image image;
    {
        std::lock_guard lock(mutex_);
        if (pieces_.size() == kept_) return;
        kept_ = pieces_.size();
        last_save_ = std::chrono::steady_clock::now();
        image = all_there_is();
    }
    keep_(image);
}

void HotCode::give_up() {
    is_given_up_ = true;
    (void)guarded([&]() -> Result<void> {
        save();
        return {};
    });
}

codegen::Image::Times HotCode::seconds() {
    std::lock_guard lock(mutex_);
    return seconds_;
}

ImageSource HotCode::source() { return seconds().emit > 0 ? ImageSource::compiled : from_; }

}  // namespace gpurun::engine
