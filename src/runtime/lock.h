// Locks of system memory. Whoever holds one never blocks while holding it, and takes further ones
// in this order only: files, a process, a pipe, a bucket, pages.
#pragma once

#include "runtime/platform.h"

namespace gpurun::rt {

class Lock {
public:
    // Ends: the holder never blocks while holding it.
    explicit Lock(u32* word) : word_(word) {
        for (u32 turn = 0; compare_exchange_acquire(word_, u32{0}, u32{1}) != 0; turn++) {
            do {
                back_off(turn);
            } while (load_relaxed(word_) != 0);
        }
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { store_shared(word_, u32{0}); }  // pairs with the exchange of whoever is next

private:
    u32* word_;
};

}  // namespace gpurun::rt
