// What a person or a script at the other end sees of a program: endings WHAT [ARGUMENT...].
// "loop", "sleep", "wait" and "trap" write a file first and say that they are ready.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int fine, const char* what) {
    if (fine) return;
    perror(what);
    exit(1);
}

static void put(const char* name, int flags, const char* text) {
    int fd = open(name, O_WRONLY | O_CREAT | flags, 0644);
    must(fd >= 0, name);
    must(write(fd, text, strlen(text)) == (ssize_t)strlen(text), name);
    must(close(fd) == 0, name);
}

static void ask(void) {
    char line[100];
    for (;;) {
        printf("Your name? ");
        fflush(stdout);
        if (!fgets(line, sizeof line, stdin)) break;
        line[strcspn(line, "\n")] = 0;
        printf("Hello, %s.\n", line);
    }
    printf("nobody\n");
}

// What each way to change something answers. In a folder that may only be read: what kept it.
static void change(void) {
    struct {
        const char* how;
        int result;
    } ways[] = {
        {"write", write(open("given.txt", O_WRONLY), "9", 1) == 1 ? 0 : -1},
        {"truncate", open("given.txt", O_WRONLY | O_TRUNC)},
        {"make a file", open("new.txt", O_WRONLY | O_CREAT, 0644)},
        {"make a folder", mkdir("folder", 0755)},
        {"link", link("given.txt", "link.txt")},
        {"symlink", symlink("given.txt", "symlink.txt")},
        {"rename", rename("other.txt", "taken.txt")},
        {"remove", unlink("third.txt")},
        {"read", open("given.txt", O_RDONLY)},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        printf("%s: %s\n", ways[i].how, ways[i].result < 0 ? "refused" : "done");
}

int main(int argc, char** argv) {
    const char* what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "ask")) {
        ask();
    } else if (!strcmp(what, "lines")) {
        for (long i = 1;; i++) must(printf("line %ld\n", i) > 0, "standard output");
    } else if (!strcmp(what, "print")) {
        must(printf("something\n") > 0 && fflush(stdout) == 0, "standard output");
    } else if (!strcmp(what, "complain")) {
        fprintf(stderr, "complaint\n");
    } else if (!strcmp(what, "append") && argc == 4) {
        put(argv[2], O_APPEND, argv[3]);
    } else if (!strcmp(what, "change")) {
        change();
    } else {
        put("made.txt", O_TRUNC, "made before the end\n");
        unlink("old.txt");
        printf("ready\n");
        fflush(stdout);
        volatile long sum = 0;
        while (!strcmp(what, "loop")) sum++;
        if (!strcmp(what, "sleep")) sleep(1000);
        if (!strcmp(what, "wait")) getchar();
        if (!strcmp(what, "trap")) __builtin_trap();
        if (!strcmp(what, "exit")) exit(5);
    }
    return 0;
}
