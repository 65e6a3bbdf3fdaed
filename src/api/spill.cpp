// Writes and maps files that nobody else can see.
#include "api/spill.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "base/format.h"

namespace gpurun::api {
namespace {

using std::chrono::steady_clock;

// How long output is still read once somebody wants to stop.
constexpr std::chrono::milliseconds patience(100);
// Room that is left to others on the disk.
constexpr u64 kept_free = u64{256} << 20;

// Large temporary files: $TMPDIR, else a folder that is on a disk rather than in memory.
std::string folder() {
    const char* wanted = std::getenv("TMPDIR");
    if (wanted && *wanted) return wanted;
    return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

Error problem_of(const char* what) {
    return Error{format("%s in %s: %s; TMPDIR names another folder", what, folder().c_str(),
                        std::strerror(errno))};
}

Result<int> open_unnamed() {
    std::string name = folder() + "/gpu-run-output-XXXXXX";
    const int file = mkostemp(name.data(), O_CLOEXEC);
    if (file < 0) return problem_of("cannot keep output of processes");
    unlink(name.c_str());
    return file;
}

Result<void> write_at(int file, u64 at, const char* bytes, u64 size) {
    while (size > 0) {
        const ssize_t count = pwrite(file, bytes, std::min<u64>(size, u64{1} << 30), off_t(at));
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return problem_of("cannot keep output of processes");
        at += u64(count);
        bytes += count;
        size -= u64(count);
    }
    return {};
}

Result<void> check_room(int file, u64 size) {
    struct statvfs disk{};
    if (fstatvfs(file, &disk) != 0) return {};
    if (u64(disk.f_bavail) * disk.f_frsize >= size + kept_free) return {};
    errno = ENOSPC;
    return problem_of("cannot keep output of processes");
}

struct Mapping {
    void* at;
    u64 size;
    Mapping(void* begin, u64 bytes) : at(begin), size(bytes) {}
    Mapping(Mapping&& other) noexcept : at(std::exchange(other.at, nullptr)), size(other.size) {}
    ~Mapping() {
        if (at) munmap(at, size);
    }
};

struct Closed {
    int file;
    ~Closed() { close(file); }
};

}  // namespace

void Spill::Packed::unload(u32 process) const {
    const u64 page = u64(sysconf(_SC_PAGESIZE));
    for (int stream : {1, 2}) {
        auto found = streams.find(key(process, stream));
        if (found == streams.end()) continue;
        const u64 begin = reinterpret_cast<u64>(found->second.data()),
                  end = begin + found->second.size();
        const u64 first = (begin + page - 1) / page * page, last = end / page * page;
        if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    }
}

Spill::~Spill() {
    if (file_ >= 0) close(file_);
}

Result<void> Spill::append(u32 process, int stream, std::string_view bytes) {
    std::lock_guard lock(mutex_);
    if (file_ < 0) file_ = TRY(open_unnamed());
    TRY(check_room(file_, bytes.size()));
    TRY(write_at(file_, end_, bytes.data(), bytes.size()));
    pieces_[key(process, stream)].push_back({end_, bytes.size()});
    end_ += bytes.size();
    return {};
}

bool Spill::holds(u32 process, int stream) const {
    std::lock_guard lock(mutex_);
    return pieces_.contains(key(process, stream));
}

std::vector<u64> Spill::keys() const {
    std::lock_guard lock(mutex_);
    std::vector<u64> all;
    for (const auto& [key, pieces] : pieces_) all.push_back(key);
    std::ranges::sort(all);
    return all;
}

Result<Spill::Packed> Spill::pack(const std::atomic<bool>* stop) {
    std::vector<Stream> all;
    for (u64 key : keys()) all.emplace_back(key, std::move(pieces_[key]));
    return put_together(all, stop);
}

Result<Spill::Packed> Spill::take(u32 process, const std::atomic<bool>* stop) {
    std::vector<Stream> taken;
    {
        std::lock_guard lock(mutex_);
        for (int stream : {1, 2})
            if (auto found = pieces_.extract(key(process, stream)))
                taken.emplace_back(key(0, stream), std::move(found.mapped()));
    }
    Result<Packed> packed = put_together(taken, stop);
    // Whoever runs on has the room, where the file system can give it back.
    for (const auto& [key, pieces] : taken)
        for (const Piece& piece : pieces)
            fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(piece.at),
                      off_t(piece.size));
    return packed;
}

Result<Spill::Packed> Spill::put_together(const std::vector<Stream>& streams,
                                          const std::atomic<bool>* stop) {
    Packed packed;
    if (streams.empty()) return packed;
    const int to = TRY(open_unnamed());
    const Closed closed{to};
    std::vector<char> buffer(1 << 20);
    u64 size = 0;
    auto copy = [&](const Piece& piece) -> Result<void> {
        for (u64 done = 0; done < piece.size;) {
            if (!give_up_ && stop && *stop) give_up_ = steady_clock::now() + patience;
            if (give_up_ && steady_clock::now() > *give_up_) packed.is_whole = false;
            if (!packed.is_whole) return {};
            const ssize_t count =
                pread(file_, buffer.data(), std::min<u64>(buffer.size(), piece.size - done),
                      off_t(piece.at + done));
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) return problem_of("cannot read what processes wrote");
            TRY(check_room(to, u64(count)));
            TRY(write_at(to, size, buffer.data(), u64(count)));
            done += u64(count);
            size += u64(count);
        }
        return {};
    };
    std::vector<u64> begins;
    for (const auto& [key, pieces] : streams) {
        begins.push_back(size);
        for (const Piece& piece : pieces) TRY(copy(piece));
        TRY(write_at(to, size++, "", 1));  // readers expect a NUL behind it
    }
    void* mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, to, 0);
    if (mapped == MAP_FAILED) return problem_of("cannot map what processes wrote");
    Mapping kept{mapped, size};
    packed.keeper = std::make_shared<const Mapping>(std::move(kept));
    begins.push_back(size);
    const char* first = static_cast<const char*>(mapped);
    for (usize i = 0; i < streams.size(); i++)
        packed.streams[streams[i].first] = {first + begins[i], begins[i + 1] - begins[i] - 1};
    return packed;
}

}  // namespace gpurun::api
