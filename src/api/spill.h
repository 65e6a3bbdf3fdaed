// Output of many processes that is more than memory should hold: a file without a name, on disk.
//
// What comes while processes run is appended in the order in which it comes. In the end the pieces
// of each stream are put together in a second file, which is mapped: a result points into it. Both
// files are gone with the program, however that ends.
#pragma once

#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/ints.h"
#include "base/result.h"

namespace gpurun::api {

class Spill {
public:
    ~Spill();
    // Appends to stream 1 or 2 of a process. An Error: there is no room for it.
    Result<void> append(u32 process, int stream, std::string_view bytes);
    bool holds(u32 process, int stream) const;
    // Ends with a last piece for each stream that is held, by `rest`, and returns all of them in
    // one place: what is mapped there lives as long as `keeper`.
    struct Packed {
        std::unordered_map<u64, std::string_view> streams;  // by key()
        std::shared_ptr<const void> keeper;
        // Lets go of the memory that holds a process's streams; it comes back from the file.
        void unload(u32 process) const;
    };
    template <class Rest>
    Result<Packed> pack(Rest rest) {
        for (u64 key : keys()) {
            const std::string last = TRY(rest(u32(key >> 2), int(key & 3)));
            if (!last.empty()) TRY(append(u32(key >> 2), int(key & 3), last));
        }
        return pack();
    }
    static u64 key(u32 process, int stream) { return u64{process} << 2 | u64(stream); }

private:
    struct Piece {
        u64 at, size;
    };
    std::vector<u64> keys() const;  // sorted
    Result<Packed> pack();

    mutable std::mutex mutex_;
    int file_ = -1;
    u64 end_ = 0;
    std::unordered_map<u64, std::vector<Piece>> pieces_;
};

}  // namespace gpurun::api
