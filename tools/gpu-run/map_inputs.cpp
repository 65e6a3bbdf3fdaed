// Reads what map's processes are to work on: files of a folder, or lines.
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/hash.h"
#include "map.h"

namespace gpurun::tool {
namespace {

namespace fs = std::filesystem;

constexpr usize max_line = 16 << 20;  // bytes: then an Error

std::string reason(int problem) { return std::strerror(problem); }

bool has_placeholder(const std::vector<std::string>& arguments) {
    return std::ranges::any_of(
        arguments, [](const std::string& text) { return text.find("{}") != text.npos; });
}

std::vector<std::string> with_text(const std::vector<std::string>& patterns,
                                   std::string_view text) {
    std::vector<std::string> arguments = patterns;
    for (std::string& argument : arguments)
        for (usize at = argument.find("{}"); at != std::string::npos;
             at = argument.find("{}", at + text.size()))
            argument.replace(at, 2, text);
    return arguments;
}

std::string hex(u64 number) { return format("%016llx", (unsigned long long)number); }

s64 nanoseconds(const timespec& time) { return s64(time.tv_sec) * 1'000'000'000 + time.tv_nsec; }

// A file or a folder that is open as long as this is.
class OpenFile {
public:
    explicit OpenFile(int number) : number_(number) {}
    OpenFile(const OpenFile&) = delete;
    OpenFile& operator=(const OpenFile&) = delete;
    ~OpenFile() {
        if (number_ > STDIN_FILENO) close(number_);
    }
    int get() const { return number_; }

private:
    int number_;
};

// ---- files -------------------------------------------------------------------------

// Files below the folder, links to files among them, sorted. Not those of `out`, nor what a run
// that had this folder as its --out keeps of its own.
Result<std::vector<std::string>> list_files(const std::string& folder, const std::string& out) {
    std::vector<std::string> names;
    std::error_code problem;
    struct stat skipped = {}, info = {};
    bool has_skipped = !out.empty() && stat(out.c_str(), &skipped) == 0;
    auto error = [&](const std::string& place) {
        return Error{"--in " + place + ": " + problem.message()};
    };
    fs::recursive_directory_iterator walk(folder, problem), end;
    if (problem) return error(folder);
    std::string last = folder;  // the folder that the next step goes into
    for (; walk != end; walk.increment(problem)) {
        const fs::directory_entry& entry = *walk;
        std::string_view name = entry.path().native();
        name.remove_prefix(folder.size());
        while (name.starts_with('/')) name.remove_prefix(1);
        if (entry.is_directory(problem)) {
            bool is_out = has_skipped && stat(entry.path().c_str(), &info) == 0 &&
                          info.st_dev == skipped.st_dev && info.st_ino == skipped.st_ino;
            if (is_out || name == map_folder) walk.disable_recursion_pending();
            last = entry.path();
        } else if (entry.is_regular_file(problem)) {
            names.emplace_back(name);
        }
        problem.clear();  // of a link that leads nowhere
    }
    if (problem) return error(last);
    std::ranges::sort(names);
    return names;
}

// Files that a process changed go beside its output, where nothing else may go.
Result<void> check_places(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
        std::string place = name + changed_suffix;
        auto found = std::ranges::lower_bound(names, place);
        if (found != names.end() && (*found == place || found->starts_with(place + "/")))
            return Error{"--in: " + *found + " is where the files that " + name +
                         "'s process changes would go; rename one of them"};
    }
    return {};
}

class FileInputs final : public Inputs {
public:
    FileInputs(int folder, std::vector<std::string> names, std::vector<std::string> arguments,
               FindEarlier find_earlier, u64 most_bytes)
        : folder_(folder),
          names_(std::move(names)),
          arguments_(std::move(arguments)),
          find_earlier_(std::move(find_earlier)),
          most_bytes_(most_bytes) {}

    u64 skipped() const override { return skipped_; }

    Result<Next> next(Input& to) override {
        for (; next_ < names_.size(); next_++, skipped_++) {
            const std::string& name = names_[next_];
            const std::optional<EarlierResult> earlier = find_earlier_(name);
            if (earlier && looks_the_same(name, *earlier)) continue;
            std::string stamp;
            to.problem = read(name, to.process.input.emplace(), stamp);
            const std::string content = hex(hash(*to.process.input));
            // One that was copied, or written once more, may have the same content.
            if (earlier && to.problem.empty() && earlier->mark.ends_with(" " + content)) continue;
            to.name = to.label = name;
            to.process.number = u32(next_);
            to.process.arguments = with_text(arguments_, name);
            to.mark = stamp + " " + content;
            next_++;
            to.share = double(next_) / double(names_.size());
            return Next::input;
        }
        return Next::end;
    }

private:
    // The part of a mark that can be told without reading the file.
    static std::string stamp_of(const struct stat& info) {
        // The time of change sees what sets the other time back.
        return std::to_string(info.st_size) + " " + std::to_string(nanoseconds(info.st_mtim)) +
               " " + std::to_string(nanoseconds(info.st_ctim)) + " " + std::to_string(info.st_ino);
    }

    bool looks_the_same(const std::string& name, const EarlierResult& earlier) const {
        struct stat info;
        if (fstatat(folder_.get(), name.c_str(), &info, 0) != 0) return false;
        if (earlier.mark.empty()) return nanoseconds(info.st_mtim) <= earlier.written_at;
        return earlier.mark.starts_with(stamp_of(info) + " ");
    }

    // What is wrong with it, or nothing. The stamp is from before it was read: whatever changes
    // it meanwhile gives it another.
    std::string read(const std::string& name, std::string& content, std::string& stamp) const {
        OpenFile file(openat(folder_.get(), name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
        struct stat info;
        if (file.get() < 0 || fstat(file.get(), &info) != 0)
            return "cannot read it: " + reason(errno);
        if (!S_ISREG(info.st_mode)) return "not a file any more";
        stamp = stamp_of(info);
        // One byte more, to see the end; a file that grows meanwhile is read to where it is then.
        content.resize(std::min(u64(info.st_size), most_bytes_) + 1);
        for (usize size = 0;;) {
            ssize_t got = ::read(file.get(), content.data() + size, content.size() - size);
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return "cannot read it: " + reason(errno);
            size += usize(got);
            if (size > most_bytes_)
                return "larger than " + std::to_string(most_bytes_ >> 20) + " MiB";
            if (got == 0) {
                content.resize(size);
                return "";
            }
            if (size == content.size()) content.resize(std::min(size * 2, most_bytes_ + 1));
        }
    }

    OpenFile folder_;
    std::vector<std::string> names_, arguments_;
    FindEarlier find_earlier_;
    u64 most_bytes_;
    usize next_ = 0;
    u64 skipped_ = 0;
};

// ---- lines -------------------------------------------------------------------------

// "000/012/345": in the order of the lines, and no folder has more than a thousand.
std::string numbered_name(u64 number) {
    char text[64];
    std::snprintf(text, sizeof text, "%03llu/%03llu/%03llu", (unsigned long long)number / 1'000'000,
                  (unsigned long long)number / 1000 % 1000, (unsigned long long)number % 1000);
    return text;
}

class LineInputs final : public Inputs {
public:
    // `input_hash` is of what all processes read.
    LineInputs(int file, u64 size, std::vector<std::string> arguments, FindEarlier find_earlier,
               u64 input_hash)
        : file_(file),
          size_(size),
          arguments_(std::move(arguments)),
          has_placeholder_(has_placeholder(arguments_)),
          find_earlier_(std::move(find_earlier)),
          input_hash_(input_hash) {}

    u64 skipped() const override { return skipped_; }

    Result<Next> next(Input& to) override {
        for (;;) {
            usize end = buffer_.find('\n', looked_);
            bool is_whole = end != buffer_.npos;
            if (!is_whole) looked_ = end = buffer_.size();
            if (end - begin_ > max_line)
                return Error{"line " + std::to_string(number_ + 1) + " is longer than " +
                             std::to_string(max_line >> 20) + " MiB"};
            if (!is_whole && !is_ended_) {
                bool has_more = TRY(fill());
                if (!has_more) return Next::nothing_yet;
                continue;
            }
            if (end == begin_ && !is_whole) return Next::end;
            std::string line = buffer_.substr(begin_, end - begin_);
            begin_ = looked_ = end + is_whole;
            number_++;
            if (number_ > ~u32{0}) return Error{"more than 4294967295 lines"};
            to.name = numbered_name(number_);
            to.mark = hex(hash(line, input_hash_));
            const std::optional<EarlierResult> earlier = find_earlier_(to.name);
            if (!earlier || (!earlier->mark.empty() && earlier->mark != to.mark)) {
                take(line, to);
                return Next::input;
            }
            skipped_++;
        }
    }

private:
    void take(std::string& line, Input& to) const {
        if (line.ends_with('\r')) line.pop_back();
        to.label = "line " + std::to_string(number_);
        to.process.number = u32(number_ - 1);
        if (size_ > 0) to.share = double(read_ - (buffer_.size() - begin_)) / double(size_);
        if (line.find('\0') != line.npos) {
            to.problem = "a NUL byte, which no argument can have";
        } else if (has_placeholder_) {
            to.process.arguments = with_text(arguments_, line);
        } else if (auto words = split_words(line)) {
            to.process.arguments = arguments_;
            std::ranges::move(*words, std::back_inserter(to.process.arguments));
        } else {
            to.problem = "a quote is not closed";
        }
    }

    // False: nothing has come for a while.
    Result<bool> fill() {
        constexpr usize piece = 1 << 20;
        constexpr int patience = 50;  // ms
        buffer_.erase(0, begin_);
        looked_ -= begin_;
        begin_ = 0;
        pollfd ready{file_.get(), POLLIN, 0};
        if (poll(&ready, 1, patience) == 0) return false;
        usize before = buffer_.size();
        buffer_.resize(before + piece);
        ssize_t got = read(file_.get(), buffer_.data() + before, piece);
        int problem = errno;
        buffer_.resize(before + usize(std::max<ssize_t>(got, 0)));
        if (got < 0 && (problem == EINTR || problem == EAGAIN)) return false;
        if (got < 0) return Error{"--lines: cannot read on: " + reason(problem)};
        read_ += u64(got);
        is_ended_ = got == 0;
        return true;
    }

    OpenFile file_;
    u64 size_;  // 0: not known
    std::vector<std::string> arguments_;
    bool has_placeholder_;
    FindEarlier find_earlier_;
    u64 input_hash_;
    std::string buffer_;  // lines from begin_ on; no end of a line before looked_
    usize begin_ = 0, looked_ = 0;
    bool is_ended_ = false;
    u64 number_ = 0, read_ = 0, skipped_ = 0;
};

}  // namespace

Result<std::unique_ptr<Inputs>> file_inputs(const MapOptions& options, FindEarlier find_earlier,
                                            u64 most_bytes) {
    std::vector<std::string> names = TRY(list_files(options.in, options.run.out));
    if (!options.run.out.empty() && !options.run.directories.empty()) TRY(check_places(names));
    int folder = open(options.in.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return Error{"--in " + options.in + ": " + reason(errno)};
    return std::unique_ptr<Inputs>(std::make_unique<FileInputs>(
        folder, std::move(names), options.run.arguments, std::move(find_earlier), most_bytes));
}

Result<std::unique_ptr<Inputs>> line_inputs(const MapOptions& options, FindEarlier find_earlier) {
    bool is_stdin = options.lines == "-";
    int file = is_stdin ? STDIN_FILENO : open(options.lines.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (file < 0 || fstat(file, &info) != 0)
        return Error{"--lines " + options.lines + ": " + reason(errno)};
    if (S_ISDIR(info.st_mode))
        return Error{"--lines " + options.lines + ": a folder; --in takes folders"};
    u64 size = S_ISREG(info.st_mode) ? u64(info.st_size) : 0;
    std::error_code problem;
    std::optional<std::string> input;  // what can be read once is left to the processes
    if (fs::is_regular_file(options.run.input, problem)) input = TRY(input_file(options.run));
    return std::unique_ptr<Inputs>(std::make_unique<LineInputs>(
        file, size, options.run.arguments, std::move(find_earlier), input ? hash(*input) : 0));
}

}  // namespace gpurun::tool
