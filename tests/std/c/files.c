// Files and folders by the C library and POSIX, with the errors that they must give: files AREA
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

// Numbers differ between systems, names do not.
static const char* error_name(void) {
    switch (errno) {
        case ENOENT: return "ENOENT";
        case EEXIST: return "EEXIST";
        case ENOTDIR: return "ENOTDIR";
        case EISDIR: return "EISDIR";
        case ENOTEMPTY: return "ENOTEMPTY";
        case EBADF: return "EBADF";
        case EINVAL: return "EINVAL";
        case ELOOP: return "ELOOP";
        case EACCES: return "EACCES";
        case EPERM: return "EPERM";
        case ESPIPE: return "ESPIPE";
        case ENAMETOOLONG: return "ENAMETOOLONG";
        default: return strerror(errno);
    }
}

static void show(const char* what, long result) {
    if (result < 0)
        printf("%s: %s\n", what, error_name());
    else
        printf("%s: %ld\n", what, result);
}

static void must(int fine, const char* what) {
    if (fine) return;
    printf("%s failed: %s\n", what, error_name());
    exit(1);
}

static void put(const char* name, const char* text) {
    FILE* file = fopen(name, "w");
    must(file && fputs(text, file) >= 0 && fclose(file) == 0, name);
}

static void print_file(const char* name) {
    char text[256];
    FILE* file = fopen(name, "r");
    if (!file) {
        printf("%s: %s\n", name, error_name());
        return;
    }
    size_t length = fread(text, 1, sizeof text, file);
    fclose(file);
    printf("%s: %zu [", name, length);
    for (size_t i = 0; i < length; i++) putchar(text[i] == '\n' ? '/' : text[i] ? text[i] : '0');
    puts("]");
}

static int by_name(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

static int list(const char* folder, int quiet) {
    char* names[1024];
    int count = 0;
    DIR* dir = opendir(folder);
    if (!dir) {
        printf("%s/: %s\n", folder, error_name());
        return -1;
    }
    for (struct dirent* entry; (entry = readdir(dir));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        const char* mark = entry->d_type == DT_DIR ? "/" : entry->d_type == DT_LNK ? "@" : "";
        must(asprintf(&names[count++], "%s%s", entry->d_name, mark) > 0, "asprintf");
    }
    closedir(dir);
    qsort(names, (size_t)count, sizeof names[0], by_name);
    if (!quiet) printf("%s/:", folder);
    for (int i = 0; i < count; i++) {
        if (!quiet) printf(" %s", names[i]);
        free(names[i]);
    }
    if (!quiet) puts("");
    return count;
}

static void modes(void) {
    print_file("given.txt");
    FILE* file = fopen("a.txt", "w");
    fprintf(file, "one\ntwo\nthree\n");
    fclose(file);
    file = fopen("a.txt", "a");
    fprintf(file, "four\n");
    printf("append at %ld\n", ftell(file));
    fclose(file);
    file = fopen("a.txt", "r+");
    fseek(file, 4, SEEK_SET);
    fputs("TWO", file);
    fseek(file, 0, SEEK_END);
    printf("length %ld\n", ftell(file));
    fclose(file);
    print_file("a.txt");
    file = fopen("a.txt", "w+");
    fputs("new", file);
    rewind(file);
    printf("again %c\n", fgetc(file));
    fclose(file);
    print_file("a.txt");
    show("exclusive", fopen("a.txt", "wx") ? 0 : -1);
    show("missing", fopen("none", "r") ? 0 : -1);
    show("missing folder", fopen("none/x", "w") ? 0 : -1);
    show("folder", open(".", O_WRONLY));
}

static void descriptors(void) {
    int fd = open("b.bin", O_RDWR | O_CREAT | O_EXCL, 0644);
    must(fd >= 0, "open");
    show("write", write(fd, "0123456789", 10));
    show("lseek", lseek(fd, 3, SEEK_SET));
    char text[16] = {0};
    show("read", read(fd, text, 4));
    show("pread", pread(fd, text + 4, 4, 1));
    show("position", lseek(fd, 0, SEEK_CUR));
    show("pwrite", pwrite(fd, "XY", 2, 20));
    puts(text);
    show("read at the end", lseek(fd, 0, SEEK_END) + read(fd, text, 5));
    show("before the start", lseek(fd, -1, SEEK_SET));
    show("ftruncate", ftruncate(fd, 30));
    struct stat status;
    show("fstat", fstat(fd, &status));
    printf("size %lld file %d\n", (long long)status.st_size, S_ISREG(status.st_mode));
    show("fsync", fsync(fd));
    show("fdatasync", fdatasync(fd));
    show("close", close(fd));
    show("close again", close(fd));
    print_file("b.bin");
    show("exclusive", open("b.bin", O_WRONLY | O_CREAT | O_EXCL, 0644));
    show("truncate", truncate("b.bin", 4));
    print_file("b.bin");
    fd = open("b.bin", O_WRONLY | O_APPEND);
    lseek(fd, 0, SEEK_SET);
    show("append", write(fd, "end", 3));
    show("read what is written", read(fd, text, 1));
    close(fd);
    print_file("b.bin");
    fd = open("b.bin", O_RDONLY);
    show("write what is read", write(fd, "x", 1));
    close(fd);
    fd = open("b.bin", O_WRONLY | O_TRUNC);
    close(fd);
    print_file("b.bin");
    show("not a folder", open("b.bin", O_RDONLY | O_DIRECTORY));
    show("bad descriptor", read(77, text, 1));
}

// A file takes and gives all parts at once, as POSIX has it.
static void vectors(void) {
    char text[16] = {0};
    int fd = open("v.bin", O_RDWR | O_CREAT, 0644);
    must(write(fd, "0123456789", 10) == 10, "write");
    struct iovec parts[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    show("writev", writev(fd, parts, 3));
    struct iovec places[2] = {{text, 2}, {text + 8, 7}};
    show("lseek", lseek(fd, -7, SEEK_CUR));
    show("readv", readv(fd, places, 2));
    printf("%.2s %.5s\n", text, text + 8);
    show("preadv", preadv(fd, places, 2, 1));
    printf("%.2s %.7s\n", text, text + 8);
    show("pwritev", pwritev(fd, parts, 3, 0));
    show("position", lseek(fd, 0, SEEK_CUR));
    close(fd);
    print_file("v.bin");
}

static void folders(void) {
    show("mkdir", mkdir("d", 0755));
    show("mkdir again", mkdir("d", 0755));
    show("mkdir deep", mkdir("x/y", 0755));
    show("mkdir", mkdir("d/e", 0755));
    put("d/one", "1");
    put("d/e/two", "22");
    list("d", 0);
    show("rmdir", rmdir("d/e"));
    show("rmdir of a file", rmdir("d/one"));
    show("unlink of a folder", unlink("d/e"));
    show("rename", rename("d/one", "d/e/moved"));
    show("rename", rename("d/e", "f"));
    list("d", 0);
    list("f", 0);
    show("rename over", rename("f/moved", "f/two"));
    print_file("f/two");
    show("rename of nothing", rename("none", "other"));
    show("rename a folder to a file", rename("d", "f/two"));
    show("rename a file to a folder", rename("f/two", "d"));
    show("through a file", open("f/two/x", O_RDONLY));
    print_file("d/../f/./two");
    print_file("f//two");
    show("access", access("f/two", R_OK));
    show("access nothing", access("f/none", F_OK));
    struct stat status;
    show("stat", stat("f", &status));
    printf("folder %d\n", S_ISDIR(status.st_mode));
    show("stat of nothing", stat("f/none", &status));
    int dir = open("f", O_RDONLY | O_DIRECTORY);
    int fd = openat(dir, "at", O_WRONLY | O_CREAT, 0644);
    show("openat write", write(fd, "at", 2));
    close(fd);
    show("fstatat", fstatat(dir, "at", &status, 0));
    show("mkdirat", mkdirat(dir, "sub", 0755));
    show("renameat", renameat(dir, "at", dir, "at2"));
    show("unlinkat", unlinkat(dir, "sub", AT_REMOVEDIR));
    list("f", 0);
    close(dir);
    show("rmdir", rmdir("d"));
    list("d", 0);
}

// Deleting while reading must neither miss nor repeat an entry.
static void deletion(void) {
    must(mkdir("many", 0755) == 0, "mkdir");
    for (int i = 0; i < 500; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/a file with number %d", i);
        put(name, "");
    }
    printf("many %d\n", list("many", 1));
    DIR* stream = opendir("many");
    int deleted = 0;
    for (struct dirent* entry; (entry = readdir(stream));) {
        char name[300];
        if (entry->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "many/%s", entry->d_name);
        must(unlink(name) == 0, name);
        deleted++;
    }
    rewinddir(stream);
    int left = 0;
    for (struct dirent* entry; (entry = readdir(stream));) left += entry->d_name[0] != '.';
    closedir(stream);
    printf("deleted %d left %d\n", deleted, left);
    show("rmdir", rmdir("many"));
    list("many", 0);
}

static void links(void) {
    char target[64] = {0};
    struct stat status;
    put("l.txt", "linked");
    must(mkdir("f", 0755) == 0, "mkdir");
    put("f/two", "in a folder");
    show("symlink", symlink("l.txt", "soft"));
    show("symlink again", symlink("other", "soft"));
    show("readlink", readlink("soft", target, sizeof target));
    puts(target);
    print_file("soft");
    show("lstat", lstat("soft", &status));
    printf("link %d\n", S_ISLNK(status.st_mode));
    show("stat", stat("soft", &status));
    printf("size %lld\n", (long long)status.st_size);
    show("readlink of a file", readlink("l.txt", target, sizeof target));
    show("nofollow", open("soft", O_RDONLY | O_NOFOLLOW));
    show("dangling", symlink("nowhere", "dangling"));
    print_file("dangling");
    show("loop", symlink("loop2", "loop1") + symlink("loop1", "loop2"));
    print_file("loop1");
    show("folder", symlink("f", "flink"));
    print_file("flink/two");
    show("link", link("l.txt", "hard"));
    FILE* file = fopen("hard", "a");
    fputs(" hard", file);
    fclose(file);
    stat("l.txt", &status);
    printf("links %d\n", (int)status.st_nlink);
    print_file("l.txt");
    show("unlink", unlink("l.txt"));
    print_file("hard");
    print_file("soft");
    list(".", 0);
    const char* names[] = {"hard", "soft", "dangling", "loop1", "loop2", "flink"};
    for (int i = 0; i < 6; i++) must(unlink(names[i]) == 0, names[i]);
}

static void times(void) {
    struct stat before, after;
    put("a.txt", "dated");
    struct timespec set[2] = {{1000000000, 5000}, {1500000000, 123456000}};
    show("utimensat", utimensat(AT_FDCWD, "a.txt", set, 0));
    stat("a.txt", &before);
    printf("%lld %ld %lld\n", (long long)before.st_mtim.tv_sec, (long)before.st_mtim.tv_nsec,
           (long long)before.st_atim.tv_sec);
    int fd = open("a.txt", O_WRONLY);
    must(write(fd, "x", 1) == 1, "write");
    fstat(fd, &after);
    printf("newer %d\n", after.st_mtim.tv_sec > before.st_mtim.tv_sec);
    set[0].tv_nsec = UTIME_OMIT;
    show("futimens", futimens(fd, set));
    fstat(fd, &after);
    printf("%lld %lld\n", (long long)after.st_mtim.tv_sec, (long long)after.st_atim.tv_sec);
    close(fd);
    stat(".", &before);
    printf("inodes differ %d\n", before.st_ino != after.st_ino);
}

static void open_and_gone(void) {
    int fd = open("gone", O_RDWR | O_CREAT, 0644);
    must(write(fd, "still here", 10) == 10, "write");
    show("unlink", unlink("gone"));
    char text[16] = {0};
    show("pread", pread(fd, text, 10, 0));
    puts(text);
    show("name", access("gone", F_OK));
    close(fd);
    // As many descriptors as a shell would allow without asking.
    int open_files[60], count = 0;
    for (; count < 60; count++)
        if ((open_files[count] = open("a.txt", O_RDONLY)) < 0) break;
    printf("open at once %d\n", count);
    while (count > 0) close(open_files[--count]);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } areas[] = {{"modes", modes},     {"descriptors", descriptors}, {"vectors", vectors},
                 {"folders", folders}, {"deletion", deletion},       {"links", links},
                 {"times", times},     {"gone", open_and_gone}};
    for (size_t i = 0; argc > 1 && i < sizeof areas / sizeof areas[0]; i++) {
        if (strcmp(areas[i].name, argv[1]) != 0) continue;
        areas[i].run();
        list(".", 0);
        return 0;
    }
    fprintf(stderr, "usage: files AREA\n");
    return 2;
}
