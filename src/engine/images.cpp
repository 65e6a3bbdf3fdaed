// Looks for an image in the file that the module came in, then in the cache; compiles what is
// nowhere. Threads that do so beside a run are nobody's to wait for, until the program ends.
#include "engine/images.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <thread>

#include "base/notes.h"
#include "base/phases.h"
#include "image/cache.h"

namespace gpurun::engine {
namespace {

// The whole module: nobody can make another that is taken for it.
std::string cache_key(const wasm::Module& module, codegen::Target target, bool is_metered) {
    std::string key = "native " + codegen::target_key(target) + (is_metered ? " metered " : " ");
    key.append(module.bytes.begin(), module.bytes.end());
    return key;
}

image::Cache cache() { return image::Cache(image::Cache::default_folder()); }

// Why an image that was shipped is of no use here. Empty: it is.
std::string unfit(const ShippedImage& image) {
    if (image.key != codegen::target_key(image.target, image.cpu))
        return "it was made by another version of gpu-run";
    if (image.target != codegen::Target::host) return "";
    Result<std::string> missing = codegen::missing_features(image.cpu);
    if (!missing) return missing.error().to_string();
    return missing->empty() ? "" : "this CPU lacks " + *missing;
}

// How long a module is interpreted before anybody compiles it. On the CPU compiling takes from what
// runs there: so that it is no great loss if that ends soon, it has run by then for half as long as
// compiling may take.
std::chrono::nanoseconds patience(const wasm::Module& module, codegen::Target target) {
    constexpr std::chrono::nanoseconds least = std::chrono::milliseconds(100),
                                       for_byte = std::chrono::microseconds(80);
    if (target != codegen::Target::host) return least;
    u64 bytes = 0;
    for (const wasm::Func& func : module.funcs) bytes += func.end - func.body;
    const u32 cores = std::max(1u, std::thread::hardware_concurrency());
    return std::max(least, for_byte * s64(bytes) / s64(cores) / 2);
}

// All threads that compile beside something. Never gone: they may be the last.
struct Compilers {
    std::mutex mutex;
    std::condition_variable changed;
    u32 count = 0;
    std::atomic<bool> is_ending = false;
};
Compilers& compilers() {
    static Compilers& all = *new Compilers;
    return all;
}

// Ends: each compiles one piece more at the most.
void await_compilers() {
    Compilers& all = compilers();
    all.is_ending = true;
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return all.count == 0; });
}

// LLVM makes static things whenever it needs them, and they go when the program ends, the newest
// first: before any handler that was there when a thread began to compile. What is local to the
// thread that ends the program goes earlier than all of them; that thread is the first, as a rule.
void await_compilers_at_end() {
    struct AtEnd {
        ~AtEnd() { await_compilers(); }
    };
    if (gettid() != getpid()) return;
    thread_local AtEnd at_end;
}
[[maybe_unused]] const bool is_awaited_at_end = (await_compilers_at_end(), true);

}  // namespace

Images::Images(std::shared_ptr<const wasm::Module> module, std::string name,
               std::vector<ShippedImage> shipped)
    : made_(std::make_shared<Made>()) {
    made_->module = std::move(module);
    made_->name = std::move(name);
    made_->shipped = std::move(shipped);
}

Images::~Images() { made_->is_given_up = true; }

Images::Row* Images::Made::row(codegen::Target target, bool is_metered) {
    for (Row& row : rows)
        if (row.target == target && row.is_metered == is_metered) return &row;
    return nullptr;
}

std::shared_ptr<const FoundImage> Images::Made::add(codegen::Target target, bool is_metered,
                                                    codegen::Image image, ImageSource source) {
    auto found = std::make_shared<const FoundImage>(std::move(image), source);
    if (Row* begun = row(target, is_metered))
        begun->found = found;
    else
        rows.push_back({target, is_metered, found});
    return found;
}

std::shared_ptr<const FoundImage> Images::Made::find_shipped(codegen::Target target,
                                                             const translate::Code& code) {
    for (usize i = 0; i < shipped.size(); i++) {
        if (shipped[i].target != target) continue;
        const ShippedImage image = std::move(shipped[i]);
        shipped.erase(shipped.begin() + s64(i));  // looked at once
        std::string problem = unfit(image);
        if (problem.empty()) {
            auto read = codegen::from_bytes(image.bytes, u32(code.words.size()));
            if (read) return add(target, false, std::move(*read), ImageSource::file);
            problem = read.error().to_string();
        }
        note(name + ": its machine code for " + codegen::name_of(target) +
             " is not used: " + problem);
        return nullptr;
    }
    return nullptr;
}

std::shared_ptr<const FoundImage> Images::Made::find(codegen::Target target, bool is_metered,
                                                     const translate::Code& code) {
    std::lock_guard lock(mutex);
    if (const Row* there = row(target, is_metered); there && there->found) return there->found;
    PhaseTimer timer(Phase::compile);
    if (!is_metered)
        if (auto found = find_shipped(target, code)) return found;
    const std::string key = cache_key(*module, target, is_metered);
    std::optional<std::vector<u8>> kept = cache().get(key);
    if (!kept) return nullptr;
    Result<codegen::Image> image = codegen::from_bytes(*kept, u32(code.words.size()));
    if (image) return add(target, is_metered, std::move(*image), ImageSource::cache);
    cache().drop(key, image.error().message.c_str());
    return nullptr;
}

Result<std::shared_ptr<const FoundImage>> Images::Made::compile(codegen::Target target,
                                                                bool is_metered,
                                                                const translate::Code& code,
                                                                bool is_beside,
                                                                const device::Assembler& assemble) {
    if (auto found = find(target, is_metered, code)) return found;
    PhaseTimer timer(Phase::compile);
    codegen::Options options;
    options.target = target;
    if (is_beside) {
        options.is_nice = target == codegen::Target::host;  // which runs what is interpreted
        options.is_cancelled = [this] { return is_given_up || compilers().is_ending; };
    }
    codegen::Image image = TRY(codegen::compile(*module, code, options));
    if (assemble && !is_given_up && !compilers().is_ending) assemble(image);
    std::shared_ptr<const FoundImage> found;
    {
        std::lock_guard lock(mutex);
        found = add(target, is_metered, std::move(image), ImageSource::compiled);
    }
    cache().put(cache_key(*module, target, is_metered), codegen::to_bytes(found->image));
    return found;
}

std::shared_ptr<const FoundImage> Images::find(codegen::Target target, bool is_metered,
                                               const translate::Code& code) {
    return made_->find(target, is_metered, code);
}

Result<std::shared_ptr<const FoundImage>> Images::get(codegen::Target target, bool is_metered,
                                                      const translate::Code& code) {
    return made_->compile(target, is_metered, code, false, {});
}

// The thread's work. What went wrong is no fault of the run: that goes on as it was.
void Images::make_beside(const std::shared_ptr<Made>& made, codegen::Target target, bool is_metered,
                         const device::Assembler& assemble) {
    translate::Options options;
    options.metered = is_metered;
    Result<translate::Code> code = translate::translate(*made->module, options);
    Result<void> done;
    if (!code) {
        done = code.error();
    } else if (auto image = made->compile(target, is_metered, *code, true, assemble); !image) {
        done = image.error();
    }
    if (!done && !made->is_given_up && !compilers().is_ending)
        note(made->name + ": it stays in the interpreter: " + done.error().to_string());
}

std::shared_ptr<const FoundImage> Images::await(codegen::Target target, bool is_metered,
                                                std::chrono::nanoseconds ran,
                                                device::Assembler assemble) {
    std::lock_guard lock(made_->mutex);
    made_->ran += ran;
    if (const Row* begun = made_->row(target, is_metered)) return begun->found;
    if (made_->ran < patience(*made_->module, target)) return nullptr;
    made_->rows.push_back({target, is_metered, nullptr});
    Compilers& all = compilers();
    {
        std::lock_guard one_more(all.mutex);
        all.count++;
    }
    // For programs that another thread ends. Once more each time: so it comes before the end of
    // whatever LLVM has made by then.
    std::atexit(await_compilers);
    await_compilers_at_end();
    std::thread([made = made_, target, is_metered, assemble = std::move(assemble)]() mutable {
        make_beside(made, target, is_metered, assemble);
        made.reset();
        Compilers& all = compilers();
        std::lock_guard one_less(all.mutex);
        all.count--;
        all.changed.notify_all();
    }).detach();
    return nullptr;
}

bool is_compiling() {
    std::lock_guard lock(compilers().mutex);
    return compilers().count > 0;
}

}  // namespace gpurun::engine
