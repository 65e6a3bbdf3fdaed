// Files of: magic, hash of the content, length of the key, key, content.
#include "image/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/byte_file.h"
#include "base/format.h"
#include "base/notes.h"

namespace gpurun::image {
namespace {

constexpr u64 magic = 0x3145484341435247;  // "GRCACHE1"

constexpr usize name_digits = 32;

struct Header {
    u64 magic, content_hash, key_size, content_size;
};

bool read_all(int file, void* to, usize size) {
    for (usize done = 0; done < size;) {
        ssize_t got = read(file, static_cast<char*>(to) + done, size - done);
        if (got <= 0) return false;
        done += usize(got);
    }
    return true;
}

bool write_all(int file, const void* from, usize size) {
    for (usize done = 0; done < size;) {
        ssize_t put = write(file, static_cast<const char*>(from) + done, size - done);
        if (put <= 0) return false;
        done += usize(put);
    }
    return true;
}

void make_folders(const std::string& path) {
    for (usize at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
        mkdir(path.substr(0, at).c_str(), 0777);
    mkdir(path.c_str(), 0777);
}

}  // namespace

// FNV-1a over 64-bit words: quick, and only ever a guard against accidents.
u64 hash(std::string_view bytes, u64 seed) {
    u64 h = 0xcbf29ce484222325 ^ seed;
    usize i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
        u64 word;
        std::memcpy(&word, bytes.data() + i, 8);
        h = (h ^ word) * 0x100000001b3;
        h ^= h >> 29;
    }
    for (; i < bytes.size(); i++) h = (h ^ u8(bytes[i])) * 0x100000001b3;
    return h ^ h >> 32;
}

std::string Cache::default_folder() {
    if (const char* folder = std::getenv("GPURUN_CACHE")) return folder;
    if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder && *folder)
        return std::string(folder) + "/gpu-run";
    if (const char* home = std::getenv("HOME"); home && *home)
        return std::string(home) + "/.cache/gpu-run";
    return "";
}

std::string Cache::path_of(std::string_view key) const {
    return format("%s/%016llx%016llx", folder_.c_str(), (unsigned long long)hash(key),
                  (unsigned long long)hash(key, 1));
}

// What is wrong with the entry; nothing: it is another key's, or it is put into `content`.
const char* Cache::read_entry(int file, std::string_view key,
                              std::optional<std::vector<u8>>& content) const {
    Header header;
    struct stat info;
    if (!read_all(file, &header, sizeof header)) return "it is cut off";
    if (header.magic != magic) return "it is of another version, or no entry at all";
    if (fstat(file, &info) != 0) return nullptr;
    const u64 rest = u64(info.st_size) - sizeof header;
    if (header.key_size > rest || header.content_size != rest - header.key_size)
        return "it has not the size it should have";
    std::string stored_key(header.key_size, '\0');
    std::vector<u8> bytes(header.content_size);
    if (!read_all(file, stored_key.data(), stored_key.size()) ||
        !read_all(file, bytes.data(), bytes.size()))
        return "it cannot be read";
    if (path_of(stored_key) != path_of(key) || hash(as_text(bytes)) != header.content_hash)
        return "its checksum does not match";
    if (stored_key == key) content = std::move(bytes);
    return nullptr;
}

std::optional<std::vector<u8>> Cache::get(std::string_view key) const {
    if (folder_.empty()) return std::nullopt;
    int file = open(path_of(key).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return std::nullopt;
    std::optional<std::vector<u8>> content;
    const char* problem = read_entry(file, key, content);
    if (content) futimens(file, nullptr);  // used now
    close(file);
    if (problem) drop(key, problem);
    return content;
}

void Cache::drop(std::string_view key, const char* why) const {
    if (folder_.empty()) return;
    const std::string path = path_of(key);
    unlink(path.c_str());
    note(format("dropped %s: %s; what it had is made again", path.c_str(), why));
}

void Cache::put(std::string_view key, std::span<const u8> content) const {
    static std::atomic<u32> writers = 0;
    if (folder_.empty()) return;
    make_folders(folder_);
    std::string path = path_of(key), temporary = path + format(".%d.%u", getpid(), writers++);
    int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return;
    Header header{magic, hash(as_text(content)), key.size(), content.size()};
    bool written = write_all(file, &header, sizeof header) &&
                   write_all(file, key.data(), key.size()) &&
                   write_all(file, content.data(), content.size());
    written = close(file) == 0 && written;
    if (!written || rename(temporary.c_str(), path.c_str()) != 0) unlink(temporary.c_str());
    trim(most_bytes);
}

std::vector<Cache::Entry> Cache::entries() const {
    std::vector<Entry> found;
    DIR* folder = folder_.empty() ? nullptr : opendir(folder_.c_str());
    if (folder == nullptr) return found;
    while (const dirent* at = readdir(folder)) {
        // Names are 32 digits; with more they are still being written.
        const std::string name = at->d_name;
        if (name.size() != name_digits || name.find_first_not_of("0123456789abcdef") != name.npos)
            continue;
        const int file = open((folder_ + "/" + name).c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) continue;
        struct stat info;
        Header header;
        std::string key(64, '\0');
        if (fstat(file, &info) == 0 && read_all(file, &header, sizeof header) &&
            header.magic == magic) {
            key.resize(header.key_size < key.size() ? header.key_size : key.size());
            if (!read_all(file, key.data(), key.size())) key.clear();
            found.push_back({name, key.substr(0, key.find_first_of(" /")), u64(info.st_size),
                             s64(info.st_mtime)});
        }
        close(file);
    }
    closedir(folder);
    std::ranges::sort(found, [](const Entry& a, const Entry& b) {
        return a.used != b.used ? a.used > b.used : a.name < b.name;
    });
    return found;
}

void Cache::trim(u64 bytes) const {
    u64 kept = 0;
    for (const Entry& entry : entries()) {
        kept += entry.bytes;
        if (kept > bytes) unlink((folder_ + "/" + entry.name).c_str());
    }
    remove_abandoned();
}

// What was being written by somebody who is no more.
void Cache::remove_abandoned() const {
    constexpr s64 patience = 3600;  // seconds
    DIR* folder = folder_.empty() ? nullptr : opendir(folder_.c_str());
    if (folder == nullptr) return;
    while (const dirent* at = readdir(folder)) {
        const std::string name = at->d_name, path = folder_ + "/" + name;
        if (name.find('.') != name_digits) continue;
        struct stat info;
        if (stat(path.c_str(), &info) == 0 && std::time(nullptr) - s64(info.st_mtime) > patience)
            unlink(path.c_str());
    }
    closedir(folder);
}

}  // namespace gpurun::image
