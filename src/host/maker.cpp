#include "host/maker.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace gpurun::host {
namespace {

timespec time_of(u64 nanoseconds) {
    return {time_t(nanoseconds / 1'000'000'000), long(nanoseconds % 1'000'000'000)};
}

// Returns true if a symbolic link in `folder` could lead out of the mount: by an absolute path, by
// more ".." than the folder is deep, or by a ".." after a name. That name may become a link to
// anywhere later; without such names a path is within the mount at every step, whatever the others
// become.
bool leads_out(std::string_view folder, std::string_view text) {
    s64 depth = folder.empty() ? 0 : 1 + std::count(folder.begin(), folder.end(), '/');
    if (text.starts_with('/')) return true;
    for (bool has_name = false; !text.empty();) {
        std::string_view name = text.substr(0, text.find('/'));
        text.remove_prefix(std::min(text.size(), name.size() + 1));
        if (name == ".." && (has_name || --depth < 0)) return true;
        has_name |= !name.empty() && name != "." && name != "..";
    }
    return false;
}

// Sets owner and mode as far as the system allows. A program's contents do not get bits beyond
// those of reading, writing and executing.
bool set_attributes(int file, const HostFile& source, u32 more) {
    if (fchown(file, source.owner, source.group) != 0) (void)!fchown(file, -1, source.group);
    return fchmod(file, (source.mode & 0777) | more) == 0;
}

}  // namespace

Result<void> Maker::check_name(const Change& change) const {
    // A directory of the reserved name could be mistaken for a transaction.
    for (std::string_view rest = change.path; !rest.empty(); rest = split_path(rest).first)
        if (split_path(rest).second == staging_name)
            return Error{"gpu-run keeps that name for itself"};
    return {};
}

// Returns the host's file whose owner and mode a new one gets: that of which it is a copy, or that
// whose name it takes.
const HostFile* Maker::source_of(const Change& change, const Node& node) const {
    const bool is_base = offset_of(change.node) < system_base_.base_end();
    const HostFile* source = system_base_.host_file(is_base ? change.node : node.origin);
    if (!source && change.base) source = system_base_.host_file(change.base);
    const bool is_directory = node.kind == NodeKind::directory;
    if (source && S_ISDIR(source->mode) == is_directory && !S_ISLNK(source->mode)) return source;
    return nullptr;
}

Result<void> Maker::write_content(int file, Content& content) const {
    auto fail = [] { return Error{reason(errno)}; };
    u64 end = 0;
    for (u64 i = content.next_block(0); i < content.block_count(); i = content.next_block(i + 1)) {
        Arena block = TRY(content.block(i));
        if (is_zero(block)) continue;
        if (!write_at(file, i * file_block, block)) return fail();
        end = i * file_block + block.size();
    }
    if (end != content.size() && ftruncate(file, off_t(content.size())) != 0) return fail();
    timespec times[2] = {time_of(content.node().accessed), time_of(content.node().modified)};
    futimens(file, times);  // some file systems have none
    return {};
}

Result<void> Maker::make_file(const Change& change, int directory, const std::string& name) const {
    Content content = TRY(Content::make(arena_, change.node, &system_base_));
    const HostFile* source = source_of(change, content.node());
    File file(openat(directory, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                     source ? 0600 : 0644));
    if (!file) return Error{reason(errno)};
    Result<void> written = write_content(file.get(), content);
    if (written && source && !set_attributes(file.get(), *source, 0))
        written = Error{reason(errno)};
    if (written && syncs_ && fsync(file.get()) != 0) written = Error{reason(errno)};
    if (!file.close() && written) written = Error{reason(errno)};
    if (!written) unlinkat(directory, name.c_str(), 0);
    return written;
}

Result<void> Maker::make_symlink(const Change& change, int directory,
                                 const std::string& name) const {
    Node node = TRY(node_at(arena_, change.node));
    std::string text(TRY(symlink_text(arena_, node)));
    // A link that comes from the host is kept even if it is absolute: it means the same wherever it
    // is.
    bool is_hosts = offset_of(change.node) < system_base_.base_end() ||
                    (node.origin && system_base_.host_file(node.origin));
    bool is_allowed =
        !leads_out(split_path(change.path).first, text) || (is_hosts && text.starts_with('/'));
    if (text.empty() || text.find('\0') != text.npos || !is_allowed)
        return Error{
            "a symbolic link that leads out of the directory, or could once names have moved"};
    if (symlinkat(text.c_str(), directory, name.c_str()) != 0) return Error{reason(errno)};
    return {};
}

// Lets the user write there in any case: otherwise what is in it could not be moved.
void Maker::finish_directory(const Change& change, int directory) const {
    Result<Node> node = node_at(arena_, change.node);
    File file(openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!node || !file) return;
    if (const HostFile* source = source_of(change, *node))
        set_attributes(file.get(), *source, S_IRWXU);
    timespec times[2] = {time_of(node->accessed), time_of(node->modified)};
    futimens(file.get(), times);
    if (syncs_) fsync(file.get());
}

bool make_directory(int directory, const std::string& name) {
    if (mkdirat(directory, name.c_str(), 0777) == 0) return true;
    if (errno != EEXIST) return false;
    struct stat info;
    if (fstatat(directory, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode))
        return true;
    errno = EEXIST;
    return false;
}

File reach_directory(int root, std::string_view path) {
    File at = open_directory(root, path);
    if (at || errno != ENOENT) return at;
    at = open_directory(root, "");
    while (at && !path.empty()) {
        std::string name(path.substr(0, path.find('/')));
        path.remove_prefix(std::min(path.size(), name.size() + 1));
        if (!is_name(name) || !make_directory(at.get(), name)) return File();
        at = open_directory(at.get(), name);
    }
    return at;
}

}  // namespace gpurun::host
