// Writes and maps a file that nobody else can see.
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

#include "base/folders.h"
#include "base/format.h"

namespace gpurun::api {
namespace {

// The unit of extents, and the size of a stream's first one; a multiple of any page.
constexpr u64 extent_unit = u64{1} << 20;
// Room that is left to others on the disk.
constexpr u64 kept_free = u64{256} << 20;

Error problem_of(const char* what) {
    return Error{format("%s in %s: %s; TMPDIR names another folder", what,
                        temporary_folder().c_str(), std::strerror(errno))};
}

Result<int> open_unnamed() {
    std::string name = temporary_folder() + "/gpu-run-output-XXXXXX";
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

class Mapping {
public:
    static Result<Mapping> make(u64 size, int flags, int file) {
        void* at = mmap(nullptr, size, file < 0 ? PROT_NONE : PROT_READ, flags, file, 0);
        if (at == MAP_FAILED) return problem_of("cannot map what processes wrote");
        return Mapping(at, size);
    }
    // Maps a stream's extents one behind the other.
    static Result<Mapping> of_extents(int file, std::span<const Spill::Extent> extents) {
        u64 size = 0;
        for (const Spill::Extent& extent : extents) size += extent.size;
        Mapping all = TRY(make(size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1));
        char* at = all.begin();
        for (const Spill::Extent& extent : extents) {
            if (mmap(at, extent.size, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, off_t(extent.at)) ==
                MAP_FAILED)
                return problem_of("cannot map what processes wrote");
            at += extent.size;
        }
        return all;
    }
    Mapping(Mapping&& other) noexcept
        : at_(std::exchange(other.at_, nullptr)), size_(other.size_) {}
    Mapping& operator=(Mapping&&) = delete;
    ~Mapping() {
        if (at_) munmap(at_, size_);
    }
    char* begin() const { return static_cast<char*>(at_); }

private:
    Mapping(void* begin, u64 bytes) : at_(begin), size_(bytes) {}
    void* at_;
    u64 size_;
};

// What a result points into.
struct MappedOutput {
    std::vector<Mapping> mappings;
    std::shared_ptr<Spill::File> whole;  // the file, if all of it is here
    // Extents that nobody uses once these are gone, if the file is still written to then.
    std::vector<Spill::Extent> extents;
    std::weak_ptr<Spill::File> file;

    ~MappedOutput() {
        mappings.clear();
        const std::shared_ptr<Spill::File> still = file.lock();
        if (!still) return;
        for (const Spill::Extent& extent : extents)
            fallocate(still->number, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(extent.at),
                      off_t(extent.size));
    }
};

bool is_in_one_place(std::span<const Spill::Extent> extents) {
    for (usize i = 1; i < extents.size(); i++)
        if (extents[i].at != extents[i - 1].at + extents[i - 1].size) return false;
    return true;
}

}  // namespace

void Spill::Mapped::unload(u32 process) const {
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

Spill::File::~File() {
    if (number >= 0) close(number);
}

Result<void> Spill::add_extent(Stream& stream, u64 size) {
    size = std::max(stream.room, (size + extent_unit) / extent_unit * extent_unit);
    if (ftruncate(file_->number, off_t(end_ + size)) != 0)
        return problem_of("cannot keep output of processes");
    stream.extents.push_back({end_, size});
    stream.room += size;
    end_ += size;
    return {};
}

Result<void> Spill::append(u32 process, int stream, std::string_view bytes) {
    std::lock_guard lock(mutex_);
    if (!file_) {
        auto made = std::make_shared<File>();
        made->number = TRY(open_unnamed());
        file_ = std::move(made);
    }
    TRY(check_room(file_->number, bytes.size()));
    Stream& to = streams_[key(process, stream)];
    if (to.size + bytes.size() >= to.room) TRY(add_extent(to, bytes.size()));
    u64 begin = 0, at = to.size;  // of an extent and of what is written next, in the stream
    for (const Extent& extent : to.extents) {
        const u64 count =
            at < begin + extent.size ? std::min<u64>(begin + extent.size - at, bytes.size()) : 0;
        TRY(write_at(file_->number, extent.at + (at - begin), bytes.data(), count));
        bytes.remove_prefix(count);
        at += count;
        begin += extent.size;
    }
    to.size = at;
    return {};
}

bool Spill::holds(u32 process, int stream) const {
    std::lock_guard lock(mutex_);
    return streams_.contains(key(process, stream));
}

std::vector<u64> Spill::keys() const {
    std::lock_guard lock(mutex_);
    std::vector<u64> all;
    for (const auto& [key, stream] : streams_) all.push_back(key);
    std::ranges::sort(all);
    return all;
}

// The file is mapped once, and streams that lie in several places once more: a process may not have
// many mappings.
Result<Spill::Mapped> Spill::map_all() {
    std::lock_guard lock(mutex_);
    Mapped mapped;
    if (end_ == 0) return mapped;
    auto kept = std::make_shared<MappedOutput>();
    kept->whole = file_;
    kept->mappings.push_back(TRY(Mapping::make(end_, MAP_PRIVATE, file_->number)));
    const char* first = kept->mappings[0].begin();
    for (const auto& [key, stream] : streams_) {
        if (stream.size == 0) continue;  // the first append failed
        const char* at = first + stream.extents[0].at;
        if (!is_in_one_place(stream.extents)) {
            kept->mappings.push_back(TRY(Mapping::of_extents(file_->number, stream.extents)));
            at = kept->mappings.back().begin();
        }
        mapped.streams[key] = {at, stream.size};
    }
    mapped.keeper = std::move(kept);
    return mapped;
}

Result<Spill::Mapped> Spill::take(u32 process) {
    std::lock_guard lock(mutex_);
    Mapped mapped;
    auto kept = std::make_shared<MappedOutput>();
    for (int stream : {1, 2}) {
        const auto taken = streams_.extract(key(process, stream));
        if (!taken || taken.mapped().size == 0) continue;
        const Stream& it = taken.mapped();
        kept->file = file_;
        kept->extents.insert(kept->extents.end(), it.extents.begin(), it.extents.end());
        kept->mappings.push_back(TRY(Mapping::of_extents(file_->number, it.extents)));
        mapped.streams[key(0, stream)] = {kept->mappings.back().begin(), it.size};
    }
    mapped.keeper = std::move(kept);
    return mapped;
}

}  // namespace gpurun::api
