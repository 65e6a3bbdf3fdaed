// The page allocator: whoever takes and gives back at the same time, no page is had by two, and all
// are there again in the end, in one piece.
#include "runtime/machine/pages.h"

#include <cstddef>

#include "scenarios.h"

namespace gpurun::test {
namespace {

using namespace rt;

constexpr u32 pages = 9;  // the first is the header's

struct Pages {
    alignas(16) u8 memory[pages << page_shift];
    u8 is_had[pages];
    u32 refusals;

    Machine machine() {
        static MachineHeader none{};
        return {nullptr, memory, &none};
    }
    PageHeader& header() { return *reinterpret_cast<PageHeader*>(memory); }

    u64 take(u64 count) {
        const Machine m = machine();
        const u64 page = PageAllocator(m).take(count);
        if (page == 0) {
            refusals++;
            return 0;
        }
        REQUIRE(page >= 1 && page + count <= pages);
        for (u64 i = page; i < page + count; i++) {
            REQUIRE(!is_had[i]);
            is_had[i] = 1;
        }
        // What is in it is its owner's.
        memset(memory + (page << page_shift), 0xa5, 32);
        return page;
    }
    void give(u64 page, u64 count) {
        if (page == 0) return;
        for (u64 i = page; i < page + count; i++) is_had[i] = 0;
        const Machine m = machine();
        PageAllocator(m).give(page, count);
    }
};

void begin_pages(Pages& s) {
    s.header().pages = pages;
    s.header().first_page = 1;
    const Machine m = s.machine();
    PageAllocator(m).begin();
}
template <u64 count>
void use(Pages& s) {
    s.give(s.take(count), count);
}
template <u64 count, u64 other>
void use_two(Pages& s) {
    const u64 first = s.take(count), second = s.take(other);
    s.give(first, count);
    s.give(second, other);
}
void all_are_there(Pages& s) {
    REQUIRE(s.header().used_pages == 0 && s.header().lock == 0);
    // 4 to 7, 2 and 3, 1, 8.
    for (u64 count : {4, 2, 1, 1}) REQUIRE(s.take(count) != 0);
    REQUIRE(s.take(1) == 0);
}

EXPLORING_TEST(PageAllocator, HandsOutAPageOnce) {
    struct {
        const char* name;
        std::vector<Scenario<Pages>::Act> actors;
    } const cases[] = {
        {"2 take 1 and 2 pages", {use<1>, use<2>}},
        {"3 take 3, 4 and 1 pages", {use<3>, use<4>, use<1>}},
        {"2 take twice, more than there is", {use_two<3, 4>, use_two<2, 3>}},
        {"3 take, two of them twice", {use_two<1, 2>, use_two<2, 1>, use<3>}},
    };
    for (const auto& one : cases) {
        ExploreOptions options;
        options.stops_after_writes = one.actors.size() == 2;
        check(one.name,
              Scenario<Pages>{.begin = begin_pages,
                              .actors = one.actors,
                              .at_end = all_are_there,
                              .watched = offsetof(Pages, is_had)},
              options);
    }
}

}  // namespace
}  // namespace gpurun::test
