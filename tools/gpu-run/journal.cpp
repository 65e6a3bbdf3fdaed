// A line is "done NAME<tab>MARK", "failed NAME<tab>WHY" or "module MARK"; the last one about a name
// counts. Older journals have no marks.
#include "journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gpurun::tool {
namespace {

constexpr std::string_view done_mark = "done ", failed_mark = "failed ", module_line = "module ";

// On one line, without tabs.
std::string escaped(std::string_view text) {
    std::string line;
    for (char c : text) {
        switch (c) {
            case '\\': line += "\\\\"; break;
            case '\n': line += "\\n"; break;
            case '\t': line += "\\t"; break;
            default: line += c;
        }
    }
    return line;
}

Error error(const std::string& path) { return Error{path + ": " + std::strerror(errno)}; }

struct Entry {
    std::string_view name, mark;
    bool is_done;
};

std::optional<Entry> parse_entry(std::string_view line) {
    const bool is_done = line.starts_with(done_mark);
    if (!is_done && !line.starts_with(failed_mark)) return std::nullopt;
    line.remove_prefix(is_done ? done_mark.size() : failed_mark.size());
    const std::string_view name = line.substr(0, line.find('\t'));
    return Entry{name, line.substr(std::min(line.size(), name.size() + 1)), is_done};
}

}  // namespace

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      earlier_(std::move(other.earlier_)),
      inputs_(std::move(other.inputs_)),
      module_mark_(other.module_mark_),
      noted_(std::move(other.noted_)) {}

Journal::~Journal() {
    if (file_ >= 0) close(file_);
}

Result<Journal> Journal::open(const std::string& path, const std::string& head, bool resumes) {
    Journal journal(path, ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (journal.file_ < 0) return error(path);
    if (flock(journal.file_, LOCK_EX | LOCK_NB) != 0)
        return Error{path + ": another gpu-run map writes there; wait for its end"};
    const std::string line = "gpu-run map 1 " + escaped(head) + "\n";
    if (resumes) TRY(journal.load(line));
    off_t end = off_t(journal.earlier_.size());
    if (ftruncate(journal.file_, end) != 0 || lseek(journal.file_, end, SEEK_SET) < 0)
        return error(path);
    if (end == 0) journal.noted_ = line;
    TRY(journal.flush());
    return journal;
}

Result<void> Journal::load(const std::string& head) {
    struct stat info;
    if (fstat(file_, &info) != 0) return error(path_);
    earlier_.resize(usize(info.st_size));
    usize size = 0;
    while (size < earlier_.size()) {
        ssize_t got = pread(file_, earlier_.data() + size, earlier_.size() - size, off_t(size));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return error(path_);
        if (got == 0) break;
        size += usize(got);
    }
    // What follows the last whole line was being written when that run ended.
    std::string_view left(earlier_.data(), size);
    earlier_.resize(left.rfind('\n') + 1);
    left = left.substr(0, earlier_.size());
    if (left.empty()) return {};
    if (!left.starts_with(head))
        return Error{path_ +
                     ": these outputs were made with other arguments; give the same ones, or begin "
                     "anew without --resume"};
    left.remove_prefix(head.size());
    std::vector<Entry> entries;
    while (!left.empty()) {
        std::string_view line = left.substr(0, left.find('\n'));
        left.remove_prefix(line.size() + 1);
        if (auto entry = parse_entry(line)) entries.push_back(*entry);
        if (line.starts_with(module_line)) module_mark_ = line.substr(module_line.size());
    }
    // Those of one name in the order of the file.
    std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
        return a.name != b.name ? a.name < b.name : a.name.data() < b.name.data();
    });
    for (usize i = 0; i < entries.size(); i++) {
        bool is_last = i + 1 == entries.size() || entries[i + 1].name != entries[i].name;
        if (is_last && entries[i].is_done) inputs_.push_back({entries[i].name, entries[i].mark});
    }
    return {};
}

std::optional<std::string_view> Journal::mark_of(const std::string& name) const {
    if (inputs_.empty()) return std::nullopt;
    const std::string wanted = escaped(name);
    auto found = std::ranges::lower_bound(inputs_, std::string_view(wanted), {}, &NotedInput::name);
    if (found == inputs_.end() || found->name != wanted) return std::nullopt;
    return found->mark;
}

void Journal::note_done(const std::string& name, std::string_view mark) {
    noted_.append(done_mark).append(escaped(name)) += '\t';
    noted_.append(mark) += '\n';
}

void Journal::note_module(std::string_view mark) {
    noted_.append(module_line).append(mark) += '\n';
}

void Journal::note_failed(const std::string& name, const std::string& why) {
    noted_.append(failed_mark).append(escaped(name)) += '\t';
    noted_.append(escaped(why)) += '\n';
}

Result<void> Journal::flush() {
    usize done = 0;
    while (done < noted_.size()) {
        ssize_t count = write(file_, noted_.data() + done, noted_.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return error(path_);
        done += usize(count);
    }
    noted_.clear();
    return {};
}

}  // namespace gpurun::tool
