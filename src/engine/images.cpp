// Looks for an image in the file that the module came in, then in the cache. Compiles it, on
// threads of its own (engine/beside.h), if it is in neither.
#include "engine/images.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/notes.h"
#include "base/phases.h"
#include "base/threads.h"
#include "cache/cache.h"
#include "engine/beside.h"

namespace gpurun::engine {
namespace {

// Returns the key of a module's image in the cache. It has the whole module, so that no other one
// can be mistaken for it.
std::string cache_key(const wasm::Module& module, codegen::Target target, bool is_metered) {
    std::string key = "native " + codegen::target_key(target) + (is_metered ? " metered " : " ");
    key.append(module.bytes.begin(), module.bytes.end());
    return key;
}

cache::Cache default_cache() { return cache::Cache(cache::Cache::default_folder()); }

// Returns why a shipped image cannot be used here, or nothing if it can.
std::string unfit(const ShippedImage& image) {
    if (image.key != codegen::target_key(image.target, image.cpu))
        return "it was made by another version of gpu-run";
    if (image.target != codegen::Target::host) return "";
    Result<std::string> missing = codegen::missing_features(image.cpu);
    if (!missing) return missing.error().to_string();
    return missing->empty() ? "" : "this CPU lacks " + *missing;
}

// Returns how long a module is interpreted before it is compiled. On the CPU the compiler takes
// time from the program: so that little is lost if the program ends soon, it has run by then for
// half as long as compiling may take.
std::chrono::nanoseconds patience(const wasm::Module& module, codegen::Target target) {
    constexpr std::chrono::nanoseconds least = std::chrono::milliseconds(100),
                                       for_byte = std::chrono::microseconds(80);
    if (target != codegen::Target::host) return least;
    u64 bytes = 0;
    for (const wasm::Func& func : module.funcs) bytes += func.end - func.body;
    const u32 cores = std::max(1u, std::thread::hardware_concurrency());
    return std::max(least, for_byte * s64(bytes) / s64(cores) / 2);
}

}  // namespace

Images::Images(std::shared_ptr<const wasm::Module> module, std::string name,
               std::vector<ShippedImage> shipped)
    : shared_(std::make_shared<Shared>()) {
    shared_->module = std::move(module);
    shared_->name = std::move(name);
    shared_->shipped = std::move(shipped);
}

void Images::allow_shipped() {
    std::lock_guard lock(shared_->mutex);
    shared_->may_use_shipped = true;
}

Images::~Images() {
    shared_->is_given_up = true;
    for (const std::shared_ptr<HotCode>& hot : shared_->hot)
        if (hot) hot->give_up();
}

Images::Row* Images::Shared::row(codegen::Target target, bool is_metered) {
    for (Row& row : rows)
        if (row.target == target && row.is_metered == is_metered) return &row;
    return nullptr;
}

std::shared_ptr<const FoundImage> Images::Shared::add(codegen::Target target, bool is_metered,
                                                      codegen::Image image, ImageSource source) {
    auto found = std::make_shared<const FoundImage>(std::move(image), source);
    if (Row* begun = row(target, is_metered))
        begun->found = found;
    else
        rows.push_back({target, is_metered, found, nullptr, std::nullopt});
    return found;
}

std::shared_ptr<const FoundImage> Images::Shared::find_shipped(codegen::Target target,
                                                               const translate::Code& code) {
    for (usize i = 0; i < shipped.size(); i++) {
        if (shipped[i].target != target) continue;
        if (!may_use_shipped) {
            if (was_shipped_noted) return nullptr;
            was_shipped_noted = true;
            note(name +
                 ": its machine code is not used, since nothing checks what it does; "
                 "--allow-precompiled trusts it");
            return nullptr;
        }
        const ShippedImage image = std::move(shipped[i]);
        shipped.erase(shipped.begin() + s64(i));  // looked at once
        std::string problem = unfit(image);
        if (problem.empty()) {
            auto read = codegen::from_bytes(image.bytes, u32(code.words.size()));
            if (read && read->all_functions == module->funcs.size())
                return add(target, false, std::move(*read), ImageSource::file);
            problem = read ? "it is another module's" : read.error().to_string();
        }
        note(name + ": its machine code for " + codegen::name_of(target) +
             " is not used: " + problem);
        return nullptr;
    }
    return nullptr;
}

std::shared_ptr<const FoundImage> Images::Shared::find(codegen::Target target, bool is_metered,
                                                       const translate::Code& code) {
    std::lock_guard lock(mutex);
    if (const Row* there = row(target, is_metered); there && there->found) return there->found;
    PhaseTimer timer(Phase::compile);
    if (!is_metered)
        if (auto found = find_shipped(target, code)) return found;
    std::optional<codegen::Image> image = find_kept(target, is_metered, code);
    if (!image || image->missing > 0) return nullptr;
    return add(target, is_metered, std::move(*image), ImageSource::cache);
}

// Returns the image that the cache has, which may lack functions.
std::optional<codegen::Image> Images::Shared::find_kept(codegen::Target target, bool is_metered,
                                                        const translate::Code& code) {
    const std::string key = cache_key(*module, target, is_metered);
    std::optional<std::vector<u8>> kept = default_cache().get(key);
    if (!kept) return std::nullopt;
    Result<codegen::Image> image = codegen::from_bytes(*kept, u32(code.words.size()));
    if (image && image->all_functions == module->funcs.size()) return std::move(*image);
    default_cache().drop(key, image ? "it is another module's" : image.error().message.c_str());
    return std::nullopt;
}

Result<std::shared_ptr<const FoundImage>> Images::Shared::compile(const CompileJob& job) {
    translate::Options translating;
    translating.metered = job.is_metered;
    const translate::Code code = TRY(translate::translate(*module, translating));
    std::shared_ptr<const FoundImage> found = find(job.target, job.is_metered, code);
    if (!found) {
        PhaseTimer timer(Phase::compile);
        codegen::Options options;
        options.target = job.target;
        options.is_nice = job.is_nice;
        options.is_cancelled = [&job, this] { return is_unwanted(job); };
        if (!job.is_nice) options.has_progress = tell_compiled;
        codegen::Image begun;
        if (job.target == codegen::Target::host)
            begun = find_kept(job.target, job.is_metered, code).value_or(codegen::Image());
        codegen::Image image = TRY(codegen::compile(*module, code, options, std::move(begun)));
        found = std::make_shared<const FoundImage>(std::move(image), ImageSource::compiled);
        default_cache().put(cache_key(*module, job.target, job.is_metered),
                            codegen::to_bytes(found->image), name);
    }
    if (job.assemble && !is_unwanted(job)) job.assemble(found->image);
    return found;
}

bool Images::Shared::is_unwanted(const CompileJob& job) const {
    return is_given_up || job.is_unwanted || is_program_ending();
}

// Begins to make an image, with the lock held. A failure is written into its row.
void Images::begin(codegen::Target target, bool is_metered, bool is_nice,
                   device::Assembler assemble) {
    auto job = std::make_shared<CompileJob>();
    job->target = target;
    job->is_metered = is_metered;
    job->is_nice = is_nice;
    job->assemble = std::move(assemble);
    shared_->rows.push_back({target, is_metered, nullptr, job, std::nullopt});
    auto work = [shared = shared_, job] {
        auto image = guarded([&] { return shared->compile(*job); });
        std::lock_guard lock(shared->mutex);
        Row* row = shared->row(job->target, job->is_metered);
        if (!row || row->job != job) return;  // nobody waits for it
        row->job.reset();
        row->is_assembled = true;
        if (image)
            row->found = *image;
        else
            row->problem = std::move(image).error();
        shared->changed.notify_all();
    };
    Result<void> begun = guarded([&] { return begin_beside(work); });
    if (begun) return;
    shared_->rows.back().job.reset();
    shared_->rows.back().problem = std::move(begun).error();
}

std::shared_ptr<const FoundImage> Images::find(codegen::Target target, bool is_metered,
                                               const translate::Code& code) {
    return shared_->find(target, is_metered, code);
}

Result<std::shared_ptr<const FoundImage>> Images::get(codegen::Target target, bool is_metered,
                                                      const device::RunControl& control,
                                                      device::Assembler assemble) {
    constexpr std::chrono::milliseconds look(20);  // at the stop request
    std::unique_lock lock(shared_->mutex);
    Row* row = shared_->row(target, is_metered);
    if (row && row->problem) {
        shared_->rows.erase(shared_->rows.begin() + (row - shared_->rows.data()));
        row = nullptr;  // the reason for the failure may be gone
    }
    // An image that was found, not made, may not have been assembled yet.
    if (row && row->found && !row->job && assemble) {
        auto found = row->found;
        lock.unlock();
        const bool is_done =
            TRY(run_beside([found, assemble] { assemble(found->image); }, control));
        return is_done ? found : nullptr;
    }
    for (;;) {
        // There is none, or another thread that waited for it has given it up.
        if (!shared_->row(target, is_metered)) begin(target, is_metered, false, assemble);
        row = shared_->row(target, is_metered);
        if (row->found && !row->job) return row->found;
        if (row->problem) return *row->problem;
        if (control.wants_stop()) {
            row->job->is_unwanted = true;
            shared_->rows.erase(shared_->rows.begin() + (row - shared_->rows.data()));
            return std::shared_ptr<const FoundImage>();
        }
        shared_->changed.wait_for(lock, look);
    }
}

std::shared_ptr<HotCode> Images::hot(bool is_metered, const translate::Code& code) {
    const codegen::Target target = codegen::Target::host;
    std::lock_guard lock(shared_->mutex);
    std::shared_ptr<HotCode>& hot = shared_->hot[is_metered];
    if (hot) return hot;
    PhaseTimer timer(Phase::compile);
    codegen::Image begun;
    std::shared_ptr<const FoundImage> whole;
    if (const Row* there = shared_->row(target, is_metered)) whole = there->found;
    if (!whole && !is_metered) whole = shared_->find_shipped(target, code);
    const ImageSource from = whole ? whole->source : ImageSource::cache;
    if (whole)
        begun = whole->image;
    else if (auto kept = shared_->find_kept(target, is_metered, code))
        begun = std::move(*kept);
    auto keep = [module = shared_->module, name = shared_->name,
                 is_metered](const codegen::Image& image) {
        default_cache().put(cache_key(*module, codegen::Target::host, is_metered),
                            codegen::to_bytes(image), name);
    };
    return hot = std::make_shared<HotCode>(shared_->module, shared_->name, code, is_metered,
                                           std::move(begun), from, std::move(keep));
}

std::shared_ptr<const FoundImage> Images::await(codegen::Target target, bool is_metered,
                                                std::chrono::nanoseconds ran,
                                                device::Assembler assemble) {
    std::lock_guard lock(shared_->mutex);
    shared_->ran += ran;
    Row* begun = shared_->row(target, is_metered);
    if (begun && begun->found && !begun->job && !begun->is_assembled && assemble) {
        shared_->rows.erase(shared_->rows.begin() + (begun - shared_->rows.data()));
        begin(target, is_metered, false, std::move(assemble));
        return nullptr;
    }
    if (begun) {
        // The run goes on without machine code, with a note.
        if (begun->problem && !std::exchange(begun->is_told, true))
            note(shared_->name + ": it goes on without machine code for " +
                 codegen::name_of(target) + ": " + begun->problem->to_string());
        return begun->job ? nullptr : begun->found;
    }
    if (shared_->ran < patience(*shared_->module, target)) return nullptr;
    // For the host the compiler gets a lower priority: the program runs on the same cores.
    begin(target, is_metered, target == codegen::Target::host, std::move(assemble));
    return nullptr;
}

void Images::has_run(std::chrono::nanoseconds ran) {
    std::lock_guard lock(shared_->mutex);
    shared_->ran += ran;
}

}  // namespace gpurun::engine
