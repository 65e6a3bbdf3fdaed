// random_get: ChaCha20 with the host's key; a process's number is its nonce.
#include "runtime/wasi/system.h"

namespace gpurun::rt {
namespace {

constexpr u32 turn(u32 x, u32 by) { return x << by | x >> (32 - by); }

void quarter_round(u32& a, u32& b, u32& c, u32& d) {
    a += b, d = turn(d ^ a, 16);
    c += d, b = turn(b ^ c, 12);
    a += b, d = turn(d ^ a, 8);
    c += d, b = turn(b ^ c, 7);
}

// 64 bytes of the stream.
void random_block(const Process& p, u32 nonce, u64 counter, u32 (&out)[16]) {
    const SystemHeader& system = system_of(p);
    u32 start[16] = {0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
    for (u32 i = 0; i < 8; i++) start[4 + i] = system.random_key[i];
    start[12] = u32(counter);
    start[13] = u32(counter >> 32);
    start[14] = nonce;
    start[15] = 0;
    for (u32 i = 0; i < 16; i++) out[i] = start[i];
    for (u32 round = 0; round < 10; round++) {
        quarter_round(out[0], out[4], out[8], out[12]);
        quarter_round(out[1], out[5], out[9], out[13]);
        quarter_round(out[2], out[6], out[10], out[14]);
        quarter_round(out[3], out[7], out[11], out[15]);
        quarter_round(out[0], out[5], out[10], out[15]);
        quarter_round(out[1], out[6], out[11], out[12]);
        quarter_round(out[2], out[7], out[8], out[13]);
        quarter_round(out[3], out[4], out[9], out[14]);
    }
    for (u32 i = 0; i < 16; i++) out[i] += start[i];
}

}  // namespace

Outcome call_random(Call& call) {
    constexpr u64 blocks_a_turn = 64;
    u32 address = call.i32(), count = call.i32();
    u64 done = call.my->progress;
    if (call.in(address, count) == nullptr) return call.done(Errno::fault);
    for (u64 block = 0; done < count; block++) {
        if (block == blocks_a_turn) {
            call.my->progress = done;
            return call.again();
        }
        u32 words[16];
        random_block(call.p, call.me->id, call.me->random_counter++, words);
        u64 size = count - done < 64 ? count - done : 64;
        u8* to = call.out(address + u32(done), size);
        for (u64 i = 0; i < size; i++) store_bytes<u8>(to + i, u8(words[i / 4] >> (i % 4 * 8)));
        done += size;
    }
    return call.done(Errno::success);
}

}  // namespace gpurun::rt
