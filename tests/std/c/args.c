// Arguments, environment, exit: args [exit CODE | _exit CODE | abort | return CODE] WORDS...
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

static void last(void) { puts("atexit, last"); }
static void first(void) { puts("atexit, first"); }

static int by_text(const void* a, const void* b) {
    return strcmp(*(char* const*)a, *(char* const*)b);
}

int main(int argc, char** argv) {
    printf("%d arguments\n", argc);
    for (int i = 0; i < argc; i++) printf("%d [%s] %zu\n", i, argv[i], strlen(argv[i]));
    printf("ends with %s\n", argv[argc] ? "something" : "NULL");
    int count = 0;
    while (environ && environ[count]) count++;
    if (count) qsort(environ, (size_t)count, sizeof environ[0], by_text);
    for (int i = 0; i < count; i++) puts(environ[i]);
    const char* name = getenv("NAME");
    printf("%d variables, NAME %s\n", count, name ? name : "unset");
    setenv("NEW", "1", 1);
    setenv("NAME", "kept", 0);
    putenv("PUT=x=y");
    unsetenv("EMPTY");
    printf("NEW %s PUT %s EMPTY %s NAME %s\n", getenv("NEW"), getenv("PUT"),
           getenv("EMPTY") ? "set" : "unset", getenv("NAME"));
    atexit(last);
    atexit(first);
    const char* way = argc > 1 ? argv[1] : "";
    int code = argc > 2 ? atoi(argv[2]) : 0;
    printf("leaving");
    if (strcmp(way, "exit") == 0) exit(code);
    if (strcmp(way, "_exit") == 0) {
        fflush(stdout);
        _exit(code);
    }
    if (strcmp(way, "abort") == 0) {
        fflush(stdout);
        abort();
    }
    return code;
}
