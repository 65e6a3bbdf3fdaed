#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace gpurun::test {
namespace {

constexpr u16 first_epoch = 1;
constexpr u32 most_epochs = 1024;

u64 mix(u64 value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    return value ^ value >> 32;
}

}  // namespace

WeakMemory::WeakMemory(u8* state, usize size, usize watched, u32 actors, u32 host)
    : state_(state),
      size_(size),
      watched_(watched),
      actor_count_(actors),
      host_(host),
      shadow_(size / granule + 2) {
    locations_.reserve(most_locations);
}

void WeakMemory::begin() {
    stamp_++;
    touched_.clear();
    alive_ = (1u << actor_count_) - 1;
    problem_.reset();
    seq_cst_.fill(0);
    for (u32 i = 0; i < actor_count_; i++) {
        std::memset(&actors_[i], 0, sizeof actors_[i]);
        actors_[i].now.clock[i] = first_epoch;
    }
}

WeakMemory::Shadow& WeakMemory::shadow(usize number) {
    Shadow& found = shadow_[number];
    if (found.stamp != stamp_) {
        std::memset(static_cast<void*>(&found), 0, sizeof found);
        found.stamp = stamp_;
    }
    return found;
}

// Memory that is used again may hold a number of another size: its history begins anew.
WeakMemory::Location& WeakMemory::locate(const void* address, u32 size) {
    const usize offset = usize(static_cast<const u8*>(address) - state_);
    Shadow& at = shadow(offset / granule);
    if (at.location != 0) {
        Location& known = locations_[at.location - 1];
        if (known.offset == offset && known.size == size) return known;
    }
    auto [found, is_new] =
        location_of_.try_emplace(u64(offset) << 4 | size, u32(locations_.size()));
    if (is_new) {
        if (locations_.size() == most_locations) {
            std::fprintf(stderr, "more than %u words are accessed atomically\n", most_locations);
            std::abort();
        }
        locations_.emplace_back();
        locations_.back().offset = offset;
        locations_.back().size = size;
    }
    Location& location = locations_[found->second];
    if (location.stamp != stamp_) {
        location.stamp = stamp_;
        location.first = location.latest = 0;
    } else {
        location.first = ++location.latest;
    }
    Message& message = location.messages[location.latest % window];
    message.has_known = false;
    message.is_plain = true;
    message.writer = most_actors;
    message.scope = Scope::system;
    for (usize i = offset / granule; i * granule < offset + size; i++)
        shadow(i).location = u16(found->second + 1);
    return location;
}

// A word of another size is there: who has it does with it as it likes.
bool WeakMemory::is_other_word(const void* address, u32 size) {
    const usize offset = usize(static_cast<const u8*>(address) - state_);
    const u16 found = shadow(offset / granule).location;
    return found != 0 &&
           (locations_[found - 1].offset != offset || locations_[found - 1].size != size);
}

u64 WeakMemory::value_of(const Location& location, const Message& message) const {
    if (!message.is_plain) return message.value;
    u64 value = 0;
    std::memcpy(&value, state_ + location.offset, location.size);
    return value;
}

u16 WeakMemory::oldest(const Actor& actor, u32 number, const Location& location) const {
    const u16 kept = location.latest >= window - 1 ? u16(location.latest - (window - 1)) : u16{0};
    return std::max({location.first, actor.now.view[number], kept});
}

u32 WeakMemory::choices(u32 actor, const void* address, u32 size) {
    if (!is_inside(address, size) || is_other_word(address, size)) return 1;
    const Location& location = locate(address, size);
    return location.latest - oldest(actors_[actor], number_of(location), location) + 1u;
}

void WeakMemory::join(Knowledge& to, const Knowledge& from) const {
    for (usize i = 0; i < locations_.size(); i++) to.view[i] = std::max(to.view[i], from.view[i]);
    for (u32 i = 0; i < actor_count_; i++) to.clock[i] = std::max(to.clock[i], from.clock[i]);
}

void WeakMemory::learn(u32 actor, const Message& message, Order order) {
    if (!message.has_known) return;
    Actor& me = actors_[actor];
    if (acquires(order)) join(me.now, message.known);
    join(me.to_acquire, message.known);
}

u64 WeakMemory::read(u32 actor, const Location& location, Order order, Scope scope, u32 age) {
    const u16 time = u16(location.latest - age);
    const Message& message = location.messages[time % window];
    check_scope(actor, location, message, scope);
    u16& mine = actors_[actor].now.view[number_of(location)];
    mine = std::max(mine, time);
    learn(actor, message, order);
    return value_of(location, message);
}
u64 WeakMemory::load(u32 actor, const void* address, u32 size, Order order, Scope scope,
                     bool is_stale, u32 age) {
    if (is_stale && is_other_word(address, size)) {
        u64 value = 0;
        std::memcpy(&value, address, size);
        return value;
    }
    const Location& location = locate(address, size);
    if (!is_stale) check_atomic(actor, location.offset, size, true, false);
    return read(actor, location, order, scope, age);
}

WeakMemory::Message& WeakMemory::add_message(u32 actor, u32 number, Location& location, u64 value,
                                             Scope scope) {
    // What was written plainly stays readable.
    Message& before = location.messages[location.latest % window];
    before.value = value_of(location, before);
    before.is_plain = false;
    Message& message = location.messages[++location.latest % window];
    message.value = value;
    message.has_known = false;
    message.is_plain = false;
    message.writer = u8(actor);
    message.scope = scope;
    actors_[actor].now.view[number] = location.latest;
    return message;
}

void WeakMemory::release_by(u32 actor, Message& message, Order order) {
    const Actor& me = actors_[actor];
    const Knowledge& known = releases(order) ? me.now : me.released;
    if (message.has_known)
        join(message.known, known);
    else if (known.clock[actor] != 0)
        message.known = known;
    message.has_known |= known.clock[actor] != 0;
    if (releases(order)) next_epoch(actor);
}

void WeakMemory::store(u32 actor, void* address, u32 size, u64 value, Order order, Scope scope) {
    Location& location = locate(address, size);
    check_scope(actor, location, location.messages[location.latest % window], scope);
    check_atomic(actor, location.offset, size, false, true);
    Message& message = add_message(actor, number_of(location), location, value, scope);
    release_by(actor, message, order);
    std::memcpy(address, &value, size);
}

u64 WeakMemory::read_latest(u32 actor, void* address, u32 size, Order order, Scope scope) {
    const Location& location = locate(address, size);
    check_atomic(actor, location.offset, size, false, false);
    return read(actor, location, order, scope, 0);
}
void WeakMemory::leave(u32 actor, void* address, u32 size) {
    check_atomic(actor, locate(address, size).offset, size, true, false);
}
// Whoever acquires it acquires what the message before it released, too.
void WeakMemory::update(u32 actor, void* address, u32 size, u64 value, Order order, Scope scope) {
    Location& location = locate(address, size);
    check_atomic(actor, location.offset, size, false, true);
    Message& message = add_message(actor, number_of(location), location, value, scope);
    const Message& before = location.messages[u16(location.latest - 1) % window];
    if (before.has_known) {
        message.known = before.known;
        message.has_known = true;
    }
    release_by(actor, message, order);
    std::memcpy(address, &value, size);
}

void WeakMemory::fence(u32 actor, Fence kind) {
    if (kind == Fence::none) return;
    Actor& me = actors_[actor];
    join(me.now, me.to_acquire);
    if (kind == Fence::seq_cst) {
        for (usize i = 0; i < locations_.size(); i++)
            seq_cst_[i] = me.now.view[i] = std::max(me.now.view[i], seq_cst_[i]);
    }
    me.released = me.now;
    next_epoch(actor);
}

// ---- races -------------------------------------------------------------------------

void WeakMemory::race(u32 actor, u32 other, usize number, const char* what) {
    if (problem_) return;
    char text[160];
    std::snprintf(text, sizeof text, "race: actor %u %s of actor %u, at state+0x%llx", actor, what,
                  other, (unsigned long long)(number * granule));
    problem_ = text;
    raced_at_ = number * granule;
}

void WeakMemory::plain(u32 actor, const void* address, usize size, bool is_write) {
    const u8* at = static_cast<const u8*>(address);
    if (at < state_ || at >= state_ + watched_) return;
    const usize offset = usize(at - state_);
    const u16 mine = actors_[actor].now.clock[actor];
    for (usize i = offset / granule; i * granule < offset + size; i++) {
        Shadow& word = shadow(i);
        if (!word.is_listed) {
            word.is_listed = true;
            touched_.push_back(u32(i));
        }
        if (!knows(actor, word.writer, word.write_epoch))
            race(actor, word.writer, i, is_write ? "writes after a write" : "reads after a write");
        // Who has seen the last store of all that there were overwrites it.
        const bool has_seen_stores =
            is_write && word.location != 0 &&
            actors_[actor].now.view[word.location - 1] == locations_[word.location - 1].latest;
        for (u32 other = 0; other < actor_count_; other++) {
            if (!has_seen_stores && !knows(actor, other, word.atomic_writes[other]))
                race(actor, other, i, is_write ? "writes after a store" : "reads after a store");
            if (!is_write) continue;
            if (!knows(actor, other, word.reads[other]))
                race(actor, other, i, "writes after a read");
            if (!knows(actor, other, word.atomic_reads[other]))
                race(actor, other, i, "writes after a load");
        }
        if (!is_write) {
            word.reads[actor] = mine;
            continue;
        }
        word.writer = u8(actor);
        word.write_epoch = mine;
        if (word.location == 0) continue;
        // Loads that happen after it return it; the value is in memory when they do.
        Location& location = locations_[word.location - 1];
        const u32 number = number_of(location);
        Message& latest = location.messages[location.latest % window];
        if (latest.is_plain && latest.writer == actor && !latest.has_known) continue;
        add_message(actor, number, location, 0, Scope::device).is_plain = true;
    }
}

void WeakMemory::check_atomic(u32 actor, usize offset, u32 size, bool reads, bool writes) {
    if (offset >= watched_) return;
    const u16 mine = actors_[actor].now.clock[actor];
    for (usize i = offset / granule; i * granule < offset + size; i++) {
        Shadow& word = shadow(i);
        if (!word.is_listed) {
            word.is_listed = true;
            touched_.push_back(u32(i));
        }
        if (!knows(actor, word.writer, word.write_epoch))
            race(actor, word.writer, i, writes ? "stores after a write" : "loads after a write");
        for (u32 other = 0; writes && other < actor_count_; other++)
            if (!knows(actor, other, word.reads[other]))
                race(actor, other, i, "stores after a read");
        if (reads) word.atomic_reads[actor] = mine;
        if (writes) word.atomic_writes[actor] = mine;
    }
}

// An access that reaches the device alone does not meet one of the host.
void WeakMemory::check_scope(u32 actor, const Location& location, const Message& message,
                             Scope scope) {
    if (message.writer == most_actors || location.offset >= watched_) return;
    const bool is_far = (host_ >> actor & 1) != (host_ >> message.writer & 1);
    if (!is_far || (scope == Scope::system && message.scope == Scope::system)) return;
    race(actor, message.writer, location.offset / granule,
         "meets, with too small a scope, a store");
}

// ---- hashes ------------------------------------------------------------------------

u64 WeakMemory::hash_view(const Times& view) const {
    u64 hash = 0;
    for (usize i = 0; i < locations_.size(); i++) {
        const Location& location = locations_[i];
        if (location.stamp != stamp_) continue;
        // What is as old as the window cannot be told apart.
        const u32 age = location.latest - view[i];
        if (age < window - 1) hash += mix((i << 8) + age + 1);
    }
    return hash;
}

u64 WeakMemory::hash(bool with_views) {
    // Messages that somebody may still read.
    struct Live {
        const Message* message;
        u32 location, age;
        u64 value;
    };
    static thread_local std::vector<Live> live;
    live.clear();
    for (u32 i = 0; i < locations_.size(); i++) {
        const Location& location = locations_[i];
        if (location.stamp != stamp_) continue;
        u16 first = location.latest;
        for (u32 a = 0; with_views && a < actor_count_; a++)
            if (alive_ >> a & 1) first = std::min(first, oldest(actors_[a], i, location));
        for (u32 time = first; time <= location.latest; time++) {
            const Message& message = location.messages[time % window];
            if (time == location.latest && !message.has_known) continue;
            live.push_back({&message, i, location.latest - time, value_of(location, message)});
        }
    }
    // Clocks count by how many different ones are there.
    u64 there[most_actors][most_epochs / 64] = {};
    u16 known_to_all[most_actors];
    std::fill_n(known_to_all, actor_count_, u16(most_epochs - 1));
    auto note = [&](const Knowledge& known) {
        for (u32 i = 0; i < actor_count_; i++) {
            if (known.clock[i] >= most_epochs) std::abort();
            there[i][known.clock[i] / 64] |= u64{1} << known.clock[i] % 64;
        }
    };
    for (u32 a = 0; a < actor_count_; a++) {
        if (!(alive_ >> a & 1)) continue;
        note(actors_[a].now);
        note(actors_[a].to_acquire);
        note(actors_[a].released);
        for (u32 i = 0; i < actor_count_; i++)
            known_to_all[i] = std::min(known_to_all[i], actors_[a].now.clock[i]);
    }
    for (const Live& one : live)
        if (one.message->has_known) note(one.message->known);
    u16 below[most_actors][most_epochs / 64];
    for (u32 i = 0; i < actor_count_; i++)
        for (u32 k = 0, count = 0; k < most_epochs / 64; k++) {
            below[i][k] = u16(count);
            count += u32(__builtin_popcountll(there[i][k]));
        }
    auto rank = [&](u32 i, u16 epoch) {
        return below[i][epoch / 64] +
               u32(__builtin_popcountll(there[i][epoch / 64] & ((u64{1} << epoch % 64) - 1)));
    };
    auto hash_known = [&](const Knowledge& known) {
        u64 hash = 0;
        for (u32 i = 0; i < actor_count_; i++) hash = mix(hash + rank(i, known.clock[i]));
        return with_views ? mix(hash) + hash_view(known.view) : hash;
    };
    u64 hash = 0;
    for (u32 a = 0; a < actor_count_; a++) {
        if (!(alive_ >> a & 1)) continue;
        hash = mix(hash + a + hash_known(actors_[a].now));
        hash = mix(hash + hash_known(actors_[a].to_acquire));
        hash = mix(hash + hash_known(actors_[a].released));
    }
    if (with_views) hash = mix(hash + hash_view(seq_cst_));
    for (const Live& one : live)
        hash += mix((u64(one.location) << 8) + one.age + mix(one.value) +
                    (one.message->has_known ? hash_known(one.message->known) : 0));
    // Accesses that some do not know of.
    auto add = [&](u32 word, u32 kind, u32 actor, u16 epoch) {
        if (epoch == 0 || epoch <= known_to_all[actor]) return;
        hash += mix((u64(word) << 32) + (kind << 16) + (actor << 12) + rank(actor, epoch) + 1);
    };
    for (u32 word : touched_) {
        const Shadow& at = shadow_[word];
        add(word, 0, at.writer, at.write_epoch);
        for (u32 i = 0; i < actor_count_; i++) {
            add(word, 1, i, at.reads[i]);
            add(word, 2, i, at.atomic_reads[i]);
            add(word, 3, i, at.atomic_writes[i]);
        }
    }
    return mix(hash);
}

}  // namespace gpurun::test
