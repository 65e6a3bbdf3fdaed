// Conway's Game of Life on a torus: life WIDTH HEIGHT GENERATIONS [SEED]
// Starts from noise made of the seed, or, without one, from what standard input draws: '#', 'O'
// and '*' are alive, lines beyond the field are an error. Prints the last generation.
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct field {
    int width, height;
    unsigned char* cells;
};

static void die(const char* message, const char* what) {
    fprintf(stderr, "life: %s%s%s\n", message, what ? ": " : "", what ? what : "");
    exit(2);
}

static int number(const char* text, int most) {
    char* end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || *end || end == text || value < 0 || value > most)
        die("not a number in range", text);
    return (int)value;
}

static struct field new_field(int width, int height) {
    struct field field = {width, height, calloc((size_t)width * height, 1)};
    if (!field.cells) die("no memory", NULL);
    return field;
}

// xorshift64*: the same noise wherever it runs, which rand() does not promise.
static uint32_t noise(uint64_t* state) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)(*state * 0x2545F4914F6CDD1D >> 32);
}

static void fill(struct field field, unsigned seed) {
    uint64_t state = 0x9E3779B97F4A7C15 ^ (uint64_t)seed << 17 ^ seed;
    for (int i = 0; i < field.width * field.height; i++) field.cells[i] = noise(&state) % 3 == 0;
}

static void draw(struct field field) {
    int x = 0, y = 0, c;
    while ((c = getchar()) != EOF) {
        if (c == '\r') continue;
        if (c == '\n') {
            x = 0;
            y++;
            continue;
        }
        if (x >= field.width || y >= field.height)
            die("the drawing is larger than the field", NULL);
        field.cells[y * field.width + x++] = c == '#' || c == 'O' || c == '*';
    }
}

static void advance(struct field from, struct field to) {
    int w = from.width, h = from.height;
    for (int y = 0; y < h; y++) {
        const unsigned char* rows[3] = {from.cells + (y + h - 1) % h * w, from.cells + y * w,
                                        from.cells + (y + 1) % h * w};
        for (int x = 0; x < w; x++) {
            int left = (x + w - 1) % w, right = (x + 1) % w, sum = 0;
            for (int i = 0; i < 3; i++) sum += rows[i][left] + rows[i][x] + rows[i][right];
            // The cell itself is in the sum: three makes or keeps a cell, four keeps one.
            to.cells[y * w + x] = sum == 3 || (sum == 4 && rows[1][x]);
        }
    }
}

int main(int argc, char** argv) {
    if (argc < 4 || argc > 5) {
        fprintf(stderr, "usage: life WIDTH HEIGHT GENERATIONS [SEED]\n");
        return 2;
    }
    struct field now = new_field(number(argv[1], 4096), number(argv[2], 4096));
    if (now.width == 0 || now.height == 0) die("an empty field", NULL);
    struct field next = new_field(now.width, now.height);
    int generations = number(argv[3], 1000000000);
    if (argc > 4)
        fill(now, (unsigned)number(argv[4], 1000000000));
    else
        draw(now);
    for (int i = 0; i < generations; i++) {
        advance(now, next);
        struct field old = now;
        now = next;
        next = old;
    }
    int alive = 0;
    for (int y = 0; y < now.height; y++) {
        for (int x = 0; x < now.width; x++) {
            int cell = now.cells[y * now.width + x];
            alive += cell;
            putchar(cell ? '#' : '.');
        }
        putchar('\n');
    }
    printf("%d of %d alive after %d generations\n", alive, now.width * now.height, generations);
    free(now.cells);
    free(next.cells);
    return 0;
}
