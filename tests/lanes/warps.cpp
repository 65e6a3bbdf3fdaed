// Whose turn it is, and what lanes that meet tell each other.
#include "warps.h"

#include <algorithm>
#include <cstdlib>

namespace gpurun::test {
namespace {

constexpr u64 turn_ns = 20;
constexpr u64 poll_turns = 1024;  // between two polls

thread_local Warps* current_warps = nullptr;

const char* name_of(Collective what) {
    switch (what) {
        case Collective::ballot: return "ballot";
        case Collective::shuffle: return "shuffle";
        case Collective::minimum: return "warp_min";
        case Collective::sync: return "sync_warp";
        case Collective::none: break;
    }
    return "no meeting";
}

}  // namespace

Warps::Warps(const WarpOptions& options)
    : options_(options),
      arrived_(options.warps),
      now_(options.begin_ns),
      random_state_(options.seed) {
    for (u32 i = 0; i < options.warps * options.lanes; i++)
        lanes_.push_back(std::make_unique<Lane>(options.stack_bytes));
}
Warps::~Warps() = default;

Warps& Warps::current() { return *current_warps; }

u64 Warps::random() {
    random_state_ += 0x9e3779b97f4a7c15;
    u64 z = random_state_;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

void Warps::set_ready(u32 thread) { ready_.push_back(thread); }

std::string Warps::run(Kernel kernel, void* argument) {
    if (current_warps != nullptr) std::abort();
    current_warps = this;
    problem_.clear();
    ready_.clear();
    std::ranges::fill(arrived_, 0);
    for (u32 i = 0; i < lanes_.size(); i++) {
        Lane& lane = *lanes_[i];
        lane.is_over = false;
        lane.at = Collective::none;
        lane.fiber.start(kernel, argument);
        set_ready(i);
    }
    std::vector<u32> asleep;
    while (problem_.empty()) {
        if (options_.poll && turns_ % poll_turns == 0) options_.poll(now_);
        // Who sleeps is ready when its time has come; if nobody else is, time goes on to that.
        if (ready_.empty() && !asleep.empty()) {
            u64 first = ~u64{0};
            for (u32 i : asleep) first = std::min(first, lanes_[i]->sleeps_until);
            now_ = std::max(now_, first);
        }
        std::erase_if(asleep, [&](u32 i) {
            if (lanes_[i]->sleeps_until > now_) return false;
            set_ready(i);
            return true;
        });
        if (ready_.empty()) break;
        usize pick = random() % ready_.size();
        running_ = ready_[pick];
        ready_[pick] = ready_.back();
        ready_.pop_back();
        Lane& lane = *lanes_[running_];
        lane.fiber.resume();
        now_ += turn_ns;
        if (++turns_ > options_.most_turns && problem_.empty())
            problem_ = "no end in sight: " + who_is_where();
        if (!problem_.empty()) break;
        lane.is_over = lane.fiber.is_over();
        if (lane.is_over) continue;
        if (lane.at != Collective::none) {
            u32 warp = running_ / options_.lanes;
            if (++arrived_[warp] == options_.lanes) finish_meeting(warp);
        } else if (lane.sleeps_until > now_) {
            asleep.push_back(running_);
        } else {
            set_ready(running_);
        }
    }
    if (problem_.empty() &&
        std::ranges::any_of(lanes_, [](const auto& lane) { return !lane->is_over; }))
        problem_ = "lanes wait for others that have left: " + who_is_where();
    current_warps = nullptr;
    return problem_;
}

// All lanes have come. The same place, or it is not a meeting.
void Warps::finish_meeting(u32 warp) {
    const u32 first = warp * options_.lanes;
    const Lane& leader = *lanes_[first];
    u32 mask = 0;
    u64 least = ~u64{0};
    for (u32 i = 0; i < options_.lanes; i++) {
        const Lane& lane = *lanes_[first + i];
        if (lane.at != leader.at || lane.site.line != leader.site.line ||
            std::string_view(lane.site.file) != leader.site.file) {
            problem_ = "lanes of a warp have come to different places: " + describe(first) + ", " +
                       describe(first + i);
            return;
        }
        mask |= u32(lane.value != 0) << i;
        least = std::min(least, lane.value);
    }
    for (u32 i = 0; i < options_.lanes; i++) {
        Lane& lane = *lanes_[first + i];
        switch (lane.at) {
            case Collective::ballot: lane.result = mask; break;
            case Collective::shuffle:
                lane.result = lanes_[first + lane.from % options_.lanes]->value;
                break;
            case Collective::minimum: lane.result = least; break;
            default: break;
        }
    }
    for (u32 i = 0; i < options_.lanes; i++) {
        lanes_[first + i]->at = Collective::none;
        set_ready(first + i);
    }
    arrived_[warp] = 0;
}

u64 Warps::meet(Collective what, u64 value, u32 from, Site site) {
    Lane& lane = *lanes_[running_];
    lane.at = what;
    lane.value = value;
    lane.from = from;
    lane.site = site;
    Fiber::yield();
    return lane.result;
}

void Warps::give_way(Site site) {
    lanes_[running_]->site = site;
    Fiber::yield();
}
void Warps::touch_shared(Site site) {
    if (options_.interruptions != 0 && random() % options_.interruptions == 0) give_way(site);
}
void Warps::sleep(u64 ns, Site site) {
    lanes_[running_]->sleeps_until = now_ + ns;
    give_way(site);
}

void Warps::fail(const std::string& what) {
    problem_ = what;
    // This launch is not gone on with.
    for (;;) Fiber::yield();
}

std::string Warps::describe(u32 thread) const {
    const Lane& lane = *lanes_[thread];
    std::string text = "warp " + std::to_string(thread / options_.lanes) + " lane " +
                       std::to_string(thread % options_.lanes);
    if (lane.is_over) return text + " has left";
    const std::string site = std::string(lane.site.file) + ":" + std::to_string(lane.site.line);
    if (lane.at == Collective::none) return text + " was last at " + site;
    return text + " is at " + name_of(lane.at) + " (" + site + ")";
}

std::string Warps::who_is_where() const {
    std::string text;
    for (u32 i = 0; i < lanes_.size(); i++) text += (i == 0 ? "" : ", ") + describe(i);
    return text;
}

}  // namespace gpurun::test
