// The host's end of the mailbox, with a device that is played here: honest, slow, and hostile.
#include "host/mailbox.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "peer.h"

namespace gpurun::host {
namespace {

using test::Peer;

std::span<const u8> bytes_of(const std::string& text) {
    return {reinterpret_cast<const u8*>(text.data()), text.size()};
}

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
    device.send(MessageKind::pong, Ping{9});
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
            while (!device.try_send(MessageKind::output, bytes_of(payload)))
                std::this_thread::yield();
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
    // Ends: now and then the writer is between two of them.
    for (u32 seen = 0, i = 0; seen == 0 || i < 1000; i++) {
        std::optional<MachineStats> stats = host.stats();
        if (!stats) continue;
        seen++;
        EXPECT_EQ(stats->spawned, stats->ended);
    }
    stop = true;
    writer.join();
}

}  // namespace
}  // namespace gpurun::host
