// The page allocator: page memory in pieces of whole pages, for slots and code. Blocks of a power
// of two of pages that lie side by side join again when both are free; what a piece leaves of its
// block is free at once. One lock: slots that are given back go to their program's list first.
#pragma once

#include "runtime/machine/machine.h"

namespace gpurun::rt {

// Free blocks are linked in their own memory: page + 1 of the next and of the one before.
struct FreePages {
    u64 next, previous;
};

class PageAllocator {
public:
    explicit PageAllocator(const Machine& m)
        : pages_(m.pages), header_(*reinterpret_cast<PageHeader*>(m.pages)) {}

    // Once, before anybody takes any.
    [[gnu::noinline]] void begin() {
        give_range(header_.first_page, header_.pages - header_.first_page);
    }

    // The first of `count` pages, with what they held before; 0: there are not so many together.
    [[gnu::noinline]] u64 take(u64 count) {
        const u32 order = order_of(count);
        if (count == 0 || order >= page_orders) return 0;
        Lock lock(&header_.lock);
        u32 found = order;
        while (found < page_orders && header_.free_lists[found] == 0) found++;
        if (found == page_orders) return 0;
        const u64 page = header_.free_lists[found] - 1;
        remove(page, found);
        while (found > order) {
            found--;
            insert(page + (u64{1} << found), found);
        }
        give_range(page + count, (u64{1} << order) - count);
        store_relaxed(&header_.used_pages, header_.used_pages + count);
        return page;
    }
    [[gnu::noinline]] void give(u64 page, u64 count) {
        if (count == 0) return;
        Lock lock(&header_.lock);
        give_range(page, count);
        store_relaxed(&header_.used_pages, header_.used_pages - count);
    }

private:
    static u32 order_of(u64 count) { return count <= 1 ? 0 : 64 - u32(__builtin_clzll(count - 1)); }
    FreePages& at(u64 page) { return *reinterpret_cast<FreePages*>(pages_ + (page << page_shift)); }
    u8& tag(u64 page) { return pages_[sizeof(PageHeader) + page]; }
    void insert(u64 page, u32 order) {
        u64& first = header_.free_lists[order];
        at(page) = {first, 0};
        if (first != 0) at(first - 1).previous = page + 1;
        first = page + 1;
        tag(page) = u8(0x80 | order);
    }
    void remove(u64 page, u32 order) {
        FreePages& block = at(page);
        if (block.next != 0) at(block.next - 1).previous = block.previous;
        if (block.previous != 0)
            at(block.previous - 1).next = block.next;
        else
            header_.free_lists[order] = block.next;
        tag(page) = 0;
    }
    // Pages that are no block: as few aligned blocks as they make.
    [[gnu::noinline]] void give_range(u64 page, u64 count) {
        while (count > 0) {
            u32 order = 63 - u32(__builtin_clzll(count));
            const u32 aligned = page == 0 ? 63 : u32(__builtin_ctzll(page));
            if (aligned < order) order = aligned;
            if (order >= page_orders) order = page_orders - 1;
            give_block_of(page, order);
            page += u64{1} << order;
            count -= u64{1} << order;
        }
    }
    [[gnu::noinline]] void give_block_of(u64 page, u32 order) {
        for (; order + 1 < page_orders; order++) {
            const u64 buddy = page ^ (u64{1} << order);
            if (buddy + (u64{1} << order) > header_.pages || tag(buddy) != (0x80 | order)) break;
            remove(buddy, order);
            page &= ~(u64{1} << order);
        }
        insert(page, order);
    }

    u8* pages_;
    PageHeader& header_;
};

inline u64 page_count(u64 bytes) { return (bytes + (u64{1} << page_shift) - 1) >> page_shift; }

}  // namespace gpurun::rt
