// What is wrong with an access to memory: outside of all buffers, a race, a read of what was never written.

#pragma once

#include "runtime_cells.h"

namespace __emu {

namespace {

// Bytes around a threadgroup variable that are taken for it: before it there may be constants, behind it are only others.
constexpr u64 before_static = 2048, behind_static = 64 << 10;
constexpr u64 most_unit = 4096;

inline bool holds(const block& b, const char* p, u64 n) {
    u64 offset = u64(p - b.begin);
    return offset < b.nbytes && n <= b.nbytes - offset;
}

inline u8& hint_for(u64 pc) { return it.hints[(pc ^ pc >> 8) & 255]; }

const block* find(const char* p, u64 n, u64 pc) {
    u8& hint = hint_for(pc);
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
    if (look_at_constant(p, n, how, pc)) return;
    record at = {};
    describe(&at, p, n, how);
    if (!at.space || at.space == in_stack) return;
    u64 away = at.offset < 0 ? u64(-at.offset) : u64(at.offset) < at.extent ? 0 : u64(at.offset) - at.extent;
    if (at.space == in_static && away > (at.offset < 0 ? before_static : behind_static)) return;
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
    if (u64(p - (char*)__builtin_frame_address(0)) < 65536 || is_own_stack(p)) {
        look_at_private(p, n, how, pc);
        return true;
    }
    record* r = report(fault_foreign_stack, pc);
    if (r->kind == fault_foreign_stack) describe(r, p, n, how);
    return true;
}

__attribute__((noinline)) void touch(const void* address, u64 n, u32 how, void* caller) {
    const char* p = (const char*)address;
    if (is_runtimes_own(p)) return;
    u64 pc = (u64)caller - 1;     // inside the call
    if (!n || !__emu_current || is_private(p, n, how, pc)) return;
    if (how & access_atomic && (u64)p % n) {
        record* r = report(fault_alignment, pc);
        place(r, (u64)p);
        r->a = i64(n);
    }
    const block* b = find(p, n, pc);
    if (!b) return outside(p, n, how, pc);
    if (how & access_write && !(b->flags & is_writable)) {
        describe(crash(fault_read_only, pc), p, n, how);
        halt();
    }
    u32 index = __emu_current->index, kind = kind_of(*b);
    stamp mine = u64(it.tick) << 32 | it.simdgroup[kind][index / width] << 12 | index << 2 | (how & access_write ? 2 : 0) |
                 (how & access_atomic ? 1 : 0);
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
    u8 hint = hint_for((u64)caller - 1);
    const block& b = known.blocks[hint];
    u64 offset = u64((const char*)address - b.begin);
    if (hint >= known.count || offset % 4 || b.nbytes < n || offset > b.nbytes - n) return false;
    if (writes ? !(b.flags & is_writable) : b.flags & is_undefined && b.space == in_buffer) return false;
    u32 thread = __emu_current->index, kind = kind_of(b);
    access a = {};
    a.mine = u64(it.tick) << 32 | it.simdgroup[kind][thread / width] << 12 | thread << 2 | (writes ? 2 : 0);
    a.pc = packed((u64)caller - 1);
    for (cell *c = b.cells + offset / 4, *end = c + n / 4; c != end; ++c) {
        if (is_apart(*c) || !is_settled(c->writer, kind, thread)) return false;
        if (writes) {
            if (!is_settled(c->reader, kind, thread) || !is_settled(c->elder, kind, thread)) return false;
            c->writer = a.mine;
            keep_pc(c->pcs, 0, a.pc);
        } else {
            if (kind && tick_of(c->writer) < it.began) return false;  // not written in this group
            if (c->elder & 2) return false;                          // by an atomic access
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

// All structs alike have gaps in the same places; how long one is nobody says here.
bool is_alike(const block& b) {
    for (u64 unit = 4; unit < b.nbytes && unit <= most_unit; unit += 2) {
        if (b.nbytes % unit) continue;
        u64 i = 0, written = 0;
        while (i < b.nbytes && is_written(b, i) == is_written(b, i % unit)) written += is_written(b, i), ++i;
        if (i == b.nbytes && written) return true;
    }
    return false;
}

void tell_unwritten(const block& b) {
    u64 count = 0, first = 0;
    for (u64 i = 0; i < b.nbytes; ++i) {
        const cell& c = b.cells[i / 4];
        if (i % 4 == 0 && c.writer && !is_apart(c)) i += 3;
        else if (!is_written(b, i) && !count++) first = i;
    }
    if (!count || is_padding(b, 16) || is_padding(b, 8) || is_padding(b, 4)) return;
    if (b.flags & is_padded && is_alike(b)) return;
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
