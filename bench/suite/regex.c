// A backtracking matcher of regular expressions: . * + ? ^ $ and classes, on lines of text.
#include "suite.h"

static int match_here(const char* pattern, const char* text);

// Returns where the atom at the start of the pattern ends.
static const char* atom_end(const char* pattern) {
    if (*pattern != '[') return pattern + 1;
    while (*pattern != ']') pattern++;
    return pattern + 1;
}

static int match_atom(const char* pattern, char c) {
    if (c == 0) return 0;
    if (*pattern == '.') return 1;
    if (*pattern != '[') return *pattern == c;
    int wanted = 1, found = 0;
    if (*++pattern == '^') wanted = 0, pattern++;
    for (; *pattern != ']'; pattern++) {
        if (pattern[1] == '-' && pattern[2] != ']') {
            found |= c >= pattern[0] && c <= pattern[2];
            pattern += 2;
        } else {
            found |= c == *pattern;
        }
    }
    return found == wanted;
}

static int match_repeated(const char* atom, const char* rest, const char* text, int least,
                          int most) {
    int count = 0;
    while (count < most && match_atom(atom, text[count])) count++;
    for (; count >= least; count--)
        if (match_here(rest, text + count)) return 1;
    return 0;
}

static int match_here(const char* pattern, const char* text) {
    for (;;) {
        if (*pattern == 0) return 1;
        if (*pattern == '$' && pattern[1] == 0) return *text == 0;
        const char* end = atom_end(pattern);
        switch (*end) {
            case '*': return match_repeated(pattern, end + 1, text, 0, 1 << 20);
            case '+': return match_repeated(pattern, end + 1, text, 1, 1 << 20);
            case '?': return match_repeated(pattern, end + 1, text, 0, 1);
        }
        if (!match_atom(pattern, *text)) return 0;
        pattern = end, text++;
    }
}

static int search(const char* pattern, const char* text) {
    if (*pattern == '^') return match_here(pattern + 1, text) ? 0 : -1;
    for (int at = 0;; at++) {
        if (match_here(pattern, text + at)) return at;
        if (text[at] == 0) return -1;
    }
}

uint32_t run(uint32_t instance) {
    static const char* const patterns[] = {"a.*b.*c$",          "^[a-d]+x?[^e]*z", "[0-9]+-[0-9]+",
                                           "q[aeiou]?u.*[xyz]", "(.*a.*a.*a)",     "b+c*d+e?f"};
    uint32_t random = seed_of(instance), sum = 0;
    char line[80];
    for (int i = 0; i < 24; i++) {
        int length = 24 + (int)(next_random(&random) % 48);
        for (int k = 0; k < length; k++)
            line[k] = "abcdefgaquxyz019-bcd(a)x"[next_random(&random) % 24];
        line[length] = 0;
        for (int p = 0; p < 6; p++) sum = mix(sum, (uint32_t)search(patterns[p], line));
    }
    return sum;
}
