#include "host/write_progress.h"

#include <algorithm>
#include <chrono>

namespace gpurun::host {
namespace {

s64 now() {
    using namespace std::chrono;
    return duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count();
}

}  // namespace

WriteProgress::WriteProgress(const WriteListener& listener, u64 files)
    : listener_(listener), files_(files), reported_at_(now()) {
    if (listener_ && files_ > 0) listener_(0, files_);
}

WriteProgress::~WriteProgress() {
    if (listener_ && files_ > 0) listener_(files_, files_);
}

void WriteProgress::add(u64 steps) {
    constexpr s64 pause = 100'000'000;  // ns
    steps_ += steps;
    if (!listener_) return;
    const s64 time = now();
    if (time - reported_at_ < pause) return;
    reported_at_ = time;
    listener_(std::min(steps_ / steps_of_file, files_), files_);
}

}  // namespace gpurun::host
