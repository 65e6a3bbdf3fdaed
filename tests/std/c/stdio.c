// The C library's formatted input and output: all conversions, streams, buffers.
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

static void integers(void) {
    printf("[%d] [%5d] [%-5d] [%05d] [%+d] [% d] [%.3d] [%8.3d] [%-8.3d|]\n", 42, 42, 42, -42, 42,
           42, 7, -7, 7);
    printf("%u %x %X %#x %o %#o %c %% %i\n", 4000000000u, 255, 255, 255, 8, 8, 'c', -1);
    printf("%hhd %hd %lld %llu %zu %jd %td\n", (char)-1, (short)-2, LLONG_MIN, ULLONG_MAX,
           (size_t)9, (intmax_t)-9, (ptrdiff_t)3);
    printf("%" PRId64 " %" PRIx32 " %" PRIu8 "\n", INT64_MIN, UINT32_MAX, (uint8_t)200);
    printf("%*d|%-*d|%.*d|%*.*f|\n", 6, 1, 6, 2, 3, 3, 8, 2, 3.14159);
    printf("%2$s %1$d %2$s\n", 5, "twice");
    int so_far = 0;
    printf("count%n it: ", &so_far);
    printf("%d\n", so_far);
}

static void floats(void) {
    printf("%f %.0f %.1f %10.3f|%-10.3f|%+.2f %010.2f\n", 3.14159, 2.5, 0.05, 2.71828, 2.71828, 1.0,
           -1.5);
    printf("%e %.3E %g %g %g %G %#g\n", 12345.678, 0.00012345, 1e-5, 100000.0, 1e6, 1e-10, 1.0);
    printf("%a %A %.2a %a\n", 1.5, 255.0, 3.14159, 0.0);
    printf("%f %F %e %g %f\n", INFINITY, -INFINITY, NAN, -INFINITY, -0.0);
    printf("%.17g %.17g %.17g\n", 0.1, DBL_MAX, DBL_MIN);
    printf("%.20f %.30e %g\n", 1.0 / 3, 2.0 / 3, 4.9406564584124654e-324);
    printf("%.60f\n", 1e-50);
    printf("%.0f\n", 1e60);
}

static void strings(void) {
    printf("[%s] [%10s] [%-10s] [%.2s] [%10.2s] [%c]\n", "text", "right", "left", "cut", "both",
           'x');
    printf("[%ls] [%lc]\n", L"wide", (wint_t)L'w');
    char small[8];
    printf("%d %s\n", snprintf(small, sizeof small, "%s-%d", "truncated", 5), small);
    printf("%d\n", snprintf(NULL, 0, "%d%s", 12345, "abc"));
    char* made = NULL;
    printf("%d ", asprintf(&made, "%05.1f", 2.25));
    puts(made);
    free(made);
}

static int formatted(char* to, size_t size, const char* format, ...) {
    va_list args;
    va_start(args, format);
    int length = vsnprintf(to, size, format, args);
    va_end(args);
    return length;
}

static void scanning(void) {
    int a, b, c, n, count;
    unsigned u;
    long long big;
    char word[16], set[16], letters[4] = {0};
    double d;
    float f;
    signed char tiny;
    count = sscanf("12 -0x1f 017 99", "%d %i %i %n", &a, &b, &c, &n);
    printf("%d: %d %d %d at %d\n", count, a, b, c, n);
    count = sscanf("ff 777 42", "%x %o %u", (unsigned*)&a, (unsigned*)&b, &u);
    printf("%d: %d %d %u\n", count, a, b, u);
    count = sscanf("word abcxyz!end qed", "%15s %15[a-z]!%*s %3c", word, set, letters);
    printf("%d: %s %s %s\n", count, word, set, letters);
    count = sscanf("3.25 -1e-3 0x1p4 inf", "%lf %f %lf", &d, &f, &d);
    printf("%d: %g %g\n", count, d, (double)f);
    count = sscanf("-9223372036854775808 -5", "%lld %hhd", &big, &tiny);
    printf("%d: %lld %d\n", count, big, tiny);
    printf("%d %d %d\n", sscanf("x", "%d", &a), sscanf("", "%d", &a),
           sscanf("1,2", "%d,%d,%d", &a, &b, &c));
    count = sscanf("2024-03-04T05:06", "%4d-%2d-%2dT%2d", &a, &b, &c, &n);
    printf("%d: %d %d %d %d\n", count, a, b, c, n);
    printf("%ld %lu %g %lld\n", strtol("  -42xyz", NULL, 10), strtoul("ff", NULL, 16),
           strtod("1e-2z", NULL), strtoll("0777", NULL, 0));
}

static void from_stdin(void) {
    int number;
    char word[32], line[64];
    printf("scanf %d: ", scanf("%d %31s", &number, word));
    printf("%d %s\n", number, word);
    printf("rest [%s]", fgets(line, sizeof line, stdin));
    printf("getchar %c ungetc ", getchar());
    ungetc('U', stdin);
    printf("%c\n", getchar());
    char* text = NULL;
    size_t room = 0;
    ssize_t length = getline(&text, &room, stdin);
    printf("getline %zd [%.*s]\n", length, (int)length - 1, text);
    length = getdelim(&text, &room, ';', stdin);
    printf("getdelim %zd [%s]\n", length, text);
    free(text);
    int sum = 0, items = 0;
    while (scanf("%d", &number) == 1) sum += number, items++;
    printf("%d numbers, sum %d, eof %d error %d\n", items, sum, feof(stdin) != 0,
           ferror(stdin) != 0);
}

static void streams(void) {
    FILE* file = fopen("stream.txt", "w+");
    if (!file) {
        perror("stream.txt");
        exit(1);
    }
    char buffer[32];
    setvbuf(file, buffer, _IOFBF, sizeof buffer);
    for (int i = 0; i < 10; i++) fprintf(file, "line %d\n", i);
    fputs("end", file);
    fputc('!', file);
    rewind(file);
    int lines = 0;
    for (int c; (c = fgetc(file)) != EOF;) lines += c == '\n';
    printf("%d lines, at %ld, eof %d\n", lines, ftell(file), feof(file) != 0);
    fseek(file, -4, SEEK_END);
    char end[8] = {0};
    printf("fread %zu %s\n", fread(end, 1, sizeof end - 1, file), end);
    clearerr(file);
    fpos_t mark;
    fseek(file, 7, SEEK_SET);
    fgetpos(file, &mark);
    fgets(end, sizeof end, file);
    fsetpos(file, &mark);
    fputs("LINE", file);
    fflush(file);
    fseek(file, 0, SEEK_SET);
    char all[128];
    size_t length = fread(all, 1, sizeof all - 1, file);
    all[length] = '\0';
    printf("%.21s", all);
    fclose(file);
    remove("stream.txt");

    char* text = NULL;
    size_t size = 0;
    FILE* memory = open_memstream(&text, &size);
    for (int i = 0; i < 100; i++) fprintf(memory, "%d,", i);
    fclose(memory);
    printf("memory %zu %.10s\n", size, text);
    memory = fmemopen(text, size, "r");
    int a, b;
    printf("%d %d %d\n", fscanf(memory, "%d,%d", &a, &b), a, b);
    fclose(memory);
    free(text);
}

int main(void) {
    integers();
    floats();
    strings();
    char text[32];
    printf("%d ", formatted(text, sizeof text, "%s %d %.1f", "va", 1, 2.0));
    puts(text);
    scanning();
    from_stdin();
    streams();
    fprintf(stderr, "to standard error, %s\n", "formatted");
    fwrite("bytes\n", 1, 6, stdout);
    return 0;
}
