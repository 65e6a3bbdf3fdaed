// The base part of system memory (abi/system.h), made from directories of the host, arguments and
// standard input before a launch. Also brings the contents of files that were too large to be part
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
// The limit in place of max_warm where a process waits long for what the host reads, or many may.
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

// What one process of many has of its own.
struct ProcessInput {
    u32 number = 0;                      // what it is told that it is
    std::vector<std::string> arguments;  // the program's name first
    // All of standard input; nothing: what all processes have.
    std::shared_ptr<const std::vector<u8>> input;
};

// What a user puts into system memory, the same for all processes of a launch.
struct SystemContents {
    std::vector<Mount> mounts;
    std::vector<std::string> environment;          // "NAME=VALUE"
    std::shared_ptr<const std::vector<u8>> input;  // all of standard input
    std::optional<u64> seed;
    bool keeps_files = false, is_traced = false;
    u64 output_limit = held_output;
    // Told of files that are written back, also of those of an earlier run.
    WriteListener write_listener = {};
};

// What a run has in system memory, with what one launch needs besides.
struct SystemOptions : SystemContents {
    std::vector<std::string> arguments;  // the program's name first
    bool has_numbered_arguments = false;
    // One for each process, instead of `arguments`; empty: they are all alike. Only looked at while
    // the base is made.
    std::span<const ProcessInput> inputs;
    u32 process_count = 1;
    bool is_live = false;
    u64 arena_size = 0;
    u64 warm_file = cold_size, warm_bytes = max_warm;  // other limits than those
    u32 debug_capacity = 0;
    // Asked before each file is read: then the base is given up with an Error.
    std::function<bool()> is_cancelled = {};
};

// What the host knew of a node of the base when it was loaded.
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

    // The beginning of the arena: the header, then what it leads to. From there to base_end() are
    // zeros. The header's clocks are those of when the base was made.
    std::span<const u8> bytes() const { return bytes_; }
    u64 base_end() const { return base_end_; }
    // The header for another launch, with the clocks of now.
    SystemHeader fresh_header() const;
    static void stamp(SystemHeader& header);

    u32 preopen_count() const { return u32(mounts_.size()); }
    const Mount& mount(u32 preopen) const { return mounts_[preopen]; }
    int directory(u32 preopen) const { return directories_[preopen].get(); }

    // Finds the host's file of a node of the base. Returns null if it is no file or directory.
    const HostFile* host_file(Handle node) const;
    // Directories below a preopen's that lie in other file systems than what they are in.
    const std::vector<std::string>& file_systems(u32 preopen) const {
        return file_systems_[preopen];
    }

    // One launch has one thread that writes.
    WrittenThrough& written() const { return *written_; }

    // Who is told how far writing back is.
    const WriteListener& write_listener() const { return write_listener_; }

    // What the tool may want to warn about.
    u32 skipped_names() const { return skipped_names_; }  // names and links that are not UTF-8
    u32 unreadable() const { return unreadable_; }        // files and directories

    // Contents of a node with node_is_cold. Numbers of a device are not trusted.
    u32 cold_count() const;
    Result<std::vector<u8>> read_blocks(u32 host_id, u64 block, u64 count) const;
    Result<std::vector<u8>> read_block(u32 host_id, u64 block) const {
        return read_blocks(host_id, block, 1);
    }
    // Past the end that the file had when the base was made are zeros.
    Result<void> read_cold(u32 host_id, u64 offset, std::span<u8> to) const;
    // Keeps what a path leads to now for read_cold, before it leads to something else.
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
