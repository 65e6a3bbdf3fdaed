// A shell: starts programs by their names, joins them by pipes, waits for them.
//   shell                commands from standard input, line by line
//   shell -c COMMANDS    these commands
//
//   words < poem.txt | sort | uniq -c | sort -rn | head 3 > top.txt
//   false || echo "that went wrong: $?" && cat top.txt; exit 3
//
// Commands are separated by `;`, or by && and || that look at the exit code before; | joins the
// output of one with the input of the next; < > >> name files. '...' is taken as it stands, in
// "..." $NAME and
// $? are replaced, \ takes the next character as it is. # begins a comment. `exit [CODE]` ends it.
// There is no current directory, so no cd; no variables of its own, no patterns, no jobs in the
// background.
//
// The exit code of a pipeline is that of its last command: 134 after a trap, 127 if there is no
// such program, 126 if it could not be started, 1 if a file could not be opened, 2 for wrong
// syntax.
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu.h"

enum { not_found = 127, cannot_start = 126, cannot_open = 1, wrong_syntax = 2 };

static int last_code;

static void* must(void* memory) {
    if (memory) return memory;
    fprintf(stderr, "shell: no memory\n");
    exit(cannot_start);
}

// ---- text that grows ---------------------------------------------------------------

struct text {
    char* bytes;  // ended by a NUL
    size_t size, room;
};

static void append(struct text* text, char c) {
    if (text->size + 1 >= text->room) {
        text->room = text->room ? 2 * text->room : 64;
        text->bytes = must(realloc(text->bytes, text->room));
    }
    text->bytes[text->size++] = c;
    text->bytes[text->size] = 0;
}

static void append_string(struct text* text, const char* string) {
    while (*string) append(text, *string++);
}

// ---- tokens ------------------------------------------------------------------------

enum token_kind { word, less, great, great_great, bar, and_and, or_or, semicolon, end_of_line };

struct token {
    enum token_kind kind;
    const char* begin;  // of a word, as it was written
    size_t size;
};

static const struct {
    const char* text;
    enum token_kind kind;
} operators[] = {{">>", great_great}, {"&&", and_and}, {"||", or_or},   {"<", less},
                 {">", great},        {"|", bar},      {";", semicolon}};

static bool ends_word(char c) { return c == 0 || isspace((unsigned char)c) || strchr("<>|;&", c); }

// Where a word that begins at `at` ends; NULL: a quote is missing.
static const char* end_of_word(const char* at) {
    while (!ends_word(*at)) {
        const char quote = *at++;
        if (quote == '\\' && *at) {
            at++;
        } else if (quote == '\'') {
            at = strchr(at, '\'');
            if (!at) return NULL;
            at++;
        } else if (quote == '"') {
            for (; *at != '"'; at++) {
                if (*at == '\\' && at[1]) at++;
                if (!*at) return NULL;
            }
            at++;
        }
    }
    return at;
}

// The tokens of a line, which has room for as many as the line has characters, and one. What is
// wrong with it, or NULL.
static const char* tokenize(const char* at, struct token* token) {
    for (;;) {
        while (isspace((unsigned char)*at)) at++;
        if (*at == 0 || *at == '#') break;
        size_t i = 0;
        const size_t count = sizeof operators / sizeof *operators;
        while (i < count && strncmp(at, operators[i].text, strlen(operators[i].text))) i++;
        if (i < count) {
            *token++ = (struct token){.kind = operators[i].kind};
            at += strlen(operators[i].text);
            continue;
        }
        if (*at == '&') return "& is not known";
        const char* const end = end_of_word(at);
        if (!end) return "a quote is not closed";
        *token++ = (struct token){.kind = word, .begin = at, .size = (size_t)(end - at)};
        at = end;
    }
    *token = (struct token){.kind = end_of_line};
    return NULL;
}

// Replaces what stands behind a $ at `at`; where it ends.
static const char* expand_variable(const char* at, const char* end, struct text* to) {
    if (at < end && *at == '?') {
        char number[12];
        snprintf(number, sizeof number, "%d", last_code);
        append_string(to, number);
        return at + 1;
    }
    struct text name = {0};
    while (at < end && (isalnum((unsigned char)*at) || *at == '_')) append(&name, *at++);
    if (name.size == 0) {
        append(to, '$');
    } else if (getenv(name.bytes)) {
        append_string(to, getenv(name.bytes));
    }
    free(name.bytes);
    return at;
}

// A word as the program is to see it.
static char* expand(const struct token* token) {
    struct text result = {0};
    append_string(&result, "");
    char quote = 0;
    const char* const end = token->begin + token->size;
    for (const char* at = token->begin; at < end;) {
        const char c = *at++;
        if (quote == 0 && (c == '\'' || c == '"')) {
            quote = c;
        } else if (quote == c && quote != 0) {
            quote = 0;
        } else if (c == '\\' && quote != '\'' && at < end) {
            append(&result, *at++);
        } else if (c == '$' && quote != '\'') {
            at = expand_variable(at, end, &result);
        } else {
            append(&result, c);
        }
    }
    return result.bytes ? result.bytes : must(calloc(1, 1));
}

// ---- commands ----------------------------------------------------------------------

struct command {
    char** argv;  // ended by NULL
    size_t argc;
    char *input, *output;
    bool appends;
};

static void free_command(struct command* command) {
    for (size_t i = 0; i < command->argc; i++) free(command->argv[i]);
    free(command->argv);
    free(command->input);
    free(command->output);
}

static void complain(const char* what, int error) {
    fprintf(stderr, "shell: %s: %s\n", what, strerror(error));
}

// The file that a command reads or writes instead of `otherwise`, or -1.
static int open_file(const char* path, int flags, int otherwise) {
    if (!path) return otherwise;
    const int file = open(path, flags, 0666);
    if (file < 0) complain(path, errno);
    return file;
}

// Starts a command whose input and output are these unless it names files. 0, or an exit code.
static int start(const struct command* command, int input, int output, uint32_t* pid) {
    const int how = O_WRONLY | O_CREAT | (command->appends ? O_APPEND : O_TRUNC);
    const int from = open_file(command->input, O_RDONLY, input);
    const int to = from < 0 ? -1 : open_file(command->output, how, output);
    int code = cannot_open;
    if (to >= 0) {
        const gpu_fd fds[] = {{0, (uint32_t)from}, {1, (uint32_t)to}, {2, 2}};
        const int error =
            gpu_spawnve(command->argv[0], (const char* const*)command->argv, NULL, fds, 3, pid);
        if (error == ENOENT) {
            fprintf(stderr, "shell: %s: no such program\n", command->argv[0]);
        } else if (error) {
            complain(command->argv[0], error);
        }
        code = error == ENOENT ? not_found : error ? cannot_start : 0;
    }
    if (to >= 0 && to != output) close(to);
    if (from >= 0 && from != input) close(from);
    return code;
}

// Runs commands joined by pipes. The exit code of the last.
static int run_pipeline(const struct command* commands, size_t count) {
    uint32_t* const pids = must(calloc(count, sizeof *pids));
    int code = 0, input = 0;
    for (size_t i = 0; i < count; i++) {
        int next_input = 0, output = 1;
        if (i + 1 < count) {
            const int error = gpu_pipe(&next_input, &output);
            if (error) {
                complain("pipe", error);
                code = cannot_start;
                count = i;
                break;
            }
        }
        code = start(&commands[i], input, output, &pids[i]);
        // Its ends of the pipes are the child's now. While the shell holds one, nobody sees the
        // end.
        if (input != 0) close(input);
        if (output != 1) close(output);
        input = next_input;
    }
    if (input != 0) close(input);
    for (size_t i = 0; i < count; i++) {
        gpu_status status;
        if (pids[i] == 0) continue;
        const int error = gpu_waitpid(pids[i], &status);
        if (error) complain("wait", error);
        if (i + 1 == count) code = error ? cannot_start : gpu_shell_code(status);
    }
    free(pids);
    return code;
}

// ---- lines -------------------------------------------------------------------------

// Reads a command from the tokens at *at. What is wrong, or NULL.
static const char* read_command(const struct token** at, struct command* command) {
    *command = (struct command){.argv = must(calloc(1, sizeof(char*)))};
    for (;; (*at)++) {
        const enum token_kind kind = (*at)->kind;
        if (kind == word) {
            command->argv = must(realloc(command->argv, (command->argc + 2) * sizeof(char*)));
            command->argv[command->argc++] = expand(*at);
            command->argv[command->argc] = NULL;
        } else if (kind == less || kind == great || kind == great_great) {
            (*at)++;
            if ((*at)->kind != word) return "the name of a file is missing";
            char** const file = kind == less ? &command->input : &command->output;
            free(*file);
            *file = expand(*at);
            if (kind != less) command->appends = kind == great_great;
        } else {
            return command->argc ? NULL : "a command is missing";
        }
    }
}

static void leave(const struct command* command) {
    exit(command->argc > 1 ? atoi(command->argv[1]) & 0xff : last_code);
}

// Reads commands joined by pipes from *at and runs them, if they are to be run.
static const char* pipeline(const struct token** at, bool runs) {
    struct command* commands = NULL;
    size_t count = 0;
    const char* wrong;
    for (;; (*at)++) {
        commands = must(realloc(commands, (count + 1) * sizeof *commands));
        wrong = read_command(at, &commands[count++]);
        if (wrong || (*at)->kind != bar) break;
    }
    if (!wrong && runs) {
        if (count == 1 && strcmp(commands[0].argv[0], "exit") == 0) leave(&commands[0]);
        last_code = run_pipeline(commands, count);
    }
    for (size_t i = 0; i < count; i++) free_command(&commands[i]);
    free(commands);
    return wrong;
}

// Runs the commands of a line, or only looks whether that can be done. What is wrong, or NULL.
static const char* run_tokens(const struct token* at, bool only_looks) {
    bool runs = true;
    while (at->kind != end_of_line) {
        const char* const wrong = pipeline(&at, runs && !only_looks);
        if (wrong) return wrong;
        if (at->kind == and_and) {
            runs = last_code == 0;
        } else if (at->kind == or_or) {
            runs = last_code != 0;
        } else {
            runs = true;
        }
        if (at->kind == end_of_line) break;
        const bool may_end = at->kind == semicolon;
        at++;
        if (at->kind == end_of_line && !may_end) return "a command is missing";
    }
    return NULL;
}

static void run_line(const char* line) {
    struct token* const tokens = must(calloc(strlen(line) + 1, sizeof *tokens));
    const char* wrong = tokenize(line, tokens);
    if (!wrong) wrong = run_tokens(tokens, true);
    if (!wrong) wrong = run_tokens(tokens, false);
    if (wrong) {
        fprintf(stderr, "shell: %s: %s\n", line, wrong);
        last_code = wrong_syntax;
    }
    free(tokens);
}

// The next line of standard input, byte by byte: what follows it is for the programs that are
// started.
static bool read_line(struct text* line) {
    line->size = 0;
    char c;
    while (read(0, &c, 1) == 1) {
        if (c == '\n') return true;
        append(line, c);
    }
    return line->size > 0;
}

int main(int argc, char** argv) {
    if (argc == 3 && strcmp(argv[1], "-c") == 0) {
        for (char* line = strtok(argv[2], "\n"); line; line = strtok(NULL, "\n")) run_line(line);
        return last_code;
    }
    if (argc != 1) {
        fprintf(stderr, "usage: shell [-c COMMANDS]\n");
        return wrong_syntax;
    }
    const bool asks = isatty(0);
    struct text line = {0};
    for (;;) {
        if (asks) fprintf(stderr, "$ ");
        if (!read_line(&line)) break;
        if (line.size) run_line(line.bytes);
    }
    free(line.bytes);
    return last_code;
}
