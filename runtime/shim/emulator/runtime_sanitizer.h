// What is wrong with an access to memory: outside of all buffers, a race, a read of what was never written.
//
// Time is counted in ticks: each threadgroup begins one, and each barrier one for the kinds of memory that it names.
// Accesses of two threads to one byte, one of them a write, race if they fall into the same tick and no simdgroup_barrier
// lies between them, or if the threads are of different threadgroups; two atomic ones never do. A read that any barrier of
// all threads follows has its value: what is written behind the barrier cannot reach it, whatever memory it names. A fence begins a tick too:
// what lies before a fence of the one side and is followed by one of the other is taken for handed over.

#pragma once

#include "runtime_state.h"

namespace __emu {

// Who touched memory last: tick 32 bits, simdgroup barriers since then 20, thread 10, unused 1, atomic 1. 0: nobody.
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
constexpr u64 near_static = 2048;  // bytes around a threadgroup variable that are taken for it

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
    u8 hints[64];                 // by page: which block was there last
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
    r->other_access = (which ? access_read : access_write) | (other & 1 ? access_atomic : 0);
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

inline void look(cell& c, const access& a, const char* p, u32 n, verdict& v) {
    bool writes = a.how & access_write;
    int which = conflicts(c.writer, a)                         ? 0
                : writes && stands_against(c.reader, a)        ? 1
                : writes && stands_against(c.elder, a)         ? 2
                                                               : -1;
    if (which >= 0 && !v.raced) {
        v.raced = true;
        tell_race(a, p, n, c, u32(which));
    }
    v.defined |= c.writer && (a.kind == 0 || tick_of(c.writer) >= it.began);
    if (writes) {
        if (a.how & access_atomic && c.writer & 1) pass_on(c, c.writer, 0, a);
        c.writer = a.mine;
        keep_pc(c.pcs, 0, a.pc);
        return;
    }
    if (c.reader == a.mine) return;
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

inline bool holds(const block& b, const char* p, u64 n) {
    u64 offset = u64(p - b.begin);
    return offset < b.nbytes && n <= b.nbytes - offset;
}

const block* find(const char* p, u64 n) {
    u8& hint = it.hints[(u64)p >> 12 & 63];
    if (hint < known.count && holds(known.blocks[hint], p, n)) return &known.blocks[hint];
    for (u32 i = 0; i < known.count; ++i) {
        if (holds(known.blocks[i], p, n)) return hint = u8(i), &known.blocks[i];
    }
    return nullptr;
}

void describe(record* r, const char* p, u64 n, u32 how) {
    place(r, (u64)p);
    r->nbytes = u32(n), r->access = how & ~access_both;
}

// Not in any block. Constants of the program are, and what is neither they nor mapped will stop the kernel by itself.
__attribute__((noinline)) void outside(const char* p, u64 n, u32 how, u64 pc) {
    record at = {};
    describe(&at, p, n, how);
    if (!at.space || at.space == in_stack) return;
    u64 away = at.offset < 0 ? u64(-at.offset) : u64(at.offset) < at.extent ? 0 : u64(at.offset) - at.extent;
    if (at.space == in_static && away > near_static) return;
    // The gaps around buffers are memory; a write beside a variable would change another one.
    bool goes_on = at.space == in_static ? !(how & access_write) : away + n < gap;
    record* r = goes_on ? report(fault_out_of_bounds, pc) : crash(fault_out_of_bounds, pc);
    if (r->kind == fault_out_of_bounds) describe(r, p, n, how);
    if (!goes_on) halt();
}

bool is_own_stack(const char* p) {
    u64 stride = u64(stacks_high() - stacks_low()) / most_threads;
    return u64(p - stacks_low()) / stride == u64((char*)__builtin_frame_address(0) - stacks_low()) / stride;
}

inline bool is_runtimes_own(const char* p) {
    return p == (char*)&__emu_current || u64(p - (char*)&run) < sizeof run || u64(p - (char*)&known) < sizeof known;
}

// True if the address is in a thread's stack.
inline bool is_private(const char* p, u64 n, u32 how, u64 pc) {
    if (p < stacks_low() || p >= stacks_high()) return false;
    if (u64(p - (char*)__builtin_frame_address(0)) < 65536 || is_own_stack(p)) return true;
    record* r = report(fault_foreign_stack, pc);
    if (r->kind == fault_foreign_stack) describe(r, p, n, how);
    return true;
}

__attribute__((noinline)) void touch(const void* address, u64 n, u32 how, void* caller) {
    const char* p = (const char*)address;
    if (is_runtimes_own(p)) return;
    u64 pc = (u64)caller - 1;     // inside the call
    const block* b = n ? find(p, n) : nullptr;
    if (!b) {
        if (n && __emu_current && !is_private(p, n, how, pc)) outside(p, n, how, pc);
        return;
    }
    if (how & access_write && !(b->flags & is_writable)) {
        describe(crash(fault_read_only, pc), p, n, how);
        halt();
    }
    u32 index = __emu_current->index, kind = kind_of(*b);
    stamp mine = u64(it.tick) << 32 | it.simdgroup[kind][index / width] << 12 | index << 2 | (how & access_atomic ? 1 : 0);
    const access a = {mine, kind, how, pc, packed(pc)};
    verdict v = {};
    look_at_all(*b, u64(p - b->begin), n, a, v);
    bool reads = !(how & access_write) || how & access_both;
    if (reads && !v.defined && b->flags & is_undefined) {
        record* r = report(fault_uninitialised, pc);
        if (r->kind == fault_uninitialised) describe(r, p, n, how);
    }
}

// Nothing is against an access to what nobody touched, the same thread, or others of the group before the last barrier.
inline bool is_settled(stamp s, u32 kind, u32 thread) {
    return !s || (tick_of(s) >= it.began && (tick_of(s) < it.now[kind] || thread_of(s) == thread));
}

// Most accesses: `n` bytes in whole words, with nothing to say about any. False: `touch` has to look.
template <u32 n, bool writes> inline bool pass(const void* address, void* caller) {
    if (is_runtimes_own((const char*)address)) return true;
    u8 hint = it.hints[(u64)address >> 12 & 63];
    const block& b = known.blocks[hint];
    u64 offset = u64((const char*)address - b.begin);
    if (hint >= known.count || offset % 4 || b.nbytes < n || offset > b.nbytes - n) return false;
    if (writes ? !(b.flags & is_writable) : b.flags & is_undefined && b.space == in_buffer) return false;
    u32 thread = __emu_current->index, kind = kind_of(b);
    access a = {};
    a.mine = u64(it.tick) << 32 | it.simdgroup[kind][thread / width] << 12 | thread << 2;
    a.pc = packed((u64)caller - 1);
    for (cell *c = b.cells + offset / 4, *end = c + n / 4; c != end; ++c) {
        if (is_apart(*c) || !is_settled(c->writer, kind, thread)) return false;
        if (writes) {
            if (!is_settled(c->reader, kind, thread) || !is_settled(c->elder, kind, thread)) return false;
            c->writer = a.mine;
            keep_pc(c->pcs, 0, a.pc);
        } else {
            if (kind && tick_of(c->writer) < it.began) return false;  // not written in this group
            if (c->reader == a.mine) continue;
            if (c->reader) pass_on(*c, c->reader, 1, a);
            c->reader = a.mine;
            keep_pc(c->pcs, 1, a.pc);
        }
    }
    return true;
}

bool is_written(const block& b, u64 offset) {
    const cell& c = b.cells[offset / 4];
    return is_apart(c) ? it.apart[u32(c.writer) + offset % 4].writer : c.writer;
}

// What a vector of three never writes: the last quarter of each `unit` bytes, and nothing else.
bool is_padding(const block& b, u64 unit) {
    for (u64 i = 0; i < b.nbytes; ++i) {
        if (is_written(b, i) == (i % unit >= unit / 4 * 3)) return false;
    }
    return true;
}

void tell_unwritten(const block& b) {
    u64 count = 0, first = 0;
    for (u64 i = 0; i < b.nbytes; ++i) {
        const cell& c = b.cells[i / 4];
        if (i % 4 == 0 && c.writer && !is_apart(c)) i += 3;
        else if (!is_written(b, i) && !count++) first = i;
    }
    if (!count || is_padding(b, 16) || is_padding(b, 8) || is_padding(b, 4)) return;
    record* r = report(fault_unwritten, 0, 0, b.slot);
    r->line = r->column = 0;
    place(r, (u64)b.begin + first);
    r->a = i64(count);
}

}  // namespace

void sanitize_begin() {
    if (!it.of_statics) {
        it.of_statics = (cell*)fresh_pages(static_cells * sizeof(cell));
        it.apart = (cell*)fresh_pages(most_parts * sizeof(cell));
        it.starts = (group_start*)fresh_pages(most_groups * sizeof(group_start));
    }
    u64 needed = 0;
    for (u32 i = 0; i < known.lasting; ++i) needed += (known.blocks[i].nbytes + 3) / 4;
    if (needed * sizeof(cell) > it.cells_size) {
        if (it.cells) munmap(it.cells, it.cells_size);
        it.cells_size = needed * sizeof(cell) * 2;
        it.cells = (cell*)fresh_pages(it.cells_size);
    } else if (it.cells_used * sizeof(cell) > most_kept) {
        fresh_pages(it.cells_size, it.cells);
    } else {
        memset(it.cells, 0, it.cells_used * sizeof(cell));
    }
    it.cells_used = needed;
    it.entry = page_of_outcome->entry;
    memset(it.of_statics, 0, static_cells * sizeof(cell));
    it.tick = it.groups = it.parts = 0;
    cell* at = it.cells;
    for (u32 i = 0; i < known.lasting; ++i) {
        known.blocks[i].cells = at;
        at += (known.blocks[i].nbytes + 3) / 4;
    }
}

void sanitize_block(block& b) {
    u64 before = 0;
    for (block* p = known.blocks + known.lasting; p != &b; ++p) before += (p->nbytes + 3) / 4;
    b.cells = it.of_statics + before;
}

void sanitize_group() {
    it.began = it.met = it.now[0] = it.now[1] = ++it.tick;
    memset(it.simdgroup, 0, sizeof it.simdgroup);
    memset(it.fences, 0, sizeof it.fences);
    if (it.groups < most_groups) it.starts[it.groups++] = {run.number, it.tick, 0};
}

void sanitize_barrier(u32 flags) {
    it.met = ++it.tick;
    for (u32 kind = 0; kind < 2; ++kind) {
        if (!(flags >> kind & 1)) continue;
        it.now[kind] = ++it.tick;
        memset(it.simdgroup[kind], 0, sizeof it.simdgroup[kind]);
    }
}

void sanitize_simdgroup_barrier(u32 simdgroup, u32 flags) {
    constexpr u32 most = (1 << 20) - 1;
    for (u32 kind = 0; kind < 2; ++kind) {
        if (flags >> kind & 1 && it.simdgroup[kind][simdgroup] < most) ++it.simdgroup[kind][simdgroup];
    }
}

void sanitize_fence() {
    it.fences[__emu_current->index] = it.starts[it.groups - 1].fence = ++it.tick;
}

void sanitize_end() {
    for (u32 i = 0; i < known.lasting; ++i) {
        const block& b = known.blocks[i];
        if (b.space == in_buffer && b.flags & is_undefined && b.flags & is_writable) tell_unwritten(b);
    }
}

}  // namespace __emu
