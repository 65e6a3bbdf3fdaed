// Output of many processes that is more than memory should hold: a file without a name, on disk.
//
// What comes while processes run is appended in the order in which it comes. In the end the pieces
// of each stream are put together in a second file, which is mapped: a result points into it. Both
// files are gone with the program, however that ends.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
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
    // one place: what is mapped there lives as long as `keeper`. That may take long; a moment after
    // `stop`, which may be null, is requested the rest is left out.
    struct Packed {
        std::unordered_map<u64, std::string_view> streams;  // by key()
        std::shared_ptr<const void> keeper;
        bool is_whole = true;
        // Lets go of the memory that holds a process's streams; it comes back from the file.
        void unload(u32 process) const;
    };
    template <class Rest>
    Result<Packed> pack(Rest rest, const std::atomic<bool>* stop) {
        for (u64 key : keys()) {
            const std::string last = TRY(rest(u32(key >> 2), int(key & 3)));
            if (!last.empty()) TRY(append(u32(key >> 2), int(key & 3), last));
        }
        return pack(stop);
    }
    // Takes the streams of one process out, which has written all it will. Returns them as those of
    // process 0.
    Result<Packed> take(u32 process, const std::atomic<bool>* stop);
    static constexpr const char* cut_short =
        "stopped while large outputs were read; the rest is lost";
    static u64 key(u32 process, int stream) { return u64{process} << 2 | u64(stream); }

private:
    struct Piece {
        u64 at, size;
    };
    using Stream = std::pair<u64, std::vector<Piece>>;  // its key, and where it is
    std::vector<u64> keys() const;                      // sorted
    Result<Packed> pack(const std::atomic<bool>* stop);
    Result<Packed> put_together(const std::vector<Stream>& streams, const std::atomic<bool>* stop);

    mutable std::mutex mutex_;
    int file_ = -1;
    u64 end_ = 0;
    std::unordered_map<u64, std::vector<Piece>> pieces_;
    // When taking streams out is given up, once somebody wants to stop.
    std::optional<std::chrono::steady_clock::time_point> give_up_;
};

}  // namespace gpurun::api
