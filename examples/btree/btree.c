// A small database: a B-tree of keys and values in a file of fixed-size pages.
//   btree FILE                    commands from standard input, one a line
//   btree FILE COMMAND [WORD...]  one command
// Commands: put KEY VALUE, get KEY, del KEY, list [FROM [TO]], count, check, fill FROM TO (puts
// k00FROM to k00TO). The value is the rest of the line. The exit code is 1 if a key was not found
// or `check` found the tree broken, 2 for wrong commands, 3 if the file could not be used.
//
// A page is a node. Every node but the root holds at least `least` records, so inserting splits
// full nodes and deleting fills sparse ones on the way down: one pass, no parent links. Pages that
// become free are chained from the header and used again. Nothing is cached: every step reads and
// writes the file, which is the point of the example.
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    page_size = 1024,
    key_size = 24,    // with the terminating zero
    value_size = 40,  // likewise
    least = 6,
    most = 2 * least + 1,
};

struct record {
    char key[key_size], value[value_size];
};

struct node {
    uint32_t count, is_leaf;
    uint32_t children[most + 1];
    struct record records[most];
    char unused[page_size - 8 - 4 * (most + 1) - most * (key_size + value_size)];
};
_Static_assert(sizeof(struct node) == page_size, "a node fills a page");

struct header {
    char magic[8];
    uint32_t root, pages, free_page, records;
    char unused[page_size - 24];
};
_Static_assert(sizeof(struct header) == page_size, "the header fills a page");

static int file;
static struct header header;

static void fail(const char* what) {
    fprintf(stderr, "btree: %s failed: %s\n", what, errno ? strerror(errno) : "short");
    exit(3);
}

static void read_page(uint32_t page, void* to) {
    errno = 0;
    if (lseek(file, (off_t)page * page_size, SEEK_SET) < 0) fail("lseek");
    if (read(file, to, page_size) != page_size) fail("read");
}

static void write_page(uint32_t page, const void* from) {
    errno = 0;
    if (lseek(file, (off_t)page * page_size, SEEK_SET) < 0) fail("lseek");
    if (write(file, from, page_size) != page_size) fail("write");
}

// A freed page holds the number of the next one in its first word.
static uint32_t take_page(void) {
    if (header.free_page == 0) return header.pages++;
    uint32_t page = header.free_page, first[page_size / 4];
    read_page(page, first);
    header.free_page = first[0];
    return page;
}

static void free_page(uint32_t page) {
    uint32_t words[page_size / 4] = {header.free_page};
    write_page(page, words);
    header.free_page = page;
}

static void open_file(const char* name) {
    file = open(name, O_RDWR | O_CREAT, 0644);
    if (file < 0) fail("open");
    off_t size = lseek(file, 0, SEEK_END);
    if (size == 0) {
        memcpy(header.magic, "btree 1", 8);
        header.root = 1;
        header.pages = 2;
        struct node empty = {.is_leaf = 1};
        write_page(0, &header);
        write_page(1, &empty);
        return;
    }
    read_page(0, &header);
    if (memcmp(header.magic, "btree 1", 8) != 0 || size != (off_t)header.pages * page_size) {
        fprintf(stderr, "btree: %s is no database\n", name);
        exit(3);
    }
}

// The first record whose key is not less; *found says whether it is equal.
static uint32_t search(const struct node* node, const char* key, int* found) {
    uint32_t low = 0, high = node->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (strcmp(node->records[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *found = low < node->count && strcmp(node->records[low].key, key) == 0;
    return low;
}

// Moves the records and children from i on by one to the right; `side` is 1 if the new child is to
// the right of the new record, 0 if to its left.
static void make_room(struct node* node, uint32_t i, uint32_t side) {
    memmove(&node->records[i + 1], &node->records[i], (node->count - i) * sizeof node->records[0]);
    memmove(&node->children[i + 1 + side], &node->children[i + side],
            (node->count + 1 - i - side) * sizeof node->children[0]);
    node->count++;
}

static void close_gap(struct node* node, uint32_t i, uint32_t side) {
    memmove(&node->records[i], &node->records[i + 1],
            (node->count - i - 1) * sizeof node->records[0]);
    memmove(&node->children[i + side], &node->children[i + 1 + side],
            (node->count - i - side) * sizeof node->children[0]);
    node->count--;
    // What is past the end is zero, so that equal trees are equal files.
    memset(&node->records[node->count], 0, sizeof node->records[0]);
    node->children[node->count + 1] = 0;
}

// The full child i of a node that is not full becomes two, its middle record moves up.
static void split(uint32_t page, struct node* node, uint32_t i) {
    struct node left, right = {0};
    uint32_t left_page = node->children[i], right_page = take_page();
    read_page(left_page, &left);
    right.is_leaf = left.is_leaf;
    right.count = least;
    memcpy(right.records, &left.records[least + 1], least * sizeof left.records[0]);
    memcpy(right.children, &left.children[least + 1], (least + 1) * sizeof left.children[0]);
    make_room(node, i, 1);
    node->records[i] = left.records[least];
    node->children[i + 1] = right_page;
    left.count = least;
    memset(&left.records[least], 0, (most - least) * sizeof left.records[0]);
    memset(&left.children[least + 1], 0, (most - least) * sizeof left.children[0]);
    write_page(left_page, &left);
    write_page(right_page, &right);
    write_page(page, node);
}

static void put(const struct record* record) {
    struct node node;
    uint32_t page = header.root;
    read_page(page, &node);
    if (node.count == most) {
        struct node root = {.children = {page}};
        header.root = take_page();
        split(header.root, &root, 0);
        page = header.root;
        node = root;
    }
    for (;;) {
        int found;
        uint32_t i = search(&node, record->key, &found);
        if (found || node.is_leaf) {
            if (!found) {
                make_room(&node, i, 1);
                header.records++;
            }
            node.records[i] = *record;
            write_page(page, &node);
            return;
        }
        struct node child;
        read_page(node.children[i], &child);
        if (child.count == most) {
            split(page, &node, i);
            continue;  // the record that came up may be the one looked for
        }
        page = node.children[i];
        node = child;
    }
}

static int get(const char* key, struct record* to) {
    struct node node;
    for (uint32_t page = header.root;;) {
        int found;
        read_page(page, &node);
        uint32_t i = search(&node, key, &found);
        if (found) {
            *to = node.records[i];
            return 1;
        }
        if (node.is_leaf) return 0;
        page = node.children[i];
    }
}

// Children i and i + 1 and the record between them become one node, in the page of the left.
static void merge(uint32_t page, struct node* node, uint32_t i) {
    struct node left, right;
    uint32_t left_page = node->children[i], right_page = node->children[i + 1];
    read_page(left_page, &left);
    read_page(right_page, &right);
    left.records[left.count] = node->records[i];
    memcpy(&left.records[left.count + 1], right.records, right.count * sizeof right.records[0]);
    memcpy(&left.children[left.count + 1], right.children,
           (right.count + 1) * sizeof right.children[0]);
    left.count += 1 + right.count;
    close_gap(node, i, 1);
    write_page(left_page, &left);
    write_page(page, node);
    free_page(right_page);
}

// Gives child i one record more than the least, from a neighbour or by merging with one. Returns
// the child's index, which merging to the left changes.
static uint32_t refill(uint32_t page, struct node* node, uint32_t i) {
    struct node child, other;
    read_page(node->children[i], &child);
    if (child.count > least) return i;
    if (i > 0) {
        read_page(node->children[i - 1], &other);
        if (other.count > least) {
            make_room(&child, 0, 0);
            child.records[0] = node->records[i - 1];
            child.children[0] = other.children[other.count];
            node->records[i - 1] = other.records[other.count - 1];
            close_gap(&other, other.count - 1, 1);
            write_page(node->children[i - 1], &other);
            write_page(node->children[i], &child);
            write_page(page, node);
            return i;
        }
    }
    if (i < node->count) {
        read_page(node->children[i + 1], &other);
        if (other.count > least) {
            child.records[child.count] = node->records[i];
            child.children[++child.count] = other.children[0];
            node->records[i] = other.records[0];
            close_gap(&other, 0, 0);
            write_page(node->children[i + 1], &other);
            write_page(node->children[i], &child);
            write_page(page, node);
            return i;
        }
    }
    if (i == node->count) i--;
    merge(page, node, i);
    return i;
}

// The largest record below a page (last) or the smallest.
static struct record outermost(uint32_t page, int last) {
    struct node node;
    for (read_page(page, &node); !node.is_leaf; read_page(page, &node))
        page = node.children[last ? node.count : 0];
    return node.records[last ? node.count - 1 : 0];
}

static int del(const char* text) {
    char key[key_size];
    memcpy(key, text, strlen(text) + 1);  // becomes another when a record is replaced
    int any = 0;
    uint32_t page = header.root;
    for (;;) {
        struct node node;
        int found;
        read_page(page, &node);
        if (node.count == 0 && !node.is_leaf) {  // the root lost its last record to a merge
            header.root = node.children[0];
            free_page(page);
            page = header.root;
            continue;
        }
        uint32_t i = search(&node, key, &found);
        if (node.is_leaf) {
            if (!found) return any;
            close_gap(&node, i, 1);
            header.records--;
            write_page(page, &node);
            return 1;
        }
        if (!found) {
            i = refill(page, &node, i);
            // The root may be empty now: look at it again.
            if (node.count > 0) page = node.children[i];
            continue;
        }
        // Inside: a neighbour from a leaf takes its place and is deleted there instead.
        any = 1;
        struct node left, right;
        read_page(node.children[i], &left);
        read_page(node.children[i + 1], &right);
        if (left.count > least || right.count > least) {
            int from_left = left.count > least;
            node.records[i] = outermost(node.children[i + !from_left], from_left);
            memcpy(key, node.records[i].key, key_size);
            write_page(page, &node);
            page = node.children[i + !from_left];
        } else {
            merge(page, &node, i);
            if (node.count > 0) page = node.children[i];
        }
    }
}

static void list(uint32_t page, const char* from, const char* to) {
    struct node node;
    read_page(page, &node);
    for (uint32_t i = 0; i <= node.count; i++) {
        int past = i < node.count && from && strcmp(node.records[i].key, from) < 0;
        if (!node.is_leaf && !past) list(node.children[i], from, to);
        if (i == node.count || past) continue;
        if (to && strcmp(node.records[i].key, to) > 0) return;
        printf("%s=%s\n", node.records[i].key, node.records[i].value);
    }
}

struct survey {
    uint32_t pages, records, depth;
    char last[key_size];
    int broken;
};

static void check(uint32_t page, uint32_t depth, struct survey* survey) {
    struct node node;
    read_page(page, &node);
    survey->pages++;
    if (node.count > most || (depth > 0 && node.count < least)) survey->broken = 1;
    if (node.is_leaf) {
        if (survey->depth == 0) survey->depth = depth + 1;
        if (survey->depth != depth + 1) survey->broken = 1;  // leaves are all equally deep
    }
    for (uint32_t i = 0; i <= node.count && !survey->broken; i++) {
        if (!node.is_leaf) check(node.children[i], depth + 1, survey);
        if (i == node.count) break;
        if (survey->records++ > 0 && strcmp(survey->last, node.records[i].key) >= 0)
            survey->broken = 1;
        memcpy(survey->last, node.records[i].key, key_size);
    }
}

static int report(void) {
    struct survey survey = {0};
    check(header.root, 0, &survey);
    uint32_t spare = 0;
    for (uint32_t page = header.free_page; page && spare < header.pages; spare++) {
        uint32_t words[page_size / 4];
        read_page(page, words);
        page = words[0];
    }
    if (survey.records != header.records || survey.pages + spare + 1 != header.pages)
        survey.broken = 1;
    printf("%s: %u records, depth %u, %u pages, %u of them free\n", survey.broken ? "BROKEN" : "ok",
           survey.records, survey.depth, header.pages, spare);
    return survey.broken;
}

static int wrong(const char* message, const char* word) {
    fprintf(stderr, "btree: %s: %s\n", message, word);
    return 2;
}

static int run(char** words, int count) {
    const char* command = words[0];
    struct record record = {0};
    if (count > 1 && strlen(words[1]) >= key_size) return wrong("key too long", words[1]);
    if (strcmp(command, "put") == 0 && count == 3) {
        if (strlen(words[2]) >= value_size) return wrong("value too long", words[2]);
        strcpy(record.key, words[1]);
        strcpy(record.value, words[2]);
        put(&record);
        return 0;
    }
    if (strcmp(command, "get") == 0 && count == 2) {
        if (!get(words[1], &record)) {
            printf("no %s\n", words[1]);
            return 1;
        }
        printf("%s\n", record.value);
        return 0;
    }
    if (strcmp(command, "del") == 0 && count == 2) {
        if (del(words[1])) return 0;
        printf("no %s\n", words[1]);
        return 1;
    }
    if (strcmp(command, "fill") == 0 && count == 3) {
        int from = atoi(words[1]), to = atoi(words[2]), step = from <= to ? 1 : -1;
        for (int i = from; i != to + step; i += step) {
            snprintf(record.key, key_size, "k%05d", i);
            snprintf(record.value, value_size, "%d squared is %lld", i, (long long)i * i);
            put(&record);
        }
        return 0;
    }
    if (strcmp(command, "list") == 0 && count <= 3) {
        list(header.root, count > 1 ? words[1] : NULL, count > 2 ? words[2] : NULL);
        return 0;
    }
    if (strcmp(command, "count") == 0 && count == 1) {
        printf("%u\n", header.records);
        return 0;
    }
    if (strcmp(command, "check") == 0 && count == 1) return report();
    return wrong("what does this mean", command);
}

// Splits at spaces, at most two; the third word is the rest.
static int split_line(char* line, char* words[3]) {
    int count = 0;
    line[strcspn(line, "\r\n")] = '\0';
    while (count < 3) {
        line += strspn(line, " \t");
        if (!*line) break;
        words[count++] = line;
        if (count == 3) break;
        line += strcspn(line, " \t");
        if (*line) *line++ = '\0';
    }
    return count;
}

int main(int argc, char** argv) {
    if (argc < 2 || argc > 5) {
        fprintf(stderr,
                "usage: btree FILE [put KEY VALUE | get KEY | del KEY | list [FROM [TO]] | "
                "fill FROM TO | count | check]\n");
        return 2;
    }
    open_file(argv[1]);
    int code = 0;
    if (argc > 2) {
        code = run(argv + 2, argc - 2);
    } else {
        char line[256], *words[3];
        while (fgets(line, sizeof line, stdin)) {
            int count = split_line(line, words);
            if (count == 0 || words[0][0] == '#') continue;
            int result = run(words, count);
            if (result > code) code = result;
        }
    }
    write_page(0, &header);
    if (close(file) != 0) fail("close");
    return code;
}
