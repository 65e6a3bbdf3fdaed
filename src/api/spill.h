// Output of many processes that is more than memory should hold: a file without a name, on disk.
//
// Each stream has extents of the file, each as large as all before it together, so that it has few
// of them. Nothing is copied in the end: the extents of a stream are mapped one behind the other,
// and a result points there. The file is gone with the program, however that ends.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun::api {

class Spill {
public:
    // Appends to stream 1 or 2 of a process. Returns an Error if there is no room for it.
    Result<void> append(u32 process, int stream, std::string_view bytes);
    bool holds(u32 process, int stream) const;

    struct Mapped {
        std::unordered_map<u64, std::string_view> streams;  // by key(), a NUL behind each
        std::shared_ptr<const void> keeper;                 // they live as long as this
        // Lets go of the memory that holds a process's streams; it comes back from the file.
        void unload(u32 process) const;
    };
    // Ends with a last piece for each stream that is held, by `rest`, and returns all of them.
    template <class Rest>
    Result<Mapped> map_all(Rest rest) {
        for (u64 key : keys()) {
            const std::string last = TRY(rest(u32(key >> 2), int(key & 3)));
            if (!last.empty()) TRY(append(u32(key >> 2), int(key & 3), last));
        }
        return map_all();
    }
    // Takes the streams of one process out, which has written all it will. Returns them as those of
    // process 0. Others get their room once the keeper is gone.
    Result<Mapped> take(u32 process);
    static u64 key(u32 process, int stream) { return u64{process} << 2 | u64(stream); }

    struct File {
        int number = -1;
        ~File();
    };
    struct Extent {
        u64 at, size;
    };

private:
    struct Stream {
        std::vector<Extent> extents;
        u64 size = 0, room = 0;  // bytes; there is always room for one more, the NUL
    };
    std::vector<u64> keys() const;  // sorted
    Result<Mapped> map_all();
    Result<void> add_extent(Stream& stream, u64 size);

    mutable std::mutex mutex_;
    std::shared_ptr<File> file_;
    u64 end_ = 0;
    std::unordered_map<u64, Stream> streams_;
};

}  // namespace gpurun::api
