// The host's end of the mailbox, with a device that is played here: honest, slow, and hostile.
#include "host/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "abi/ring.h"

namespace gpurun::host {
namespace {

std::span<const u8> bytes_of(const std::string& text) {
    return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

// The device's end.
class Peer {
public:
    explicit Peer(Mailbox& mailbox) : mailbox_(mailbox) {}

    bool send(MessageKind kind, std::span<const u8> payload) {
        const u64 head = std::atomic_ref(mailbox_.out_head).load();
        RingRoom room = ring_room(head, out_tail_, out_ring_bytes, payload.size());
        if (!room.fits) return false;
        auto put = [&](u64 at, MessageKind what, u64 size) {
            MessageHead made = message_head(what, u32(size));
            std::memcpy(mailbox_.out_ring + at, &made, sizeof made);
        };
        if (room.skip) put(room.skip_at, MessageKind::skip, room.skip - sizeof(MessageHead));
        put(room.at, kind, payload.size());
        std::ranges::copy(payload, mailbox_.out_ring + room.at + sizeof(MessageHead));
        out_tail_ = room.tail;
        std::atomic_ref(mailbox_.out_tail).store(out_tail_);
        return true;
    }
    template <class T>
    bool send(MessageKind kind, const T& value) {
        return send(kind, std::span(reinterpret_cast<const u8*>(&value), sizeof value));
    }

    // Nothing: the ring is empty.
    std::optional<std::pair<MessageKind, std::string>> take() {
        const u64 tail = std::atomic_ref(mailbox_.in_tail).load();
        RingNext next = ring_next(in_head_, tail, in_ring_bytes, [&](u64 at) {
            MessageHead head;
            std::memcpy(&head, mailbox_.in_ring + at, sizeof head);
            return head;
        });
        EXPECT_NE(next.state, RingState::broken);
        if (next.state != RingState::message) return std::nullopt;
        std::string payload(reinterpret_cast<char*>(mailbox_.in_ring + next.at), next.what.size);
        in_head_ = next.head;
        std::atomic_ref(mailbox_.in_head).store(in_head_);
        return std::pair(next.what.kind, payload);
    }

private:
    Mailbox& mailbox_;
    u64 in_head_ = 0, out_tail_ = 0;
};

struct MailboxTest : testing::Test {
    std::unique_ptr<Mailbox> mailbox = std::make_unique<Mailbox>();
    MailboxEnd host{*mailbox};
    Peer device{*mailbox};
};

TEST_F(MailboxTest, MessagesArriveAsTheyWereSent) {
    EXPECT_FALSE(device.take());
    EXPECT_TRUE(*host.send(MessageKind::ping, Ping{7}));
    EXPECT_TRUE(*host.send(MessageKind::spawn, SpawnRequest{}, bytes_of("hello")));
    auto first = device.take();
    ASSERT_TRUE(first);
    EXPECT_EQ(first->first, MessageKind::ping);
    EXPECT_EQ(first->second.size(), sizeof(Ping));
    auto second = device.take();
    ASSERT_TRUE(second);
    EXPECT_EQ(second->second.substr(sizeof(SpawnRequest)), "hello");

    EXPECT_FALSE(*host.take());
    EXPECT_TRUE(device.send(MessageKind::pong, Ping{9}));
    auto taken = host.take();
    ASSERT_TRUE(taken && *taken);
    EXPECT_EQ((*taken)->as<Ping>().number, 9u);
}

TEST_F(MailboxTest, AFullRingSaysSoAndGoesOn) {
    const std::string large(max_message, 'x');
    u32 sent = 0;
    while (*host.send(MessageKind::input, bytes_of(large))) sent++;
    EXPECT_GT(sent, in_ring_bytes / (max_message + message_unit) - 2);
    EXPECT_TRUE(device.take());
    EXPECT_TRUE(*host.send(MessageKind::input, bytes_of(large)));
    for (u32 i = 0; i < sent; i++) EXPECT_TRUE(device.take());
    EXPECT_FALSE(device.take());
}

TEST_F(MailboxTest, SizesOfAllKindsGoAroundManyTimes) {
    std::mt19937 random(1);
    std::thread other([&] {
        std::mt19937 same(1);
        for (u32 i = 0; i < 20'000; i++) {
            const std::string payload(same() % 3000, char('a' + i % 26));
            while (!*host.send(MessageKind::input, bytes_of(payload))) std::this_thread::yield();
        }
    });
    for (u32 i = 0; i < 20'000; i++) {
        const std::string expected(random() % 3000, char('a' + i % 26));
        auto got = device.take();
        while (!got) {
            std::this_thread::yield();
            got = device.take();
        }
        ASSERT_EQ(got->second, expected);
    }
    other.join();
}

TEST_F(MailboxTest, TheDeviceSizesGoAroundToo) {
    std::thread other([&] {
        for (u32 i = 0; i < 20'000; i++) {
            std::string payload(sizeof(StreamBytes) + i % 5000, char('a' + i % 26));
            while (!device.send(MessageKind::output, bytes_of(payload))) std::this_thread::yield();
        }
    });
    for (u32 i = 0; i < 20'000;) {
        auto got = host.take();
        ASSERT_TRUE(got);
        if (!*got) {
            std::this_thread::yield();
            continue;
        }
        ASSERT_EQ((*got)->payload.size(), sizeof(StreamBytes) + i % 5000);
        ASSERT_EQ((*got)->payload.back(), u8('a' + i % 26));
        i++;
    }
    other.join();
}

TEST_F(MailboxTest, IndicesThatCannotBeAreAnError) {
    mailbox->out_tail = out_ring_bytes + message_unit;
    EXPECT_FALSE(host.take());
    mailbox->out_tail = 0;
    EXPECT_FALSE(host.take()) << "once broken, it stays so";
}

// The device's head is looked at when there is no room by the one that was seen last.
TEST_F(MailboxTest, AHeadBeyondTheTailIsAnError) {
    const std::string large(max_message, 'x');
    while (*host.send(MessageKind::input, bytes_of(large))) {
    }
    mailbox->in_head = mailbox->in_tail + message_unit;
    EXPECT_FALSE(host.send(MessageKind::input, bytes_of(large)));
}

TEST_F(MailboxTest, MessagesThatCannotBeAreErrors) {
    struct Case {
        const char* what;
        MessageHead head;
        u64 tail;
    };
    const Case cases[] = {
        {"another version", {8, MessageKind::pong, 2, 0}, 32},
        {"longer than what is there", {64, MessageKind::pong, message_version, 0}, 32},
        {"too short", {4, MessageKind::pong, message_version, 0}, 32},
        {"too long", {max_message + 1, MessageKind::output, message_version, 0}, 1 << 17},
        {"not for the host", {48, MessageKind::spawn, message_version, 0}, 64},
        {"no kind", {8, MessageKind(999), message_version, 0}, 32},
        {"a skip at the start", {0, MessageKind::skip, message_version, 0}, 16},
    };
    for (const Case& it : cases) {
        auto memory = std::make_unique<Mailbox>();
        MailboxEnd end(*memory);
        std::memcpy(memory->out_ring, &it.head, sizeof it.head);
        memory->out_tail = it.tail;
        EXPECT_FALSE(end.take()) << it.what;
    }
}

// Whatever is in the ring, each message is read once and the answer comes in bounded time.
TEST_F(MailboxTest, RandomBytesAreReadOrRefused) {
    std::mt19937 random(2);
    for (u32 round = 0; round < 200; round++) {
        auto memory = std::make_unique<Mailbox>();
        MailboxEnd end(*memory);
        for (u32 i = 0; i < 4096; i += 4) {
            // Every other head is plausible, so that some get further.
            u32 word = random();
            if (random() % 2) {
                MessageHead head = message_head(MessageKind(random() % 24), random() % 100);
                std::memcpy(memory->out_ring + (i & ~15u), &head, sizeof head);
            } else {
                std::memcpy(memory->out_ring + i, &word, 4);
            }
        }
        memory->out_tail = 4096;
        for (u32 i = 0; i < 300; i++) {
            auto got = end.take();
            if (!got || !*got) break;
            ASSERT_LT(i, 257u);
        }
    }
}

TEST_F(MailboxTest, StatsAreConsistent) {
    std::atomic<bool> stop = false;
    std::thread writer([&] {
        auto store = [](u64& to, u64 value) { std::atomic_ref(to).store(value); };
        for (u64 i = 1; !stop; i++) {
            store(mailbox->stats.sequence, 2 * i - 1);
            store(mailbox->stats.spawned, i);
            store(mailbox->stats.ended, i);
            store(mailbox->stats.sequence, 2 * i);
        }
    });
    u32 seen = 0;
    for (u32 i = 0; i < 1000; i++) {
        std::optional<MachineStats> stats = host.stats();
        if (!stats) continue;
        seen++;
        ASSERT_EQ(stats->spawned, stats->ended);
    }
    stop = true;
    writer.join();
    EXPECT_GT(seen, 0u);
}

}  // namespace
}  // namespace gpurun::host
