// Who touched memory, and whether two accesses race.
//
// Time is counted in ticks: each threadgroup begins one, and each barrier one for the kinds of memory that it names.
// Accesses of two threads to one byte, one of them a write, race if they fall into the same tick and no simdgroup_barrier
// lies between them, or if the threads are of different threadgroups; two atomic ones never do. A read that any barrier of
// all threads follows has its value: what is written behind the barrier cannot reach it, whatever memory it names. A fence
// begins a tick too: what lies before a fence of the one side and is followed by one of the other is taken for handed over.

#pragma once

#include "runtime_state.h"

namespace __emu {

// Who touched memory last: tick 32 bits, simdgroup barriers since then 20, thread 10, written 1, atomic 1. 0: nobody.
// `written` tells an atomic write from an atomic read among the elders.
using stamp = u64;

// Four bytes, or one of them where they were touched apart: then `writer` of the four has the number of the first of four
// cells in its lower half.
struct alignas(32) cell {
    stamp writer, reader, elder;  // elder: a reader, or an atomic access, before the last one and of another thread
    u64 pcs;                      // of the three, 21 bits each, from the entry's address; 0: unknown
};

namespace {

constexpr u64 most_parts = 1 << 26, most_groups = 1 << 24, static_cells = most_memory / 4 + most_blocks;
constexpr u64 most_kept = 256 << 20;  // bytes of cells that are cleared rather than given back
constexpr u32 apart_tick = ~0u, pc_bits = 21;

struct group_start {
    u64 number;
    u32 tick, fence;              // its first tick; that of the last fence in it, 0: none
};

struct sanitizer_state {
    u32 tick, began;              // the last one; that of the running group
    u32 now[2];                   // of device memory, of threadgroup memory
    u32 met;                      // that of the last barrier, whatever it names
    u32 simdgroup[2][most_simdgroups];  // barriers of each since the tick began
    u32 fences[most_threads];     // the tick of each thread's last one in the running group
    u32 groups, parts;
    u64 entry;                    // its address
    u64 cells_used, cells_size;
    cell *cells, *apart, *of_statics;
    group_start* starts;
    u8 hints[256];                // by the accessing code: which block it met last
} it;

void* fresh_pages(u64 nbytes, void* at = nullptr) {
    int kind = map_private | map_anonymous | map_noreserve | (at ? map_fixed : 0);
    void* pages = mmap(at, nbytes, prot_read | prot_write, kind, -1, 0);
#ifndef __APPLE__
    madvise(pages, nbytes, 14);  // in huge pages, where there are any
#endif
    return pages;
}

u32 kind_of(const block& b) { return b.space == in_buffer ? 0 : 1; }
u32 tick_of(stamp s) { return u32(s >> 32); }
u32 thread_of(stamp s) { return u32(s) >> 2 & 1023; }
u32 simd_of(stamp s) { return u32(s) >> 12; }

struct access {
    stamp mine;
    u32 kind, how;
    u64 at, pc;                   // the caller's address; the same as in a cell
};

const group_start& group_of(stamp s) {
    u64 low = 0, high = it.groups;
    while (low + 1 < high) {
        u64 middle = (low + high) / 2;
        (it.starts[middle].tick <= tick_of(s) ? low : high) = middle;
    }
    return it.starts[low];
}

// Threads of different groups hand over for their whole groups, which have barriers.
__attribute__((noinline)) bool is_handed_over(stamp other, const access& a) {
    bool is_foreign = tick_of(other) < it.began;
    u32 mine = is_foreign ? it.starts[it.groups - 1].fence : it.fences[thread_of(a.mine)];
    u32 theirs = is_foreign ? group_of(other).fence : it.fences[thread_of(other)];
    return theirs > tick_of(other) && mine > theirs;
}

bool conflicts(stamp other, const access& a) {
    if (!other || ((other & 1) && (a.how & access_atomic))) return false;
    if (tick_of(other) < it.began) return a.kind == 0 && !is_handed_over(other, a);
    if (thread_of(other) == thread_of(a.mine) || tick_of(other) < it.now[a.kind]) return false;
    bool is_apart = thread_of(other) / width != thread_of(a.mine) / width || simd_of(other) >= simd_of(a.mine);
    return is_apart && !is_handed_over(other, a);
}

bool is_over(stamp reader) { return tick_of(reader) < it.met && tick_of(reader) >= it.began && !(reader & 1); }
bool stands_against(stamp reader, const access& a) { return !is_over(reader) && conflicts(reader, a); }

position position_in(u64 number, u32 index) {
    const size3 groups = run.now.threadgroups_per_grid, full = run.now.dispatch_threads_per_threadgroup;
    const size3 all = run.now.threads_per_grid;
    size3 g = {u32(number % groups.x), u32(number / groups.x % groups.y), u32(number / groups.x / groups.y)};
    u32 across = all.x - g.x * full.x < full.x ? all.x - g.x * full.x : full.x;
    u32 down = all.y - g.y * full.y < full.y ? all.y - g.y * full.y : full.y;
    return {{g.x * full.x + index % across, g.y * full.y + index / across % down, g.z * full.z + index / across / down}, g};
}

u64 packed(u64 pc) {
    i64 offset = i64(pc - it.entry), half = 1 << (pc_bits - 1);
    return offset > -half && offset < half ? u64(offset + half) : 0;
}

u64 unpacked(u64 pcs, u32 which) {
    u64 pc = pcs >> which * pc_bits & ((1 << pc_bits) - 1);
    return pc ? it.entry + pc - (1 << (pc_bits - 1)) : 0;
}

inline void keep_pc(u64& pcs, u32 which, u64 pc) {
    u64 mask = u64((1 << pc_bits) - 1) << which * pc_bits;
    pcs = (pcs & ~mask) | pc << which * pc_bits;
}

void tell_other(record* r, stamp other, u64 pc) {
    r->has_other = 1;
    r->other = position_in(group_of(other).number, thread_of(other));
    r->other_pc = pc;
}

// `which` of the cell's stamps stands against the access.
__attribute__((noinline)) void tell_race(const access& a, const char* p, u32 n, const cell& c, u32 which) {
    record* r = report(fault_race, a.at);
    if (r->kind != fault_race) return;  // known already
    stamp other = which == 0 ? c.writer : which == 1 ? c.reader : c.elder;
    place(r, (u64)p);
    r->nbytes = n, r->access = a.how & ~access_both;
    r->other_access = (which == 0 || other & 2 ? access_write : access_read) | (other & 1 ? access_atomic : 0);
    tell_other(r, other, unpacked(c.pcs, which));
}

struct verdict {
    bool raced, defined;
};

// Keeps what another thread did, before the cell's stamp of it gives way to the running thread's. What another group did
// stays: no barrier puts it in order.
inline void pass_on(cell& c, stamp last, u32 which, const access& a) {
    bool is_foreign = c.elder && tick_of(c.elder) < it.began;
    if (is_foreign || (thread_of(last) == thread_of(a.mine) && tick_of(last) >= it.began)) return;
    c.elder = last;
    keep_pc(c.pcs, 2, c.pcs >> which * pc_bits & ((1 << pc_bits) - 1));
}

// An atomic access says less than the thread's own plain one before it: whoever races with it races with that.
inline bool is_covered(stamp last, const access& a) {
    return last && a.how & access_atomic && !(last & 1) && thread_of(last) == thread_of(a.mine) &&
           tick_of(last) >= it.began && tick_of(last) >= it.now[a.kind] && simd_of(last) == simd_of(a.mine);
}

inline void look(cell& c, const access& a, const char* p, u32 n, verdict& v) {
    bool writes = a.how & access_write;
    int which = conflicts(c.writer, a)                                  ? 0
                : writes && stands_against(c.reader, a)                 ? 1
                : (writes || c.elder & 2) && stands_against(c.elder, a) ? 2
                                                                        : -1;
    if (which >= 0 && !v.raced) {
        v.raced = true;
        tell_race(a, p, n, c, u32(which));
    }
    v.defined |= c.writer && (a.kind == 0 || tick_of(c.writer) >= it.began);
    if (writes) {
        if (is_covered(c.writer, a)) return;
        if (a.how & access_atomic && c.writer & 1) pass_on(c, c.writer, 0, a);
        c.writer = a.mine;
        keep_pc(c.pcs, 0, a.pc);
        return;
    }
    if (c.reader == a.mine || is_covered(c.reader, a)) return;
    if (c.reader) pass_on(c, c.reader, 1, a);
    c.reader = a.mine;
    keep_pc(c.pcs, 1, a.pc);
}

bool is_apart(const cell& c) { return tick_of(c.writer) == apart_tick; }

cell* take_apart(cell& c) {
    if (!is_apart(c)) {
        if (it.parts + 4 > most_parts) return nullptr;
        for (u32 i = 0; i < 4; ++i) it.apart[it.parts + i] = c;
        c.writer = u64(apart_tick) << 32 | it.parts;
        it.parts += 4;
    }
    return it.apart + u32(c.writer);
}

inline void look_at_all(const block& b, u64 offset, u64 n, const access& a, verdict& v) {
    for (u64 at = offset, end = offset + n; at < end;) {
        cell& c = b.cells[at / 4];
        u64 next = (at / 4 + 1) * 4 < end ? (at / 4 + 1) * 4 : end;
        if (next - at == 4 && !is_apart(c)) {
            look(c, a, b.begin + at, u32(n), v);
        } else if (cell* parts = take_apart(c)) {
            for (u64 k = at; k < next; ++k) look(parts[k % 4], a, b.begin + k, u32(n), v);
        }
        at = next;
    }
}

}  // namespace

}  // namespace __emu
