// A hash map with open addressing that grows: inserts, counts, lookups and removals.
#include "suite.h"

typedef struct {
    uint32_t key;  // 0: free, 1: removed
    uint32_t value;
} Entry;

typedef struct {
    Entry* entries;
    uint32_t capacity, used, live;  // used counts removed entries too
} Map;

static uint32_t hash(uint32_t key) {
    key *= 0x9e3779b1u;
    return key ^ key >> 15;
}

static Entry* find(const Map* map, uint32_t key) {
    uint32_t at = hash(key) & (map->capacity - 1);
    while (map->entries[at].key != 0) {
        if (map->entries[at].key == key) return &map->entries[at];
        at = (at + 1) & (map->capacity - 1);
    }
    return NULL;
}

static void place(Map* map, uint32_t key, uint32_t value) {
    uint32_t at = hash(key) & (map->capacity - 1);
    while (map->entries[at].key > 1) at = (at + 1) & (map->capacity - 1);
    if (map->entries[at].key == 0) map->used++;
    map->entries[at] = (Entry){key, value};
    map->live++;
}

static int grow(Map* map, uint32_t capacity) {
    Map larger = {calloc(capacity, sizeof(Entry)), capacity, 0, 0};
    if (!larger.entries) return 0;
    for (uint32_t i = 0; i < map->capacity; i++)
        if (map->entries[i].key > 1) place(&larger, map->entries[i].key, map->entries[i].value);
    free(map->entries);
    *map = larger;
    return 1;
}

static int add(Map* map, uint32_t key, uint32_t value) {
    Entry* entry = find(map, key);
    if (entry) {
        entry->value += value;
        return 1;
    }
    if (map->used * 4 >= map->capacity * 3 && !grow(map, map->capacity * 2)) return 0;
    place(map, key, value);
    return 1;
}

static void drop(Map* map, uint32_t key) {
    Entry* entry = find(map, key);
    if (!entry) return;
    entry->key = 1;
    map->live--;
}

uint32_t run(uint32_t instance) {
    uint32_t random = seed_of(instance), sum = 0;
    Map map = {NULL, 0, 0, 0};
    if (!grow(&map, 64)) return 0;
    for (uint32_t i = 0; i < 6000; i++)
        if (!add(&map, next_random(&random) % 3000 + 2, i)) return 0;
    for (uint32_t i = 0; i < 2000; i++) drop(&map, next_random(&random) % 3000 + 2);
    for (uint32_t key = 2; key < 3002; key++) {
        Entry* entry = find(&map, key);
        if (entry) sum = mix(sum, entry->value);
    }
    sum = mix(sum, map.live);
    free(map.entries);
    return sum;
}
