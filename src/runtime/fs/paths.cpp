// Resolves paths to nodes. No path leads out of the directory it starts from.
#include "runtime/fs/files.h"

namespace gpurun::rt {
namespace {

// The part of a path that is not resolved yet. It lies at the end of the scratch memory, so that
// the text of a symbolic link can be put before it.
struct Rest {
    u8* bytes;
    u32 at, end;

    bool is_empty() const { return at == end; }
    bool put_before(const u8* text, u32 length) {
        if (length + 1 > at) return false;
        at--;
        bytes[at] = '/';
        at -= length;
        for (u32 i = 0; i < length; i++) bytes[at + i] = text[i];
        return true;
    }
    Name next() {
        Name name{bytes + at, 0};
        while (at < end && bytes[at] != '/') {
            at++;
            name.length++;
        }
        return name;
    }
    bool skip_slashes() {
        bool any = false;
        for (; at < end && bytes[at] == '/'; at++) any = true;
        return any;
    }
};

// Bytes that symbolic links may put into one path in all: then ELOOP. Bounds the time of a call.
constexpr u32 max_link_text = 4 * max_path;

bool is_dots(Name name, u32 count) {
    if (name.length != count) return false;
    for (u32 i = 0; i < count; i++)
        if (name.bytes[i] != '.') return false;
    return true;
}

}  // namespace

Errno check_text(const u8* text, u32 length) {
    for (u32 i = 0; i < length;) {
        u8 first = load_bytes<u8>(text + i);
        if (first == 0) return Errno::inval;
        u32 count = first < 0x80   ? 1
                    : first < 0xc2 ? 0
                    : first < 0xe0 ? 2
                    : first < 0xf0 ? 3
                    : first < 0xf5 ? 4
                                   : 0;
        if (count == 0 || i + count > length) return Errno::ilseq;
        for (u32 k = 1; k < count; k++)
            if ((load_bytes<u8>(text + i + k) & 0xc0) != 0x80) return Errno::ilseq;
        u8 second = count > 2 ? load_bytes<u8>(text + i + 1) : u8(0);
        if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
            (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f))
            return Errno::ilseq;
        i += count;
    }
    return length > 0 && load_bytes<u8>(text) == '/' ? Errno::perm : Errno::success;
}

Place resolve(const Owner& owner, Handle start, const u8* path, u32 length, LastLink last_link,
              const Scratch& scratch) {
    const Process& p = owner.p;
    auto failed = [](Errno error) { return Place{error, 0, 0, {nullptr, 0}, false}; };
    if (scratch.bytes() == nullptr) return failed(Errno::nomem);
    if (length == 0) return failed(Errno::noent);
    if (length >= max_path) return failed(Errno::nametoolong);
    Rest rest{scratch.bytes(), 2 * max_path - length, 2 * max_path};
    for (u32 i = 0; i < length; i++) rest.bytes[rest.at + i] = load_bytes<u8>(path + i);
    if (Errno error = check_text(rest.bytes + rest.at, length); error != Errno::success)
        return failed(error);
    Place place{Errno::success, start, start, {nullptr, 0}, false};
    Handle directory = start;
    // Ends: every turn takes a name off the path, and only max_symlinks links put names back.
    for (u32 links = 0, link_text = 0;;) {
        Name name = rest.next();
        bool has_slash = rest.skip_slashes();
        bool is_last = rest.is_empty();
        if (name.length > max_name) return failed(Errno::nametoolong);
        if (node_at(p, directory)->kind != NodeKind::directory) return failed(Errno::notdir);
        if (name.length == 0 || is_dots(name, 1)) {
            place = {Errno::success, directory, directory, {nullptr, 0}, true};
        } else if (is_dots(name, 2)) {
            if (directory == start) return failed(Errno::perm);
            directory = current_node(owner, node_at(p, directory)->parent);
            place = {Errno::success, directory, directory, {nullptr, 0}, true};
        } else {
            const Node* dir = node_at(p, directory);
            u32 position = find_entry(p, dir, name);
            Handle found = position == no_entry ? 0 : entries_of(p, dir)[position].node;
            const Node* node = found == 0 ? nullptr : node_at(p, found);
            bool follows = !is_last || last_link == LastLink::follows ||
                           (has_slash && last_link == LastLink::follows_a_slash);
            if (node != nullptr && node->kind == NodeKind::symlink && follows) {
                const u8* text = at_handle<u8>(p, node->content);
                link_text += node->content_count;
                if (++links > max_symlinks || link_text > max_link_text) return failed(Errno::loop);
                if (node->content_count == 0) return failed(Errno::noent);
                if (text[0] == '/') return failed(Errno::perm);
                // A slash behind the link asks for a directory.
                if (is_last && !has_slash) {
                    if (node->content_count > rest.at) return failed(Errno::nametoolong);
                    rest.at -= node->content_count;
                    for (u32 i = 0; i < node->content_count; i++) rest.bytes[rest.at + i] = text[i];
                } else if (!rest.put_before(text, node->content_count)) {
                    return failed(Errno::nametoolong);
                }
                continue;
            }
            place = {Errno::success, directory, found, name, has_slash};
            if (!is_last && found == 0) return failed(Errno::noent);
            bool must_be_directory = !is_last || (has_slash && last_link != LastLink::stays);
            if (found != 0 && must_be_directory && node->kind != NodeKind::directory)
                return failed(Errno::notdir);
            if (found != 0 && !is_last) directory = found;
        }
        if (is_last) return place;
    }
}

}  // namespace gpurun::rt
