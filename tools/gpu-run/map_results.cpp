// Puts the outputs of map's processes where they belong: one after another to standard output, or
// each to a file. A file has its name only once it is whole.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "attempt.h"
#include "base/format.h"
#include "base/hash.h"
#include "journal.h"
#include "map.h"
#include "output.h"

namespace gpurun::tool {
namespace {

namespace fs = std::filesystem;

class PrintedResults final : public Results {
public:
    Result<void> put(const Input&, const InputResult& ending) override {
        if (!print(ending.output())) return Error{""};  // finish_output says why
        return {};
    }
    Result<void> flush() override {
        if (finish_output(0) != 0) return Error{""};
        return {};
    }
    std::optional<EarlierResult> find_earlier(const std::string&) const override {
        return std::nullopt;
    }
    std::string failure_list() const override { return ""; }
};

// DIR/NAME, DIR/NAME.files; and below DIR/.gpu-run the journal, what failed processes wrote, and
// what is being written.
class StoredResults final : public Results {
public:
    StoredResults(std::string folder, int descriptor, Journal journal, const MapOptions& options)
        : folder_(std::move(folder)),
          descriptor_(descriptor),
          journal_(std::move(journal)),
          resumes_(options.resumes) {}
    ~StoredResults() override { close(descriptor_); }

    Result<void> put(const Input& input, const InputResult& ending) override {
        bool is_done = ending.state == InputResult::State::done;
        // What an earlier run left under the names that this one does not write.
        if (!is_done) TRY(remove(input.name));
        if (resumes_ && is_done) TRY(remove(failed_name(input.name)));
        if (ending.has_files) TRY(write_files(input.name, (*ending.result)[ending.process]));
        if (is_done || !ending.output().empty())
            TRY(write(is_done ? input.name : failed_name(input.name), ending.output()));
        if (is_done) {
            journal_.note_done(input.name, input.mark);
        } else {
            journal_.note_failed(input.name, ending.why);
        }
        return {};
    }

    Result<void> flush() override { return journal_.flush(); }

    std::optional<EarlierResult> find_earlier(const std::string& name) const override {
        const std::optional<std::string_view> mark = journal_.mark_of(name);
        struct stat info;
        if (!mark || fstatat(descriptor_, name.c_str(), &info, 0) != 0) return std::nullopt;
        return EarlierResult{std::string(*mark),
                             s64(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
    }

    std::string failure_list() const override { return folder_ + "/" + map_folder + "/journal"; }

private:
    static std::string inner(const std::string& name) {
        return std::string(map_folder) + "/" + name;
    }
    static std::string failed_name(const std::string& name) { return inner("failed/" + name); }

    Error error(const std::string& name) const {
        int problem = errno;
        std::string text = folder_ + "/" + name + ": " + std::strerror(problem);
        if (problem == ENOSPC || problem == EDQUOT)
            text += "; what is there is whole, and --resume goes on when there is room";
        return Error{text};
    }

    Result<void> remove(const std::string& name) const {
        if (unlinkat(descriptor_, name.c_str(), 0) != 0 && errno != ENOENT && errno != ENOTDIR)
            return error(name);
        return {};
    }

    Result<void> write(const std::string& name, std::string_view text) const {
        const std::string partial = inner("partial");
        int file =
            openat(descriptor_, partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        if (file < 0) return error(partial);
        bool is_written = true;
        while (is_written && !text.empty()) {
            ssize_t count = ::write(file, text.data(), text.size());
            if (count > 0) text.remove_prefix(usize(count));
            is_written = count > 0 || (count < 0 && errno == EINTR);
        }
        int problem = errno;
        if (close(file) != 0 && is_written) {
            is_written = false;
            problem = errno;
        }
        errno = problem;
        Result<void> moved = is_written ? move(partial, name) : Result<void>(error(name));
        if (!moved) unlinkat(descriptor_, partial.c_str(), 0);
        return moved;
    }

    // To a place that is made if need be.
    Result<void> move(const std::string& from, const std::string& to) const {
        auto rename = [&] {
            return renameat(descriptor_, from.c_str(), descriptor_, to.c_str()) == 0;
        };
        if (rename()) return {};
        if (errno != ENOENT) return error(to);
        for (usize at = to.find('/'); at != to.npos; at = to.find('/', at + 1)) {
            std::string outer = to.substr(0, at);
            if (mkdirat(descriptor_, outer.c_str(), 0777) != 0 && errno != EEXIST)
                return error(outer);
        }
        if (!rename()) return error(to);
        return {};
    }

    Result<void> write_files(const std::string& name, const api::Process& process) const {
        const std::string partial = inner("partial.files"), place = name + changed_suffix;
        std::error_code problem;
        for (const std::string& old : {partial, place}) {
            fs::remove_all(folder_ + "/" + old, problem);
            if (problem) return Error{folder_ + "/" + old + ": " + problem.message()};
        }
        TRY(attempt([&] { process.store_files(folder_ + "/" + partial); }));
        bool has_changed = faccessat(descriptor_, partial.c_str(), F_OK, 0) == 0;
        return has_changed ? move(partial, place) : Result<void>();
    }

    std::string folder_;
    int descriptor_;
    Journal journal_;
    bool resumes_;
};

// What must be the same for a run to go on where another one ended.
std::string head_of(const MapOptions& options) {
    std::string head = options.in.empty() ? "lines" : "files";
    for (const std::string& argument : options.run.arguments) head += "\t" + argument;
    return head;
}

// What the module's file is; empty: it can be read only once.
std::string module_mark(const std::string& path) {
    std::error_code problem;
    if (!fs::is_regular_file(path, problem)) return "";
    std::ifstream file(path, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return format("%016llx", (unsigned long long)hash(bytes));
}

}  // namespace

std::unique_ptr<Results> print_results() { return std::make_unique<PrintedResults>(); }

Result<std::unique_ptr<Results>> store_results(const MapOptions& options) {
    const std::string inner = options.run.out + "/" + map_folder;
    std::error_code problem;
    // What else is there might have the name of an output.
    if (!fs::exists(inner, problem) && fs::is_directory(options.run.out, problem) &&
        !fs::is_empty(options.run.out, problem) && !problem)
        return Error{"--out " + options.run.out +
                     ": is not empty, and not from an earlier map; name another folder"};
    problem.clear();
    fs::create_directories(inner, problem);
    if (problem) return Error{"--out " + options.run.out + ": " + problem.message()};
    int descriptor = open(options.run.out.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return Error{"--out " + options.run.out + ": " + std::strerror(errno)};
    Journal journal = TRY(Journal::open(inner + "/journal", head_of(options), options.resumes));
    if (!options.resumes) fs::remove_all(inner + "/failed", problem);
    const std::string module = module_mark(options.run.file), earlier(journal.module_mark());
    if (!earlier.empty() && earlier != module)
        note(options.run.file + " has changed since; what the earlier one has done stays as it is");
    if (module != earlier) journal.note_module(module);
    return std::unique_ptr<Results>(
        std::make_unique<StoredResults>(options.run.out, descriptor, std::move(journal), options));
}

}  // namespace gpurun::tool
