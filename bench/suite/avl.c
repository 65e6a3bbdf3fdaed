// A balanced tree (AVL) of nodes from the heap: inserts, lookups, a walk, and its end.
#include "suite.h"

typedef struct Node {
    struct Node *left, *right;
    uint32_t key, value;
    int height;
} Node;

static int height(const Node* node) { return node ? node->height : 0; }

static void measure(Node* node) {
    int left = height(node->left), right = height(node->right);
    node->height = 1 + (left > right ? left : right);
}

static Node* rotate_left(Node* node) {
    Node* right = node->right;
    node->right = right->left;
    right->left = node;
    measure(node);
    measure(right);
    return right;
}

static Node* rotate_right(Node* node) {
    Node* left = node->left;
    node->left = left->right;
    left->right = node;
    measure(node);
    measure(left);
    return left;
}

static Node* balance(Node* node) {
    int lean = height(node->left) - height(node->right);
    if (lean > 1) {
        if (height(node->left->left) < height(node->left->right))
            node->left = rotate_left(node->left);
        return rotate_right(node);
    }
    if (lean < -1) {
        if (height(node->right->right) < height(node->right->left))
            node->right = rotate_right(node->right);
        return rotate_left(node);
    }
    measure(node);
    return node;
}

static Node* insert(Node* node, uint32_t key, uint32_t value) {
    if (!node) {
        Node* made = malloc(sizeof(Node));
        if (made) *made = (Node){NULL, NULL, key, value, 1};
        return made;
    }
    if (key < node->key)
        node->left = insert(node->left, key, value);
    else if (key > node->key)
        node->right = insert(node->right, key, value);
    else
        node->value += value;
    return balance(node);
}

static const Node* lookup(const Node* node, uint32_t key) {
    while (node && node->key != key) node = key < node->key ? node->left : node->right;
    return node;
}

static uint32_t walk(const Node* node, uint32_t sum) {
    if (!node) return sum;
    sum = walk(node->left, sum);
    return walk(node->right, mix(mix(sum, node->key), node->value));
}

static void release(Node* node) {
    if (!node) return;
    release(node->left);
    release(node->right);
    free(node);
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), found = 0;
    Node* root = NULL;
    for (uint32_t i = 0; i < 400; i++) root = insert(root, next_random(&random) % 1024, i);
    for (uint32_t i = 0; i < 1000; i++) {
        const Node* node = lookup(root, next_random(&random) % 1024);
        if (node) found += node->value;
    }
    uint32_t sum = mix(walk(root, 0), found);
    release(root);
    return sum;
}
