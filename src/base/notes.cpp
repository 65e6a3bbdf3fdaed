// One listener for all.
#include "base/notes.h"

#include <mutex>
#include <new>

namespace gpurun {
namespace {

struct Hearing {
    std::mutex mutex;
    std::function<void(const std::string&)> listener;
    std::function<void(u64, u64)> compiled;
};

// Never gone: threads may have something to say while the program ends.
Hearing& hearing() {
    alignas(Hearing) static unsigned char place[sizeof(Hearing)];
    static Hearing& only = *new (place) Hearing;
    return only;
}

}  // namespace

void note(const std::string& text) {
    std::lock_guard lock(hearing().mutex);
    if (hearing().listener) hearing().listener(text);
}

void tell_compiled(u64 done, u64 all) {
    std::lock_guard lock(hearing().mutex);
    if (hearing().compiled) hearing().compiled(done, all);
}

void hear_compiled(std::function<void(u64 done, u64 all)> listener) {
    std::lock_guard lock(hearing().mutex);
    hearing().compiled = std::move(listener);
}

void hear_notes(std::function<void(const std::string&)> listener) {
    std::lock_guard lock(hearing().mutex);
    hearing().listener = std::move(listener);
}

}  // namespace gpurun
