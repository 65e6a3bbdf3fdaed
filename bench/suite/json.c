// Writes a JSON document of its own, parses it into a tree of nodes, and sums the tree up.
#include "suite.h"

typedef enum { NUL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT } Kind;

typedef struct Node {
    Kind kind;
    int64_t number;  // of NUMBER in thousandths; of BOOLEAN 0 or 1
    char* text;      // of STRING
    char* name;      // of a member of an OBJECT
    struct Node *first, *next;
} Node;

// ---- writing

typedef struct {
    char* at;
    uint32_t random;
} Writer;

static void put(Writer* writer, const char* text) {
    while (*text) *writer->at++ = *text++;
}

static void put_number(Writer* writer, uint32_t value) {
    char digits[12];
    int n = 0;
    do digits[n++] = (char)('0' + value % 10);
    while (value /= 10);
    while (n > 0) *writer->at++ = digits[--n];
}

static void put_string(Writer* writer) {
    int length = 3 + (int)(next_random(&writer->random) % 10);
    *writer->at++ = '"';
    for (int i = 0; i < length; i++) {
        uint32_t kind = next_random(&writer->random) % 40;
        if (kind == 0)
            put(writer, "\\n");
        else if (kind == 1)
            put(writer, "\\u0041");
        else
            *writer->at++ = (char)('a' + kind % 26);
    }
    *writer->at++ = '"';
}

static void write_document(Writer* writer) {
    put(writer, "{\"items\": [");
    for (int i = 0; i < 12; i++) {
        put(writer, i ? ", {\"id\": " : "{\"id\": ");
        put_number(writer, next_random(&writer->random) % 100000);
        put(writer, ", \"name\": ");
        put_string(writer);
        put(writer, ", \"price\": -");
        put_number(writer, next_random(&writer->random) % 1000);
        put(writer, ".");
        put_number(writer, 100 + next_random(&writer->random) % 900);
        put(writer, ", \"tags\": [");
        int tags = (int)(next_random(&writer->random) % 4);
        for (int k = 0; k < tags; k++) {
            if (k) put(writer, ",");
            put_string(writer);
        }
        put(writer, next_random(&writer->random) & 1 ? "], \"ok\": true}" : "], \"ok\": null}");
    }
    put(writer, "], \"end\": false}");
    *writer->at = 0;
}

// ---- parsing

typedef struct {
    const char* at;
    int failed;
} Parser;

static Node* parse_value(Parser* parser);

static void skip_space(Parser* parser) {
    while (*parser->at == ' ' || *parser->at == '\n' || *parser->at == '\t') parser->at++;
}

static int take(Parser* parser, char wanted) {
    skip_space(parser);
    if (*parser->at != wanted) return 0;
    parser->at++;
    return 1;
}

static int take_word(Parser* parser, const char* word) {
    size_t length = strlen(word);
    if (memcmp(parser->at, word, length) != 0) return 0;
    parser->at += length;
    return 1;
}

static char* parse_string(Parser* parser) {
    if (!take(parser, '"')) {
        parser->failed = 1;
        return NULL;
    }
    const char* end = parser->at;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    char* text = malloc((size_t)(end - parser->at) + 1);
    if (!text) {
        parser->failed = 1;
        return NULL;
    }
    char* to = text;
    while (parser->at < end) {
        char c = *parser->at++;
        if (c == '\\') {
            c = *parser->at++;
            if (c == 'n') c = '\n';
            if (c == 'u') {
                int value = 0;
                for (int i = 0; i < 4; i++) {
                    char digit = *parser->at++;
                    value = value * 16 + (digit <= '9' ? digit - '0' : (digit | 32) - 'a' + 10);
                }
                c = (char)value;
            }
        }
        *to++ = c;
    }
    *to = 0;
    if (!take(parser, '"')) parser->failed = 1;
    return text;
}

static int64_t parse_number(Parser* parser) {
    int negative = take(parser, '-');
    int64_t value = 0, scale = 1000;
    while (*parser->at >= '0' && *parser->at <= '9') value = value * 10 + (*parser->at++ - '0');
    value *= 1000;
    if (*parser->at == '.') {
        parser->at++;
        while (*parser->at >= '0' && *parser->at <= '9') {
            scale /= 10;
            value += (*parser->at++ - '0') * scale;
        }
    }
    return negative ? -value : value;
}

// Parses the values of an array, or the members of an object, up to the closing character.
static void parse_list(Parser* parser, Node* parent, char close) {
    Node** link = &parent->first;
    if (take(parser, close)) return;
    do {
        char* name = NULL;
        if (parent->kind == OBJECT) {
            skip_space(parser);
            name = parse_string(parser);
            if (!take(parser, ':')) parser->failed = 1;
        }
        Node* node = parser->failed ? NULL : parse_value(parser);
        if (!node) return;
        node->name = name;
        *link = node;
        link = &node->next;
    } while (take(parser, ','));
    if (!take(parser, close)) parser->failed = 1;
}

static Node* parse_value(Parser* parser) {
    Node* node = calloc(1, sizeof(Node));
    if (!node) {
        parser->failed = 1;
        return NULL;
    }
    skip_space(parser);
    switch (*parser->at) {
        case '{':
            node->kind = OBJECT;
            parser->at++;
            parse_list(parser, node, '}');
            break;
        case '[':
            node->kind = ARRAY;
            parser->at++;
            parse_list(parser, node, ']');
            break;
        case '"':
            node->kind = STRING;
            node->text = parse_string(parser);
            break;
        case 't':
            node->kind = BOOLEAN;
            node->number = 1;
            parser->failed |= !take_word(parser, "true");
            break;
        case 'f':
            node->kind = BOOLEAN;
            parser->failed |= !take_word(parser, "false");
            break;
        case 'n': parser->failed |= !take_word(parser, "null"); break;
        default: node->kind = NUMBER; node->number = parse_number(parser);
    }
    return node;
}

// ---- summing up

static uint32_t sum_text(uint32_t sum, const char* text) {
    while (*text) sum = mix(sum, (uint8_t)*text++);
    return sum;
}

static uint32_t sum_and_free(uint32_t sum, Node* node) {
    sum = mix(sum, (uint32_t)node->kind);
    if (node->name) sum = sum_text(sum, node->name);
    if (node->text) sum = sum_text(sum, node->text);
    sum = mix(sum, (uint32_t)node->number);
    for (Node* child = node->first; child;) {
        Node* next = child->next;
        sum = sum_and_free(sum, child);
        child = next;
    }
    free(node->name);
    free(node->text);
    free(node);
    return sum;
}

uint32_t run(uint32_t instance) {
    char text[3000];
    Writer writer = {text, seed_of(instance)};
    write_document(&writer);
    Parser parser = {text, 0};
    Node* root = parse_value(&parser);
    if (!root || parser.failed || *parser.at) return 0;
    return sum_and_free(0, root);
}
