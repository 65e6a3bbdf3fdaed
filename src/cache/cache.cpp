// An entry is a file of: magic, hash of the content, lengths, label, key, content. A file named
// `limit` says in digits how many bytes all entries may have.
#include "cache/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/byte_file.h"
#include "base/folders.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/notes.h"

namespace gpurun::cache {
namespace {

constexpr u64 magic = 0x3245484341435247;  // "GRCACHE2"
constexpr const char* limit_name = "limit";
constexpr usize most_label = 200;  // bytes

constexpr usize name_digits = 32;

struct Header {
    u64 magic, content_hash, label_size, key_size, content_size;
};

bool read_all(int file, void* to, usize size) {
    for (usize done = 0; done < size;) {
        ssize_t got = read(file, static_cast<char*>(to) + done, size - done);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += usize(got);
    }
    return true;
}

bool write_all(int file, const void* from, usize size) {
    for (usize done = 0; done < size;) {
        ssize_t put = write(file, static_cast<const char*>(from) + done, size - done);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        done += usize(put);
    }
    return true;
}

// Prints a note once, since a run looks into the cache many times.
void note_once(const std::string& text) {
    static std::mutex& mutex = *new std::mutex;
    static std::set<std::string>& said = *new std::set<std::string>;
    {
        std::lock_guard lock(mutex);
        if (!said.insert(text).second) return;
    }
    note(text);
}

// Returns why somebody else may have made or changed the file, or null if nobody else can.
const char* distrusted(const struct stat& info) {
    if (info.st_uid != geteuid()) return "another user owns it";
    if (info.st_mode & (S_IWGRP | S_IWOTH)) return "others may write to it";
    return nullptr;
}

// A file descriptor that is closed with its scope.
class File {
public:
    explicit File(int number = -1) : number_(number) {}
    File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    File& operator=(File&&) = delete;
    ~File() {
        if (number_ >= 0) close(number_);
    }
    int get() const { return number_; }
    int release() { return std::exchange(number_, -1); }
    bool is_open() const { return number_ >= 0; }

private:
    int number_;
};

// Opens the folder. It is not used, with a note, if another user could put something there.
File open_folder(const std::string& path) {
    const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    File folder(path.empty() ? -1 : open(path.c_str(), flags));
    struct stat info;
    const char* problem = nullptr;
    if (!folder.is_open()) {
        if (path.empty() || (errno != ENOTDIR && errno != ELOOP)) return File();
        problem = "it is no directory, or a symbolic link";
    } else {
        problem = fstat(folder.get(), &info) == 0 ? distrusted(info) : strerror(errno);
    }
    if (problem == nullptr) return folder;
    note_once(format("the cache %s is not used: %s", path.c_str(), problem));
    return File();
}

// Opens an entry. Returns a closed file if there is none, or why it must not be read.
File open_entry(const File& folder, const std::string& name, const char*& problem) {
    // O_NONBLOCK: a FIFO without a writer is opened at once.
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    File file(openat(folder.get(), name.c_str(), flags));
    struct stat info;
    if (!file.is_open() || fstat(file.get(), &info) != 0) {
        if (errno != ENOENT)
            problem = errno == ELOOP   ? "it is a symbolic link"
                      : errno == ENXIO ? "it is no regular file"  // a socket
                                       : strerror(errno);
        return File();
    }
    problem = !S_ISREG(info.st_mode) ? "it is no regular file" : distrusted(info);
    return problem == nullptr ? std::move(file) : File();
}

// Lists a folder. Returns no names if it is not open.
std::vector<std::string> names_in(const File& folder) {
    std::vector<std::string> names;
    File copy(folder.is_open() ? fcntl(folder.get(), F_DUPFD_CLOEXEC, 0) : -1);
    const std::unique_ptr<DIR, int (*)(DIR*)> list(copy.is_open() ? fdopendir(copy.get()) : nullptr,
                                                   closedir);
    if (!list) return names;
    copy.release();  // the list closes it
    while (const dirent* at = readdir(list.get())) names.emplace_back(at->d_name);
    return names;
}

std::string name_of(std::string_view key) {
    return format("%016llx%016llx", (unsigned long long)hash(key),
                  (unsigned long long)hash(key, 1));
}

// Names of entries are 32 digits; longer ones are still being written.
bool is_entry(const std::string& name) {
    return name.size() == name_digits && name.find_first_not_of("0123456789abcdef") == name.npos;
}

}  // namespace

std::string Cache::default_folder() {
    if (const char* folder = std::getenv("GPURUN_CACHE")) return folder;
    if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
        return std::string(folder) + "/gpu-run";
    if (const char* home = std::getenv("HOME"); home && *home)
        return std::string(home) + "/.cache/gpu-run";
    return "";
}

Cache::Cache(std::string folder) : folder_(std::move(folder)) {
    // A slash at the end would make the system follow a symbolic link.
    while (folder_.size() > 1 && folder_.back() == '/') folder_.pop_back();
}

namespace {

// Reads the entry of `key` into `content`, unless it is another key's. Returns what is wrong with
// it, or null.
const char* read_entry(const File& file, std::string_view key,
                       std::optional<std::vector<u8>>& content) {
    Header header;
    struct stat info;
    if (!read_all(file.get(), &header, sizeof header)) return "it is cut off";
    if (header.magic != magic) return "it is of another version, or no entry at all";
    if (fstat(file.get(), &info) != 0) return nullptr;
    const u64 rest = u64(info.st_size) - sizeof header;
    constexpr u64 most_entry = u64{1} << 32;
    if (u64(info.st_size) > most_entry || header.label_size > most_label ||
        header.label_size > rest || header.key_size > rest - header.label_size ||
        header.content_size != rest - header.label_size - header.key_size)
        return "it has not the size it should have";
    if (lseek(file.get(), off_t(header.label_size), SEEK_CUR) < 0) return "it cannot be read";
    std::string stored_key(header.key_size, '\0');
    std::vector<u8> bytes(header.content_size);
    if (!read_all(file.get(), stored_key.data(), stored_key.size()) ||
        !read_all(file.get(), bytes.data(), bytes.size()))
        return "it cannot be read";
    const bool is_same = stored_key == key;
    if ((!is_same && name_of(stored_key) != name_of(key)) ||
        hash(as_text(bytes)) != header.content_hash)
        return "its checksum does not match";
    if (is_same) content = std::move(bytes);
    return nullptr;
}

}  // namespace

std::optional<std::vector<u8>> Cache::get(std::string_view key) const {
    const File folder = open_folder(folder_);
    if (!folder.is_open()) return std::nullopt;
    const std::string name = name_of(key);
    const char* problem = nullptr;
    const File file = open_entry(folder, name, problem);
    std::optional<std::vector<u8>> content;
    if (problem)
        note_once(format("ignored %s/%s: %s; what it had is made again", folder_.c_str(),
                         name.c_str(), problem));
    if (!file.is_open()) return content;
    problem = read_entry(file, key, content);
    if (content) futimens(file.get(), nullptr);  // used now
    if (problem) drop(key, problem);
    return content;
}

void Cache::drop(std::string_view key, const char* why) const {
    const File folder = open_folder(folder_);
    if (!folder.is_open()) return;
    const std::string name = name_of(key);
    unlinkat(folder.get(), name.c_str(), 0);
    note(
        format("dropped %s/%s: %s; what it had is made again", folder_.c_str(), name.c_str(), why));
}

void Cache::put(std::string_view key, std::span<const u8> content, std::string_view label) const {
    static std::atomic<u32> writers = 0;
    if (folder_.empty()) return;
    make_folders(folder_, 0700);
    const File folder = open_folder(folder_);
    if (!folder.is_open()) return;
    const std::string name = name_of(key), temporary = name + format(".%d.%u", getpid(), writers++);
    bool written;
    {
        // An earlier process with this process's number may have left a file of that name.
        unlinkat(folder.get(), temporary.c_str(), 0);
        const File file(openat(folder.get(), temporary.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
        if (!file.is_open()) return;
        label = label.substr(0, most_label);
        Header header{magic, hash(as_text(content)), label.size(), key.size(), content.size()};
        written = write_all(file.get(), &header, sizeof header) &&
                  write_all(file.get(), label.data(), label.size()) &&
                  write_all(file.get(), key.data(), key.size()) &&
                  write_all(file.get(), content.data(), content.size());
    }
    if (!written || renameat(folder.get(), temporary.c_str(), folder.get(), name.c_str()) != 0)
        unlinkat(folder.get(), temporary.c_str(), 0);
    // A folder may have thousands of entries: a process looks at them when it has written one, and
    // again when what it wrote since matters.
    static std::atomic<u64> unseen = ~u64{0} >> 1;
    const u64 most = limit();
    if ((unseen += content.size()) < most / 16) return;
    unseen = 0;
    trim(most);
}

u64 Cache::limit() const {
    const char* problem = nullptr;
    const File folder = open_folder(folder_);
    const File file = folder.is_open() ? open_entry(folder, limit_name, problem) : File();
    char digits[32] = {};
    if (!file.is_open() || read(file.get(), digits, sizeof digits - 1) <= 0) return most_bytes;
    char* end = nullptr;
    const u64 bytes = std::strtoull(digits, &end, 10);
    return end == digits ? most_bytes : bytes;
}

bool Cache::set_limit(u64 bytes) const {
    make_folders(folder_, 0700);
    const File folder = open_folder(folder_);
    if (!folder.is_open()) return false;
    unlinkat(folder.get(), limit_name, 0);
    const File file(openat(folder.get(), limit_name,
                           O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    const std::string digits = std::to_string(bytes) + "\n";
    if (!file.is_open() || !write_all(file.get(), digits.data(), digits.size())) return false;
    trim(bytes);
    return true;
}

std::vector<Cache::Entry> Cache::entries() const {
    std::vector<Entry> found;
    const File folder = open_folder(folder_);
    for (const std::string& name : names_in(folder)) {
        if (!is_entry(name)) continue;
        const char* problem = nullptr;
        const File file = open_entry(folder, name, problem);
        struct stat info;
        Header header;
        std::string key(64, '\0');
        if (!file.is_open() || fstat(file.get(), &info) != 0 ||
            !read_all(file.get(), &header, sizeof header) || header.magic != magic ||
            header.label_size > most_label)
            continue;
        std::string label(header.label_size, '\0');
        if (!read_all(file.get(), label.data(), label.size())) label.clear();
        // Labels come from file names, which may have control characters for a terminal.
        for (char& c : label)
            if (u8(c) < 0x20 || c == 0x7f) c = '?';
        key.resize(header.key_size < key.size() ? header.key_size : key.size());
        if (!read_all(file.get(), key.data(), key.size())) key.clear();
        found.push_back({name, key.substr(0, key.find_first_of(" /")), label, u64(info.st_size),
                         s64(info.st_mtime)});
    }
    std::ranges::sort(found, [](const Entry& a, const Entry& b) {
        return a.used != b.used ? a.used > b.used : a.name < b.name;
    });
    return found;
}

void Cache::trim(u64 bytes) const {
    struct Found {
        std::string name;
        u64 bytes;
        s64 used;
    };
    std::vector<Found> found;
    const File folder = open_folder(folder_);
    for (const std::string& name : names_in(folder)) {
        struct stat info;
        const bool is_begun = name.find('.') == name_digits;
        if ((!is_begun && !is_entry(name)) ||
            fstatat(folder.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        // Older files that are still being written belong to a process that died.
        constexpr s64 patience = 3600;  // seconds
        if (!is_begun)
            found.push_back({name, u64(info.st_size), s64(info.st_mtime)});
        else if (std::time(nullptr) - s64(info.st_mtime) > patience)
            unlinkat(folder.get(), name.c_str(), 0);
    }
    std::ranges::sort(found, [](const Found& a, const Found& b) {
        return a.used != b.used ? a.used > b.used : a.name < b.name;
    });
    u64 kept = 0;
    for (const Found& entry : found) {
        kept += entry.bytes;
        if (kept > bytes) unlinkat(folder.get(), entry.name.c_str(), 0);
    }
}

}  // namespace gpurun::cache
