// Tries to leave the folder it was given, by every way a path has, and to use descriptors that are
// not its own. Each must be refused; what error says so is not asked.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int escaped;

static void refused(const char* what, int result) {
    printf("%s: %s\n", what, result < 0 ? "refused" : "ALLOWED");
    escaped += result >= 0;
}

static void open_refused(const char* path) {
    char what[512];
    snprintf(what, sizeof what, "open %.200s", path);
    int fd = open(path, O_RDONLY);
    refused(what, fd);
    if (fd >= 0) close(fd);
}

int main(void) {
    struct stat status;
    mkdir("d", 0755);
    int folder = open("d", O_RDONLY | O_DIRECTORY);
    // The file secret.txt lies beside the folder that is given, where the test put it.
    open_refused("../secret.txt");
    open_refused("d/../../secret.txt");
    open_refused("d/../d/../../secret.txt");
    open_refused("./../secret.txt");
    open_refused("/../secret.txt");
    open_refused("//../../../../../../../../etc/passwd");
    open_refused("/etc/passwd");
    open_refused("/proc/self/environ");
    refused("openat ..", openat(folder, "../../secret.txt", O_RDONLY));
    refused("openat absolute", openat(folder, "/etc/passwd", O_RDONLY));
    refused("create outside", open("../made.txt", O_WRONLY | O_CREAT, 0644));
    refused("mkdir outside", mkdir("../made", 0755));
    refused("stat outside", stat("../secret.txt", &status));
    refused("unlink outside", unlink("../secret.txt"));
    refused("rename in", rename("../secret.txt", "stolen.txt"));
    refused("rename out", rename("d", "../d"));
    refused("link in", link("../secret.txt", "stolen.txt"));
    refused("list outside", opendir("..") ? 0 : -1);

    // Making such a link may be allowed; following it may not.
    const char* targets[] = {"..", "../secret.txt", "/etc/passwd", "d/../../secret.txt"};
    for (int i = 0; i < 4; i++) {
        char name[16], path[32];
        snprintf(name, sizeof name, "link%d", i);
        if (symlink(targets[i], name) != 0) symlink("missing", name);
        snprintf(path, sizeof path, i == 0 ? "%s/secret.txt" : "%s", name);
        open_refused(path);
        unlink(name);
    }

    char byte;
    refused("read a descriptor of nobody", (int)read(50, &byte, 1));
    refused("read a negative descriptor", (int)read(-1, &byte, 1));
    refused("close a descriptor of nobody", close(1000000));
    char path[5000];
    memset(path, 'x', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    refused("a long name", open(path, O_RDONLY));
    refused("invalid UTF-8", open("\xff\xfe", O_RDONLY));
    rmdir("d");
    puts(escaped ? "ESCAPED" : "contained");
    return escaped > 0;
}
