// Shortest ways through a random graph of 128 nodes with 1024 edges, with a binary heap.
#include "suite.h"

enum { NODES = 128, EDGES = 8, NONE = 0x7fffffff };

typedef struct {
    uint16_t to[EDGES];
    uint16_t cost[EDGES];
} Node;

typedef struct {
    uint32_t distance;
    uint32_t node;
} Entry;

typedef struct {
    Entry* entries;
    int count;
} Heap;

static void push(Heap* heap, Entry entry) {
    int at = heap->count++;
    while (at > 0 && heap->entries[(at - 1) / 2].distance > entry.distance) {
        heap->entries[at] = heap->entries[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    heap->entries[at] = entry;
}

static Entry pop(Heap* heap) {
    Entry first = heap->entries[0], last = heap->entries[--heap->count];
    int at = 0;
    for (;;) {
        int child = 2 * at + 1;
        if (child >= heap->count) break;
        if (child + 1 < heap->count &&
            heap->entries[child + 1].distance < heap->entries[child].distance)
            child++;
        if (heap->entries[child].distance >= last.distance) break;
        heap->entries[at] = heap->entries[child];
        at = child;
    }
    heap->entries[at] = last;
    return first;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    uint32_t distances[NODES];
    Node* nodes = malloc(NODES * sizeof(Node));
    Heap heap = {malloc((NODES * EDGES + 1) * sizeof(Entry)), 0};
    if (!nodes || !heap.entries) return 0;
    for (int i = 0; i < NODES; i++) {
        distances[i] = NONE;
        for (int k = 0; k < EDGES; k++) {
            nodes[i].to[k] = (uint16_t)(next_random(&random) % NODES);
            nodes[i].cost[k] = (uint16_t)(1 + next_random(&random) % 1000);
        }
    }
    distances[0] = 0;
    push(&heap, (Entry){0, 0});
    while (heap.count > 0) {
        Entry entry = pop(&heap);
        if (entry.distance > distances[entry.node]) continue;
        const Node* node = &nodes[entry.node];
        for (int k = 0; k < EDGES; k++) {
            uint32_t distance = entry.distance + node->cost[k];
            if (distance >= distances[node->to[k]]) continue;
            distances[node->to[k]] = distance;
            push(&heap, (Entry){distance, node->to[k]});
        }
    }
    for (int i = 0; i < NODES; i++) sum = mix(sum, distances[i]);
    free(nodes);
    free(heap.entries);
    return sum;
}
