// What the actors of an exploration may see of each other's stores: the model that explorer.h
// describes. It keeps what was written, and says which values a load may return; it schedules
// nothing and chooses nothing.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/ints.h"

namespace gpurun::test {

enum class Order : u8 { relaxed = 0, acquire = 1, release = 2, acq_rel = 3 };
inline bool acquires(Order order) { return u8(order) & 1; }
inline bool releases(Order order) { return u8(order) & 2; }
enum class Scope : u8 { device, system };
enum class Fence : u8 { none, acq_rel, seq_cst };

class WeakMemory {
public:
    static constexpr u32 most_actors = 8, most_locations = 256;
    static constexpr u32 window = 4;  // messages of a location that a load can return

    // Atomic accesses have histories in all of the state; plain ones are checked in its first
    // `watched` bytes. `host`: a bit for each actor that runs on the host.
    WeakMemory(u8* state, usize size, usize watched, u32 actors, u32 host);

    void begin();  // an execution, with the state as it is now
    void end_actor(u32 actor) { alive_ &= ~(1u << actor); }

    // How many messages a load of the actor may choose from; 1 outside of the state.
    u32 choices(u32 actor, const void* address, u32 size);
    // `age`: which of them, 0 is the latest. `is_stale`: no race, whatever is there.
    u64 load(u32 actor, const void* address, u32 size, Order order, Scope scope, bool is_stale,
             u32 age);
    void store(u32 actor, void* address, u32 size, u64 value, Order order, Scope scope);
    // Returns the latest value. `update`, if that is to be replaced, or `leave` follows at once.
    u64 read_latest(u32 actor, void* address, u32 size, Order order, Scope scope);
    void update(u32 actor, void* address, u32 size, u64 value, Order order, Scope scope);
    void leave(u32 actor, void* address, u32 size);
    void fence(u32 actor, Fence kind);
    void plain(u32 actor, const void* address, usize size, bool is_write);

    // Of all that decides what later accesses may return, or whether they race. Without
    // `with_views` nobody will read anything but latest messages.
    u64 hash(bool with_views);

    // Why the execution is wrong, or null.
    const char* problem() const { return problem_ ? problem_->c_str() : nullptr; }
    // The word of the last race, as an offset in the state; its accesses can be told.
    usize raced_at() const { return raced_at_; }

private:
    static constexpr usize granule = 4;

    using Times = std::array<u16, most_locations>;
    struct Knowledge {
        Times view;                          // by location: the oldest message that may be read
        std::array<u16, most_actors> clock;  // by actor: what of it happened before
    };
    struct Message {
        u64 value;
        Knowledge known;  // to whom acquires it
        bool has_known;   // false: `known` is nothing
        bool is_plain;    // the value is in memory
        u8 writer;
        Scope scope;
    };
    struct Location {
        usize offset;
        u32 size;
        u32 stamp = 0;  // of the execution it has messages of
        u16 first = 0, latest = 0;
        std::array<Message, window> messages;  // by their time
    };
    struct Actor {
        Knowledge now, to_acquire, released;
    };
    struct Shadow {
        u32 stamp;
        u16 location;  // + 1
        u16 write_epoch;
        u8 writer;
        bool is_listed;
        std::array<u16, most_actors> reads, atomic_reads, atomic_writes;
    };

    bool is_inside(const void* address, usize size) const {
        const u8* at = static_cast<const u8*>(address);
        return at >= state_ && at + size <= state_ + size_;
    }
    Shadow& shadow(usize number);
    Location& locate(const void* address, u32 size);
    bool is_other_word(const void* address, u32 size);
    u16 oldest(const Actor& actor, u32 number, const Location& location) const;
    Message& add_message(u32 actor, u32 number, Location& location, u64 value, Scope scope);
    u64 read(u32 actor, const Location& location, Order order, Scope scope, u32 age);
    void release_by(u32 actor, Message& message, Order order);
    void learn(u32 actor, const Message& message, Order order);
    void join(Knowledge& to, const Knowledge& from) const;
    void next_epoch(u32 actor) { actors_[actor].now.clock[actor]++; }
    bool knows(u32 actor, u32 other, u16 epoch) const {
        return epoch <= actors_[actor].now.clock[other];
    }
    void check_atomic(u32 actor, usize offset, u32 size, bool reads, bool writes);
    void check_scope(u32 actor, const Location& location, const Message& message, Scope scope);
    void race(u32 actor, u32 other, usize number, const char* what);
    u64 value_of(const Location& location, const Message& message) const;
    u32 number_of(const Location& location) const { return u32(&location - locations_.data()); }
    u64 hash_view(const Times& view) const;

    u8* state_;
    usize size_, watched_;
    u32 actor_count_, host_, alive_ = 0;
    u32 stamp_ = 0;
    std::vector<Shadow> shadow_;
    std::vector<u32> touched_;
    std::vector<Location> locations_;
    std::unordered_map<u64, u32> location_of_;
    std::array<Actor, most_actors> actors_;
    Times seq_cst_;
    std::optional<std::string> problem_;
    usize raced_at_ = ~usize{0};
};

}  // namespace gpurun::test
