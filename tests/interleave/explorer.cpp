// Depth-first search over the orders of operations. To try another choice the way to it is run
// again from the start.
#include "explorer.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <unordered_map>

#include "../fiber/fiber.h"

namespace gpurun::test {

std::set<SeenSite>* seen_sites = nullptr;

namespace {

constexpr usize stack_bytes = 64 << 10;
constexpr u32 most_actors = WeakMemory::most_actors, nobody = ~u32{0};

// A choice: an actor, and which of the messages that it may read it reads.
constexpr u32 ages = WeakMemory::window;
static_assert(most_actors * ages <= 32);
u32 actor_of(u32 choice) { return choice / ages; }
u32 choices_of(u32 actor) { return ((1u << ages) - 1) << actor * ages; }

u64 mix(u64 value) {
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    value ^= value >> 32;
    value *= 0xd6e8feb86659fd93;
    return value ^ value >> 32;
}
// Four chains, so that none waits for the last word's product.
[[gnu::no_sanitize("address")]] u64 hash_bytes(const u8* bytes, usize size, u64 seed) {
    constexpr u64 factor = 0x9e3779b97f4a7c15;
    u64 chains[4] = {seed, seed + 1, seed + 2, seed + 3};
    usize i = 0;
    for (; i + 32 <= size; i += 32)
        for (u32 k = 0; k < 4; k++) {
            u64 word = 0;
            __builtin_memcpy_inline(&word, bytes + i + 8 * k, 8);
            chains[k] = (chains[k] ^ word) * factor;
            chains[k] ^= chains[k] >> 29;
        }
    for (; i < size; i++) chains[0] = (chains[0] ^ bytes[i]) * factor;
    return mix(chains[0] + mix(chains[1] + mix(chains[2] + mix(chains[3]))));
}

u64 value_at(const void* address, u32 size) {
    u64 value = 0;
    std::memcpy(&value, address, size);
    return value;
}

struct Seen {
    const void* address;
    u32 size;
    u64 value;
};

struct Actor {
    explicit Actor(const std::function<void()>& function) : act(function), fiber(stack_bytes) {}

    const std::function<void()>& act;
    Fiber fiber;
    bool pauses = false;
    std::vector<Seen> seen;  // since it last paused
    u64 hash = 0;
    // What it is about to do.
    const char* operation = "";
    const void* address = nullptr;
    Site site{"", 0};
    u32 load_size = 0;       // not 0: it is a load, which may return something old
    bool is_fenced = false;  // there was a fence since its last operation

    bool may_look_again() const {
        return std::ranges::any_of(
            seen, [](const Seen& s) { return value_at(s.address, s.size) != s.value; });
    }
    void see(const void* at, u32 size, u64 value) {
        for (Seen& s : seen) {
            if (s.address != at || s.size != size) continue;
            s.value = value;
            return;
        }
        seen.push_back({at, size, value});
    }
};

class Explorer;
Explorer* exploring = nullptr;

class Explorer {
public:
    Explorer(const Scene& scene, const ExploreOptions& options) : scene_(scene), options_(options) {
        if (scene.actors.size() > most_actors) std::abort();
        for (const auto& act : scene.actors) actors_.push_back(std::make_unique<Actor>(act));
        if (!options.stale_loads) return;
        memory_ = std::make_unique<WeakMemory>(static_cast<u8*>(scene.state), scene.size,
                                               std::min(scene.size, scene.watched),
                                               u32(actors_.size()), scene.host);
    }

    Exploration explore() {
        exploring = this;
        if (options_.schedule.empty()) {
            search();
        } else {
            follow(options_.schedule);
        }
        exploring = nullptr;
        return std::move(result_);
    }

    // ---- by the actor that runs ----------------------------------------------------

    bool is_running() const { return current_ != nullptr; }
    void before(const char* operation, const void* address, Site site, u32 load_size = 0) {
        current_->operation = operation;
        current_->address = address;
        current_->site = site;
        current_->load_size = load_size;
        Fiber::yield();
        current_->is_fenced = false;
    }
    void after(const void* address, u32 size, u64 old, u64 now, bool has_read) {
        if (has_read || old != now) current_->see(address, size, now);
        if (old != now) touch(address);
        has_changed_ |= old != now;
        if (is_told_) tell(address, old, now, has_read);
    }
    void after_write(Site site) {
        if (options_.stops_after_writes && has_changed_) before("go on", nullptr, site);
    }
    u64 load(const Operation& what, const void* address, u32 size, Site site) {
        u64 value = value_at(address, size);
        if (is_modelled(address)) {
            value =
                memory_->load(number(), address, size, what.order, what.scope, what.is_stale, age_);
            look_for_races(site);
        }
        after(address, size, value, value, true);
        return value;
    }
    void store(const Operation& what, void* address, u32 size, u64 value, Site site) {
        const u64 old = value_at(address, size);
        if (is_modelled(address)) {
            memory_->store(number(), address, size, value, what.order, what.scope);
            look_for_races(site);
        } else if (old != value) {
            std::memcpy(address, &value, size);
        }
        after(address, size, old, value, false);
    }
    u64 begin_update(const Operation& what, void* address, u32 size, Site site) {
        if (!is_modelled(address)) return value_at(address, size);
        const u64 old = memory_->read_latest(number(), address, size, what.order, what.scope);
        look_for_races(site);
        return old;
    }
    void end_update(const Operation& what, void* address, u32 size, u64 old, u64 now, bool writes,
                    Site site) {
        if (is_modelled(address)) {
            if (writes)
                memory_->update(number(), address, size, now, what.order, what.scope);
            else
                memory_->leave(number(), address, size);
            look_for_races(site);
        } else if (old != now) {
            std::memcpy(address, &now, size);
        }
        after(address, size, old, now, true);
    }
    // Whether another comes between a fence and the operations around it makes no difference, but
    // between two fences it does.
    void fence(Fence kind, Site site) {
        if (!memory_) return;
        if (current_->is_fenced) before("between fences", nullptr, site);
        memory_->fence(number(), kind);
        current_->is_fenced = true;
        current_->operation = kind == Fence::none ? "no fence" : "fence";
        current_->site = site;
        if (is_told_) tell(nullptr, 0, 0, false);
    }
    void plain(const void* address, usize size, bool is_write, const void* code) {
        // Functions of the library that the explorer itself uses may come here, too.
        if (!is_modelled(address)) return;
        memory_->plain(number(), address, size, is_write);
        if (is_told_) tell_plain(address, size, is_write, code);
        look_for_races(current_->site);
    }
    void pause(Site site) {
        current_->pauses = true;
        before("pause", nullptr, site);
        current_->pauses = false;
        current_->seen.clear();
        if (is_told_) tell(nullptr, 0, 0, false);
    }
    void fail(const char* message, Site site) {
        note_problem(message, site);
        // This execution is not gone on with. Nothing on its stack is destroyed.
        while (current_ != nullptr) Fiber::yield();
    }
    u32 number() const {
        for (u32 i = 0; i < actors_.size(); i++)
            if (actors_[i].get() == current_) return i;
        return 0;
    }
    u64 clock() {
        if (scene_.clock == nullptr) return 0;
        if (current_ == nullptr) return *scene_.clock;
        before("clock", scene_.clock, Site::here());
        after(scene_.clock, 8, *scene_.clock, *scene_.clock, true);
        return *scene_.clock;
    }

private:
    // A state on the way to the present one.
    struct Node {
        u32 choices;  // what may happen next
        u32 untried;
        u64 hash;
        double interleavings = 0;
        u32 last;         // the actor that came here
        u32 stale_loads;  // that there may still be
        u32 preemptions;  // so far
        u32 rounds;       // of pausing actors, with nothing changed
        u32 round_left;   // of those who may look again in this round
    };
    static constexpr double on_the_way = -1;

    // ---- one execution -------------------------------------------------------------

    bool is_modelled(const void* address) const {
        const u8* state = static_cast<const u8*>(scene_.state);
        return memory_ && address >= state && address < state + scene_.size;
    }
    [[gnu::noinline]] void note_problem(const char* message, Site site) {
        if (!problem_)
            problem_ =
                std::string(message) + " (" + site.file + ":" + std::to_string(site.line) + ")";
    }
    void look_for_races(Site site) {
        if (memory_->problem() != nullptr) fail(memory_->problem(), site);
    }

    void begin() {
        reset();
        if (memory_) memory_->begin();
        for (auto& actor : actors_) {
            actor->pauses = actor->is_fenced = false;
            actor->seen.clear();
            actor->fiber.start(
                [](void* act) { (*static_cast<const std::function<void()>*>(act))(); },
                const_cast<std::function<void()>*>(&actor->act));
            run(*actor);  // to its first operation
        }
    }
    void run(Actor& actor) {
        current_ = &actor;
        actor.fiber.resume();
        if (actor.fiber.is_over() && memory_) memory_->end_actor(number());
        current_ = nullptr;
        if (!actor.fiber.is_over()) {
            std::span<const u8> live = actor.fiber.live();
            actor.hash = hash_bytes(live.data(), live.size(), 1);
        } else {
            actor.hash = 0;
        }
    }
    void step(u32 choice) {
        has_changed_ = false;
        result_.steps++;
        age_ = choice % ages;
        run(*actors_[actor_of(choice)]);
    }

    u64 state_hash(const Node& node) {
        u64 hash = live_lines_.size();
        const u8* state = static_cast<const u8*>(scene_.state);
        for (usize line : live_lines_) {
            const usize at = line * line_bytes;
            hash = hash_bytes(state + at, std::min(line_bytes, scene_.size - at), hash);
        }
        for (const auto& actor : actors_) {
            hash = mix(hash ^ actor->hash) + actor->pauses;
            // What it has seen counts once it pauses, and will if it does.
            for (const Seen& s : actor->seen)
                hash += mix(u64(reinterpret_cast<usize>(s.address)) * 31 + s.value);
        }
        hash = mix(hash ^ (u64(node.rounds) << 32 | node.round_left));
        if (options_.preemptions) hash = mix(hash ^ (u64(node.preemptions) << 32 | node.last));
        if (memory_) {
            for (const auto& actor : actors_) hash = mix(hash + actor->is_fenced);
            hash = mix(hash ^ memory_->hash(node.stale_loads != 0)) + node.stale_loads;
        }
        return hash;
    }

    // The present state, come to from `from` by the choice `last`; null: the first.
    Node look(const Node* from, u32 last) {
        Node node{};
        node.last = from != nullptr ? actor_of(last) : nobody;
        u32 alive = 0, ready = 0;
        for (u32 i = 0; i < actors_.size(); i++) {
            const Actor& actor = *actors_[i];
            if (actor.fiber.is_over()) continue;
            alive |= 1u << i;
            if (!actor.pauses || actor.may_look_again()) ready |= 1u << i;
        }
        node.stale_loads = options_.stale_loads.value_or(0);
        if (from != nullptr) {
            node.preemptions = from->preemptions;
            node.stale_loads = from->stale_loads - (last % ages != 0);
            node.rounds = has_changed_ ? 0 : from->rounds;
            node.round_left = has_changed_ ? 0 : from->round_left & ~(1u << node.last);
        }
        if (ready == 0 && alive != 0) {
            // All pause. Who has done so for a while may do something else.
            if ((node.round_left &= alive) == 0) {
                node.rounds++;
                node.round_left = alive;
            }
            if (node.rounds <= options_.patience) ready = node.round_left & -node.round_left;
        }
        // An actor that could go on is only interrupted so often.
        if (options_.preemptions && from != nullptr) {
            if (from->last != node.last && from->last != nobody &&
                (from->choices & choices_of(from->last)) != 0)
                node.preemptions++;
            if (node.preemptions >= *options_.preemptions && ready >> node.last & 1)
                ready = 1u << node.last;
        }
        for (u32 i = 0; i < actors_.size(); i++)
            if (ready >> i & 1) node.choices |= ages_of(i, node.stale_loads != 0) << i * ages;
        node.untried = node.choices;
        is_stuck_ = node.choices == 0 && alive != 0;
        return node;
    }
    // Which messages the actor's next operation may read: a bit for each.
    u32 ages_of(u32 number, bool may_be_stale) {
        const Actor& actor = *actors_[number];
        if (!may_be_stale || actor.pauses || actor.load_size == 0 || !is_modelled(actor.address))
            return 1;
        return (1u << memory_->choices(number, actor.address, actor.load_size)) - 1;
    }

    // ---- the search ----------------------------------------------------------------

    void search() {
        begin();
        bool is_here = true;  // at the last node of the way
        way_.clear();
        arrive(nullptr, 0);
        while (!way_.empty() && !result_.failure) {
            Node& node = way_.back();
            if (node.untried == 0) {
                double found = node.interleavings;
                if (options_.merges_states) known_[node.hash] = found;
                way_.pop_back();
                if (!way_.empty()) way_.back().interleavings += found;
                if (way_.empty()) result_.interleavings = found;
                is_here = false;
                continue;
            }
            u32 choice = u32(__builtin_ctz(node.untried));
            node.untried &= node.untried - 1;
            if (!is_here) go_again();
            if (problem_) std::abort();  // it went well before
            way_choices_.resize(way_.size() - 1);
            way_choices_.push_back(choice);
            step(choice);
            is_here = arrive(&node, choice);
        }
    }

    // False: the present state was left out, or was the last.
    bool arrive(const Node* from, u32 last) {
        result_.longest = std::max(result_.longest, u32(way_choices_.size()));
        if (problem_) return report(*problem_), false;
        Node node = look(from, last);
        if (is_stuck_) return report("stuck: " + who_waits()), false;
        if (node.choices == 0) {
            result_.ends++;
            find_touched();
            scene_.at_end();
            if (problem_) return report(*problem_), false;
            add(1);
            return false;
        }
        if (options_.merges_states) {
            constexpr u64 look_every = 16;
            if (result_.states % look_every == 0) find_touched();
            node.hash = state_hash(node);
            auto [found, is_new] = known_.try_emplace(node.hash, on_the_way);
            if (!is_new) {
                if (found->second == on_the_way) result_.cycles++;
                add(std::max(found->second, 0.0));
                return false;
            }
        }
        if (++result_.states > options_.most_states)
            return report("more than " + std::to_string(options_.most_states) + " states"), false;
        way_.push_back(node);
        return true;
    }
    void add(double interleavings) {
        if (way_.empty())
            result_.interleavings += interleavings;
        else
            way_.back().interleavings += interleavings;
    }
    void go_again() {
        begin();
        for (usize i = 0; i + 1 < way_.size(); i++) step(way_choices_[i]);
    }

    // ---- failures ------------------------------------------------------------------

    std::string name_of(u32 actor) const {
        return actor < options_.names.size() ? options_.names[actor]
                                             : "actor " + std::to_string(actor);
    }
    std::string who_waits() const {
        std::string text;
        for (u32 i = 0; i < actors_.size(); i++) {
            const Actor& actor = *actors_[i];
            if (actor.fiber.is_over()) continue;
            text += (text.empty() ? "" : ", ") + name_of(i) + " pauses at " + actor.site.file +
                    ":" + std::to_string(actor.site.line);
        }
        return text;
    }
    void report(const std::string& message) {
        Failure failure{message, schedule_text(way_choices_), ""};
        if (!is_told_) {
            std::vector<u32> choices = way_choices_;
            is_told_ = true;
            problem_.reset();
            begin();
            for (u32 choice : choices) step(choice);
            is_told_ = false;
        }
        failure.trace = std::move(trace_);
        result_.failure = std::move(failure);
    }
    void tell(const void* address, u64 old, u64 now, bool has_read) {
        char line[256];
        const Actor& actor = *current_;
        int length = std::snprintf(line, sizeof line, "%-12s %-20s", name_of(number()).c_str(),
                                   actor.operation);
        trace_.append(line, usize(length));
        if (address != nullptr && actor.load_size != 0 && age_ != 0) trace_ += " (old)";
        if (address != nullptr) {
            s64 offset = static_cast<const u8*>(address) - static_cast<const u8*>(scene_.state);
            length = std::snprintf(line, sizeof line, " state+0x%llx", (unsigned long long)offset);
            if (offset < 0 || u64(offset) >= scene_.size)
                length = std::snprintf(line, sizeof line, " %p", address);
            trace_.append(line, usize(length));
            length = old == now && has_read
                         ? std::snprintf(line, sizeof line, " is %llx", (unsigned long long)now)
                         : std::snprintf(line, sizeof line, " was %llx, becomes %llx",
                                         (unsigned long long)old, (unsigned long long)now);
            trace_.append(line, usize(length));
        }
        length = std::snprintf(line, sizeof line, "  (%s:%u)\n", actor.site.file, actor.site.line);
        trace_.append(line, usize(length));
    }

    // An access to the word that the actors raced for: where in the program, for addr2line.
    void tell_plain(const void* address, usize size, bool is_write, const void* code) {
        const usize offset =
            usize(static_cast<const u8*>(address) - static_cast<u8*>(scene_.state));
        const usize raced = memory_->raced_at();
        if (raced + 4 <= offset || raced >= offset + size) return;
        Dl_info where{};
        dladdr(code, &where);
        char line[256];
        const int length = std::snprintf(
            line, sizeof line, "%-12s plain %-14s state+0x%llx, %llu bytes  (program+0x%llx)\n",
            name_of(number()).c_str(), is_write ? "write" : "read", (unsigned long long)offset,
            (unsigned long long)size,
            (unsigned long long)(static_cast<const u8*>(code) -
                                 static_cast<const u8*>(where.dli_fbase)));
        trace_.append(line, usize(length));
    }

    static std::string choice_text(u32 choice) {
        const std::string text = std::to_string(actor_of(choice));
        return choice % ages == 0 ? text : text + "-" + std::to_string(choice % ages);
    }
    static std::string schedule_text(const std::vector<u32>& choices) {
        std::string text;
        for (usize i = 0; i < choices.size();) {
            usize end = i;
            while (end < choices.size() && choices[end] == choices[i]) end++;
            text += (text.empty() ? "" : " ") + choice_text(choices[i]);
            if (end - i > 1) text += "*" + std::to_string(end - i);
            i = end;
        }
        return text;
    }
    void follow(const std::string& schedule) {
        is_told_ = true;
        begin();
        Node node = look(nullptr, 0);
        const char* at = schedule.c_str();
        for (char* end = nullptr; *at != 0 && !problem_ && !is_stuck_; at = end) {
            u32 actor = u32(std::strtoul(at, &end, 10)), age = 0, times = 1;
            if (*end == '-') age = u32(std::strtoul(end + 1, &end, 10));
            if (*end == '*') times = u32(std::strtoul(end + 1, &end, 10));
            if (end == at || actor >= actors_.size() || age >= ages) break;
            for (; times > 0 && !problem_ && !is_stuck_; times--) {
                if (actors_[actor]->fiber.is_over()) break;
                way_choices_.push_back(actor * ages + age);
                step(way_choices_.back());
                node = look(&node, way_choices_.back());
            }
            while (*end == ' ') end++;
        }
        result_.states = way_choices_.size();
        if (!problem_ && node.choices == 0 && !is_stuck_) scene_.at_end();
        if (problem_)
            report(*problem_);
        else if (is_stuck_)
            report("stuck: " + who_waits());
    }

    // ---- what of the state counts --------------------------------------------------

    // Most of a state is never touched. Lines of it that were, by an operation or otherwise, are
    // hashed; whenever there is one more, states are different ones from before.
    static constexpr usize line_bytes = 64;

    void touch(const void* address) {
        const s64 offset = static_cast<const u8*>(address) - static_cast<const u8*>(scene_.state);
        if (offset < 0 || u64(offset) >= scene_.size) return;
        const u32 line = u32(u64(offset) / line_bytes);
        if (is_live_[line]) return;
        is_live_[line] = true;
        live_lines_.push_back(line);
    }
    void find_touched() {
        const u8* now = static_cast<const u8*>(scene_.state);
        if (std::memcmp(now, first_.data(), scene_.size) == 0) return;
        for (usize at = 0; at < scene_.size; at += line_bytes)
            if (std::memcmp(now + at, &first_[at], std::min(line_bytes, scene_.size - at)) != 0)
                touch(now + at);
    }
    void reset() {
        if (first_.empty()) {
            scene_.reset();
            const u8* state = static_cast<const u8*>(scene_.state);
            first_.assign(state, state + scene_.size);
            is_live_.resize(scene_.size / line_bytes + 1);
        }
        std::memcpy(scene_.state, first_.data(), scene_.size);
    }

    const Scene& scene_;
    const ExploreOptions& options_;
    std::vector<u8> first_;  // the first state
    std::vector<bool> is_live_;
    std::vector<u32> live_lines_;
    std::vector<std::unique_ptr<Actor>> actors_;
    Actor* current_ = nullptr;
    std::unique_ptr<WeakMemory> memory_;
    u32 age_ = 0;  // which message the present step's load reads
    bool has_changed_ = false, is_stuck_ = false, is_told_ = false;
    std::optional<std::string> problem_;
    std::string trace_;
    std::vector<Node> way_;
    std::vector<u32> way_choices_;  // from each node of the way to the next
    std::unordered_map<u64, double> known_;
    Exploration result_;
};

bool is_running() { return exploring != nullptr && exploring->is_running(); }

Mutant mutant;
bool is_mutated = false;

bool is_at(const Mutant& one, const char* name, Site site) {
    return is_mutated && one.line <= site.line && site.line <= one.last_line &&
           one.file == site.file && one.operation == name;
}
Operation weakened(Operation what, Site site) {
    if (seen_sites != nullptr) seen_sites->insert({what.name, site.file, site.line});
    if (!is_at(mutant, what.name, site)) return what;
    switch (mutant.change) {
        case Change::no_acquire: what.order = Order(u8(what.order) & ~u8(Order::acquire)); break;
        case Change::no_release: what.order = Order(u8(what.order) & ~u8(Order::release)); break;
        case Change::device_scope: what.scope = Scope::device; break;
        default: break;
    }
    return what;
}

}  // namespace

void mutate(const Mutant* one) {
    is_mutated = one != nullptr;
    if (is_mutated) mutant = *one;
}
void wait_turn(const Operation& what, const void* address, u32 load_size, Site site) {
    if (is_running()) exploring->before(what.name, address, site, load_size);
}
void after_write(Site site) {
    if (is_running()) exploring->after_write(site);
}
u64 load(const Operation& what, const void* address, u32 size, Site site) {
    if (!is_running()) return value_at(address, size);
    return exploring->load(weakened(what, site), address, size, site);
}
void store(const Operation& what, void* address, u32 size, u64 value, Site site) {
    if (!is_running())
        std::memcpy(address, &value, size);
    else
        exploring->store(weakened(what, site), address, size, value, site);
}
u64 begin_update(const Operation& what, void* address, u32 size, Site site) {
    if (!is_running()) return value_at(address, size);
    return exploring->begin_update(weakened(what, site), address, size, site);
}
void end_update(const Operation& what, void* address, u32 size, u64 old, u64 now, bool writes,
                Site site) {
    if (!is_running())
        std::memcpy(address, &now, size);
    else
        exploring->end_update(weakened(what, site), address, size, old, now, writes, site);
}
void fence(const char* name, Fence kind, Site site) {
    if (!is_running()) return;
    if (seen_sites != nullptr) seen_sites->insert({name, site.file, site.line});
    if (is_at(mutant, name, site))
        kind = mutant.change == Change::no_fence ? Fence::none : Fence::acq_rel;
    exploring->fence(kind, site);
}
void plain(const void* address, usize size, bool is_write, const void* code) {
    if (is_running()) exploring->plain(address, size, is_write, code);
}
void pause_actor(Site site) {
    if (is_running()) exploring->pause(site);
}
u32 actor_number() { return exploring ? exploring->number() : 0; }
u64 explored_clock() { return exploring ? exploring->clock() : 0; }
void fail(const char* message, Site site) {
    if (exploring == nullptr) std::abort();
    exploring->fail(message, site);
}

// Of the schedules that fail, one with the fewest interruptions is told: it is the easiest to read.
Exploration explore(const Scene& scene, const ExploreOptions& options) {
    Exploration all = Explorer(scene, options).explore();
    if (!all.failure || !options.explains || !options.schedule.empty() || options.preemptions)
        return all;
    for (u32 preemptions = 0; preemptions < 8; preemptions++) {
        ExploreOptions fewer = options;
        fewer.preemptions = preemptions;
        fewer.merges_states = true;
        Exploration found = Explorer(scene, fewer).explore();
        if (!found.failure) continue;
        all.failure = std::move(found.failure);
        break;
    }
    return all;
}

std::string Exploration::to_string() const {
    char line[200];
    std::snprintf(line, sizeof line,
                  "%.6g interleavings in %llu states, %llu steps, %llu ends, longest %u",
                  interleavings, (unsigned long long)states, (unsigned long long)steps,
                  (unsigned long long)ends, longest);
    std::string text = line;
    if (cycles != 0) text += ", " + std::to_string(cycles) + " cycles";
    if (failure)
        text += "\nfailed: " + failure->message + "\nschedule: " + failure->schedule + "\n" +
                failure->trace;
    return text;
}

}  // namespace gpurun::test
