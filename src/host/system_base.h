// Makes the base of system memory (abi/system.h) from directories of the host, arguments and
// standard input before a launch. Also reads the contents of files that were too large to be part
// of it. Knows nothing of devices or of what processes do with it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "abi/system.h"
#include "base/ints.h"
#include "base/result.h"
#include "host/files.h"
#include "host/transaction.h"
#include "host/write_through.h"

namespace gpurun::host {

inline constexpr u64 cold_size = u64{1} << 20;  // larger files stay with the host
inline constexpr u64 max_warm = u64{8} << 20;   // bytes of contents; files beyond are cold too
// The limit instead of max_warm where waiting for the host takes long, or many processes may wait.
inline constexpr u64 max_warm_ahead = u64{256} << 20;
inline constexpr u32 max_host_depth = 256;        // of a directory tree: then an Error
inline constexpr u64 live_input = u64{64} << 10;  // bytes of input at a time
inline constexpr u64 held_output = u64{64}
                                   << 10;  // of a stream, on the device: then a writer waits
inline constexpr u64 heap_alignment = u64{64} << 10;
inline constexpr u64 max_arena = u64{1} << (32 + handle_shift);  // what handles can name

struct Mount {
    std::string host_path, guest_path;
    bool is_writable = false;
};

// The number, arguments and input that one process of many has of its own.
struct ProcessInput {
    u32 number = 0;                      // that the process sees as its own
    std::vector<std::string> arguments;  // the program's name first
    // All of standard input. Null: the input that all processes share.
    std::shared_ptr<const std::vector<u8>> input;
};

// What a user puts into system memory for all processes of a launch.
struct SystemContents {
    std::vector<Mount> mounts;
    std::vector<std::string> environment;          // "NAME=VALUE"
    std::shared_ptr<const std::vector<u8>> input;  // all of standard input
    std::optional<u64> seed;
    bool keeps_files = false, is_traced = false;
    u64 output_limit = held_output;
    // Hears of files that are written back, also of those of an earlier run.
    WriteListener write_listener = {};
};

// What a run has in system memory, and what one launch needs in addition.
struct SystemOptions : SystemContents {
    std::vector<std::string> arguments;  // the program's name first
    bool has_numbered_arguments = false;
    // One for each process, instead of `arguments`. Empty: all processes have the same. Only read
    // while the base is made.
    std::span<const ProcessInput> inputs;
    u32 process_count = 1;
    bool is_live = false;
    u64 arena_size = 0;
    u64 warm_file = cold_size, warm_bytes = max_warm;  // limits instead of these
    u32 debug_capacity = 0;
    // Called before each file is read. Once it returns true, making the base ends with an Error.
    std::function<bool()> is_cancelled = {};
};

// What the host's file of a node of the base was like when it was read.
struct HostFile {
    Handle node;
    u32 mode, owner, group;
    Identity identity;
    s64 accessed;
};

class SystemBase {
public:
    static Result<SystemBase> make(const SystemOptions& options);

    SystemBase(SystemBase&&) noexcept;
    SystemBase& operator=(SystemBase&&) noexcept;
    ~SystemBase();

    // Returns the beginning of the arena: the header, then what it refers to. From there to
    // base_end() are zeros. The header's clocks are those of when the base was made.
    std::span<const u8> bytes() const { return bytes_; }
    u64 base_end() const { return base_end_; }
    // Returns the header for another launch, with the clocks of now.
    SystemHeader fresh_header() const;
    static void stamp(SystemHeader& header);

    u32 preopen_count() const { return u32(mounts_.size()); }
    const Mount& mount(u32 preopen) const { return mounts_[preopen]; }
    int directory(u32 preopen) const { return directories_[preopen].get(); }

    // Finds the host's file of a node of the base. Returns null if it is no file or directory.
    const HostFile* host_file(Handle node) const;
    // Returns the directories below a preopen's that are in another file system than their parent.
    const std::vector<std::string>& file_systems(u32 preopen) const {
        return file_systems_[preopen];
    }

    // Returns what was written through so far. One thread of a launch writes.
    WrittenThrough& written() const { return *written_; }

    // Returns who is told of the progress of writing back.
    const WriteListener& write_listener() const { return write_listener_; }

    // Return how much was left out, so that the tool can warn.
    u32 skipped_names() const { return skipped_names_; }  // names and links that are not UTF-8
    u32 unreadable() const { return unreadable_; }        // files and directories

    // Return contents of cold files (node_is_cold). Numbers come from a device and are not trusted.
    u32 cold_count() const;
    Result<std::vector<u8>> read_blocks(u32 host_id, u64 block, u64 count) const;
    Result<std::vector<u8>> read_block(u32 host_id, u64 block) const {
        return read_blocks(host_id, block, 1);
    }
    // Reads bytes of a cold file. Behind the end that it had when the base was made are zeros.
    Result<void> read_cold(u32 host_id, u64 offset, std::span<u8> to) const;
    // Keeps the file that a path leads to now open for read_cold(), before the path is given to
    // another file.
    void keep_cold_open(u32 preopen, const std::string& path) const;

private:
    friend class SystemBaseBuilder;
    struct ColdFiles;
    SystemBase();

    std::vector<u8> bytes_;
    u64 base_end_ = 0;
    std::vector<Mount> mounts_;
    std::vector<File> directories_;
    std::vector<HostFile> host_files_;  // by their nodes
    std::vector<std::vector<std::string>> file_systems_;
    u32 skipped_names_ = 0, unreadable_ = 0;
    std::unique_ptr<ColdFiles> cold_;
    std::unique_ptr<WrittenThrough> written_;
    WriteListener write_listener_;
};

}  // namespace gpurun::host
