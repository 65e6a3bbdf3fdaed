// Locks of system memory. Whoever holds one never blocks while holding it, and takes further ones
// in this order only: files, a process, a pipe, a bucket, pages.
#pragma once

#include "runtime/platform/platform.h"

namespace gpurun::rt {

// Ends: the holder never blocks while holding it.
inline void lock(u32* word) {
    // Who waits for long does so with many others.
    for (u32 looks = 0; compare_exchange_acquire(word, u32{0}, u32{1}) != 0;) {
        do {
            back_off(looks++ / 4);
        } while (load_relaxed(word) != 0);
    }
}

class Lock {
public:
    explicit Lock(u32* word) : word_(word) { lock(word); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    ~Lock() { store_shared(word_, u32{0}); }  // pairs with the exchange of whoever is next

private:
    u32* word_;
};

// One that is taken when it turns out to be needed, at most once.
class LateLock {
public:
    explicit LateLock(u32* word) : word_(word) {}
    LateLock(const LateLock&) = delete;
    LateLock& operator=(const LateLock&) = delete;
    ~LateLock() {
        if (is_taken_) store_shared(word_, u32{0});
    }
    void take() {
        if (!is_taken_) lock(word_);
        is_taken_ = true;
    }

private:
    u32* word_;
    bool is_taken_ = false;
};

}  // namespace gpurun::rt
