// The numbers of WASI preview 1.
#pragma once

#include "base/ints.h"

namespace gpurun::wasi {

// Those that calls give, with their numbers.
#define GPURUN_ERRNOS(ERRNO) \
    ERRNO(success, 0)        \
    ERRNO(toobig, 1)         \
    ERRNO(again, 6)          \
    ERRNO(badf, 8)           \
    ERRNO(busy, 10)          \
    ERRNO(child, 12)         \
    ERRNO(exist, 20)         \
    ERRNO(fault, 21)         \
    ERRNO(fbig, 22)          \
    ERRNO(ilseq, 25)         \
    ERRNO(inval, 28)         \
    ERRNO(io, 29)            \
    ERRNO(isdir, 31)         \
    ERRNO(loop, 32)          \
    ERRNO(mfile, 33)         \
    ERRNO(nametoolong, 37)   \
    ERRNO(noent, 44)         \
    ERRNO(nomem, 48)         \
    ERRNO(nospc, 51)         \
    ERRNO(nosys, 52)         \
    ERRNO(notdir, 54)        \
    ERRNO(notempty, 55)      \
    ERRNO(notsock, 57)       \
    ERRNO(notsup, 58)        \
    ERRNO(perm, 63)          \
    ERRNO(pipe, 64)          \
    ERRNO(spipe, 70)         \
    ERRNO(srch, 71)          \
    ERRNO(notcapable, 76)

enum class Errno : u32 {
#define ERRNO(name, number) name = number,
    GPURUN_ERRNOS(ERRNO)
#undef ERRNO
};

constexpr const char* to_string(Errno error) {
    switch (error) {
#define ERRNO(name, number) \
    case Errno::name: return #name;
        GPURUN_ERRNOS(ERRNO)
#undef ERRNO
    }
    return "?";
}

enum Rights : u64 {
    right_fd_datasync = u64{1} << 0,
    right_fd_read = u64{1} << 1,
    right_fd_seek = u64{1} << 2,
    right_fd_fdstat_set_flags = u64{1} << 3,
    right_fd_sync = u64{1} << 4,
    right_fd_tell = u64{1} << 5,
    right_fd_write = u64{1} << 6,
    right_fd_advise = u64{1} << 7,
    right_fd_allocate = u64{1} << 8,
    right_path_create_directory = u64{1} << 9,
    right_path_create_file = u64{1} << 10,
    right_path_link_source = u64{1} << 11,
    right_path_link_target = u64{1} << 12,
    right_path_open = u64{1} << 13,
    right_fd_readdir = u64{1} << 14,
    right_path_readlink = u64{1} << 15,
    right_path_rename_source = u64{1} << 16,
    right_path_rename_target = u64{1} << 17,
    right_path_filestat_get = u64{1} << 18,
    right_path_filestat_set_size = u64{1} << 19,
    right_path_filestat_set_times = u64{1} << 20,
    right_fd_filestat_get = u64{1} << 21,
    right_fd_filestat_set_size = u64{1} << 22,
    right_fd_filestat_set_times = u64{1} << 23,
    right_path_symlink = u64{1} << 24,
    right_path_remove_directory = u64{1} << 25,
    right_path_unlink_file = u64{1} << 26,
    right_poll_fd_readwrite = u64{1} << 27,
};

inline constexpr u64 all_rights = (u64{1} << 28) - 1;
// What changes something.
inline constexpr u64 writing_rights =
    right_fd_datasync | right_fd_write | right_fd_allocate | right_path_create_directory |
    right_path_create_file | right_path_link_source | right_path_link_target |
    right_path_rename_source | right_path_rename_target | right_path_filestat_set_size |
    right_path_filestat_set_times | right_fd_filestat_set_size | right_fd_filestat_set_times |
    right_path_symlink | right_path_remove_directory | right_path_unlink_file;
// What can be done with directories, files and streams at all.
inline constexpr u64 directory_rights =
    right_fd_fdstat_set_flags | right_fd_sync | right_fd_advise | right_path_create_directory |
    right_path_create_file | right_path_link_source | right_path_link_target | right_path_open |
    right_fd_readdir | right_path_readlink | right_path_rename_source | right_path_rename_target |
    right_path_filestat_get | right_path_filestat_set_size | right_path_filestat_set_times |
    right_fd_filestat_get | right_fd_filestat_set_times | right_path_symlink |
    right_path_remove_directory | right_path_unlink_file | right_poll_fd_readwrite;
inline constexpr u64 file_rights =
    right_fd_datasync | right_fd_read | right_fd_seek | right_fd_fdstat_set_flags | right_fd_sync |
    right_fd_tell | right_fd_write | right_fd_advise | right_fd_allocate | right_fd_filestat_get |
    right_fd_filestat_set_size | right_fd_filestat_set_times | right_poll_fd_readwrite;
inline constexpr u64 stream_rights = right_fd_read | right_fd_fdstat_set_flags | right_fd_sync |
                                     right_fd_datasync | right_fd_write | right_fd_filestat_get |
                                     right_poll_fd_readwrite;

enum Filetype : u8 {
    filetype_unknown = 0,
    filetype_character_device = 2,
    filetype_directory = 3,
    filetype_regular_file = 4,
    filetype_symbolic_link = 7,
};

inline constexpr u32 fdflag_append = 1, fdflag_dsync = 2, fdflag_nonblock = 4, fdflag_rsync = 8,
                     fdflag_sync = 16, all_fdflags = 31;
inline constexpr u32 oflag_creat = 1, oflag_directory = 2, oflag_excl = 4, oflag_trunc = 8,
                     all_oflags = 15;
inline constexpr u32 lookup_symlink_follow = 1;
inline constexpr u32 fst_atim = 1, fst_atim_now = 2, fst_mtim = 4, fst_mtim_now = 8;
inline constexpr u32 whence_set = 0, whence_cur = 1, whence_end = 2;
inline constexpr u32 clock_realtime = 0, clock_monotonic = 1, clock_process = 2, clock_thread = 3;
inline constexpr u32 event_clock = 0, event_fd_read = 1, event_fd_write = 2;
inline constexpr u32 subclock_abstime = 1;
inline constexpr u32 first_preopen = 3;  // descriptor

}  // namespace gpurun::wasi
