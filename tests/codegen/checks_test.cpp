// Which accesses check their address, and how far.
#include <gtest/gtest.h>

#include "base/format.h"
#include "codegen/checks.h"

#include "abi/layout.h"
#include "engine/load.h"

namespace gpurun::test {
namespace {

struct Options {
    bool wants_alignment = false, is_metered = false;
};

// What `told` says of each access of a function with this body, by its check.
template <class Told>
std::string of_accesses(const std::string& body, Options options, Told describe) {
    const std::string text =
        "(module (memory 1) (func (param $p i32) (param $q i32) " + body + "))";
    auto module = engine::load_bytes({text.begin(), text.end()}, "test.wat");
    if (!module) return module.error().to_string();
    auto code = translate::translate(**module, {.metered = options.is_metered});
    if (!code) return code.error().to_string();
    const translate::CodeEffects effects(**module, *code);
    const codegen::Flow flow(effects, 0, code->entries[0], code->instantiate);
    const codegen::Checks found(flow, effects, 0, options.wants_alignment);
    std::string made;
    translate::Effects e;
    for (u32 at = code->entries[0]; at < code->instantiate; at += e.words) {
        effects.look(at, e);
        if (const codegen::Checks::Access* access = found.access(at))
            made += describe(*access, found.check(at));
    }
    return made;
}

// How many bytes each checks, and the bits of the address; '!' if it is done as aligned then.
std::string checks(const std::string& body, Options options = {}) {
    const std::string made = of_accesses(
        body, options,
        [&](const codegen::Checks::Access& access, const codegen::Checks::Check& check) {
            std::string one = format(" %llu", (unsigned long long)check.end);
            if (options.wants_alignment)
                one += format("/%u%s", check.mask, access.is_aligned ? "!" : "");
            return one;
        });
    return made.substr(made.starts_with(' '));
}

// Which stores note where they write: '!', or '.' if one before has done so.
std::string notes(const std::string& body) {
    return of_accesses(body, {},
                       [](const codegen::Checks::Access& access, const codegen::Checks::Check&) {
                           return !access.is_store ? "" : access.is_noted ? "." : "!";
                       });
}

TEST(Checks, OfOneAddressAreTheFirstOnes) {
    EXPECT_EQ(checks("(i32.store offset=8 (local.get $p) (i32.load (local.get $p)))"
                     "(i32.store (local.get $p) (i32.const 0))"),
              "12 0 0");
    EXPECT_EQ(checks("(drop (i32.load (local.get $p))) (drop (i32.load offset=4 (local.get $q)))"),
              "4 8");
    // What is written to in between is another address.
    EXPECT_EQ(
        checks(
            "(local.set $p (i32.load (local.get $p))) (drop (i32.load offset=4 (local.get $p)))"),
        "4 8");
}

TEST(Checks, AreKnownWhereAllWaysHaveThem) {
    constexpr const char* load = "(drop (i32.load (local.get $p)))";
    auto after_if = [&](const char* then, const char* other) {
        return checks(format("(if (local.get $q) (then %s) (else %s)) %s", then, other, load));
    };
    EXPECT_EQ(after_if(load, load), "4 4 0");
    EXPECT_EQ(after_if(load, ""), "4 4");
    EXPECT_EQ(after_if("(drop (i64.load (local.get $p)))", load), "8 4 0");
    EXPECT_EQ(after_if("(drop (i32.load8_u (local.get $p)))", load), "1 4 4");
    EXPECT_EQ(checks(format("%s (if (local.get $q) (then %s))", load, load)), "4 0");
}

// It may be entered there.
TEST(Checks, AreNotKnownInALoop) {
    constexpr const char* load = "(drop (i32.load (local.get $p)))";
    EXPECT_EQ(checks(format("%s (loop $l %s (br_if $l (local.get $q))) %s", load, load, load)),
              "4 4 0");
}

TEST(Checks, AlignmentIsWhatTheInstructionSays) {
    for (bool is_metered : {false, true}) {
        const Options options{.wants_alignment = true, .is_metered = is_metered};
        EXPECT_EQ(
            checks("(drop (i32.load (local.get $p))) (drop (i64.load (local.get $p)))", options),
            "8/7! 0/0!");
        EXPECT_EQ(checks("(drop (i32.load align=2 (local.get $p)))"
                         "(drop (i32.load (local.get $p)))"
                         "(drop (i32.load16_u (local.get $p)))",
                         options),
                  "4/3 0/0! 0/0!");
        EXPECT_EQ(checks("(drop (i32.load offset=2 (local.get $p)))"
                         "(drop (i32.load offset=100000 (local.get $p)))"
                         "(drop (i32.load8_u offset=3 (local.get $p)))",
                         options),
                  "100004/3 0/0! 0/0!");
    }
}

TEST(Checks, NotesReachAsFarAsTheyAreGoodFor) {
    auto store = [](u32 offset) {
        return format("(i32.store offset=%u (local.get $p) (i32.const 0))", offset);
    };
    const u32 last = 4 + dirty_reach - 4;
    EXPECT_EQ(notes(store(4) + store(8) + store(last) + store(last + 1)), "!..!");
    EXPECT_EQ(notes(store(4) + store(0) + store(4)), "!!.");
    EXPECT_EQ(notes(store(4) + "(local.set $p (i32.const 9))" + store(4)), "!!");
    EXPECT_EQ(notes("(drop (i32.load (local.get $p)))" + store(0)), "!");
}

}  // namespace
}  // namespace gpurun::test
