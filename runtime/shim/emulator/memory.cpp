// The memory of a run: buffers from the shared file, each between guards, and the memory of the threadgroup.
//
// The end of a buffer lies at the end of a page, as near as an alignment of 16 allows, so that a kernel which goes too
// far meets a page that is not there. In sanitized runs there is memory in the gaps, so that it can go on.

#include "runtime_state.h"

namespace __emu {

memory_map known;

namespace {

char* arena;
u64 arena_size, arena_used, around_arena;
constexpr u64 most_layout = 64 + slots * (sizeof(region) + sizeof(binding) + sizeof(memory));
char layout[most_layout];  // of the last run: an equal one finds everything in place
u64 layout_size;

const region* regions_of(const request& r) { return (const region*)(&r + 1); }
const binding* bindings_of(const request& r) { return (const binding*)(regions_of(r) + r.regions); }
const memory* memories_of(const request& r) { return (const memory*)(bindings_of(r) + r.bindings); }

u64 whole(u64 nbytes, u64 unit) { return (nbytes + unit - 1) / unit * unit; }

// An address that 32 bits of an index can reach from a buffer is in the arena, where nothing else lies.
constexpr u64 reach = 64ul << 30, least_reach = 1ul << 30;

bool reserve(u64 nbytes) {
    constexpr int kind = map_private | map_anonymous | map_noreserve;
    if (nbytes > arena_size) {
        if (arena) munmap(arena - around_arena, 2 * around_arena + arena_size);
        arena_size = nbytes * 2;
        for (around_arena = reach; around_arena >= least_reach; around_arena /= 4) {
            char* got = (char*)mmap(nullptr, 2 * around_arena + arena_size, prot_none, kind, -1, 0);
            arena = got == (char*)-1 ? nullptr : got + around_arena;
            if (arena) break;
        }
        if (!arena) arena_size = 0;
    } else if (arena_used) {
        mmap(arena, arena_used, prot_none, kind | map_fixed, -1, 0);
    }
    arena_used = nbytes;
    return arena;
}

// Maps `size` bytes of the file (or fresh ones: file -1) behind a gap, and gives the end.
char* put(char* at, u64 size, int file, u64 offset, bool writable, bool sanitized) {
    constexpr int fresh_kind = map_private | map_anonymous | map_noreserve | map_fixed;
    const int both = prot_read | prot_write;
    if (sanitized) {
        mmap(at, gap, both, fresh_kind, -1, 0);
        mmap(at + gap + size, gap, both, fresh_kind, -1, 0);
    }
    if (!size) return at + gap;
    void* got = file < 0 ? mmap(at + gap, size, both, fresh_kind, -1, 0)
                         : mmap(at + gap, size, writable ? both : prot_read, map_shared | map_fixed, file, long(offset));
    return got == (void*)-1 ? nullptr : at + gap + size;
}

block& add(char* begin, u64 nbytes, u32 space, u32 slot, u32 flags, const char* name) {
    block& b = known.blocks[known.count++];
    b = {begin, nbytes, nullptr, space, slot, flags, name};
    return b;
}

bool lay_out(const request& r, int file) {
    bool sanitized = r.flags & run_sanitized;
    const u64 page = r.page, around = gap * (sanitized ? 4 : 1);
    u64 total = around;
    for (u32 i = 0; i < r.regions; ++i) total += whole(regions_of(r)[i].nbytes, page) + page + around;
    for (u32 i = 0; i < r.memories; ++i) total += whole(memories_of(r)[i].nbytes, page) + around;
    if (!reserve(total)) return false;
    known = {};
    known.low = arena, known.high = arena + total;
    char* at = arena;
    for (u32 i = 0; i < r.regions; ++i) {
        const region& g = regions_of(r)[i];
        u64 first = g.nbytes ? g.offset / page * page : 0, last = g.nbytes ? whole(g.offset + g.nbytes, page) : 0;
        char* end = put(at, last - first, file, first, g.flags & is_writable, sanitized);
        if (!end) return false;
        add(end - (last - first) + (g.nbytes ? g.offset - first : 0), g.nbytes, in_buffer, 0, g.flags, "");
        at = end + around - gap;
    }
    for (u32 i = 0; i < r.memories; ++i) {
        const memory& m = memories_of(r)[i];
        char* end = put(at, whole(m.nbytes, page), -1, 0, true, sanitized);
        if (!end) return false;
        char* begin = end - whole(m.nbytes, 16);
        add(begin, m.nbytes, in_argument, m.slot, is_writable | is_undefined, "");
        known.arguments[m.slot] = begin;
        at = end + around - gap;
    }
    for (u32 i = r.bindings; i-- > 0;) {
        const binding& b = bindings_of(r)[i];
        known.buffers[b.slot] = known.blocks[b.region].begin + b.offset;
        known.blocks[b.region].slot = b.slot;
    }
    known.lasting = known.count;
    return true;
}

}  // namespace

bool map_memory(const request& r, int file) {
    u64 size = sizeof(u32) + (u64)(memories_of(r) + r.memories) - (u64)regions_of(r);
    u32 sanitized = r.flags & run_sanitized;
    bool same = size == layout_size && !memcmp(layout, &sanitized, 4) && !memcmp(layout + 4, regions_of(r), size - 4);
    if (!same) {
        layout_size = 0;
        if (size > most_layout || !lay_out(r, file)) return false;
        memcpy(layout, &sanitized, 4);
        memcpy(layout + 4, regions_of(r), size - 4);
        layout_size = size;
    }
    run.now.buffers = known.buffers;
    run.now.memory = known.arguments;
    return true;
}

void clear_threadgroup_memory() {
    known.count = known.lasting;
    known.shared = 0;
    for (u32 i = 0; i < known.lasting; ++i) {
        const block& b = known.blocks[i];
        if (b.space == in_argument) memset(b.begin, 0xcd, b.nbytes), known.shared += b.nbytes;
    }
}

void place(record* r, u64 address) {
    r->address = address;
    char* p = (char*)address;
    u64 nearest = p >= known.low && p < known.high ? ~0ul : gap + 1;
    for (u32 i = 0; i < known.count; ++i) {
        const block& b = known.blocks[i];
        u64 away = p < b.begin ? u64(b.begin - p) : p < b.begin + b.nbytes ? 0 : u64(p - b.begin - b.nbytes) + 1;
        if (away >= nearest) continue;
        nearest = away;
        r->space = b.space, r->slot = b.slot, r->offset = p - b.begin, r->extent = b.nbytes;
        u32 n = 0;
        while (n + 1 < sizeof r->text && b.name[n]) r->text[n] = b.name[n], ++n;
        r->text[n] = 0;
    }
    if (!r->space && p >= stacks_low() && p < stacks_high()) r->space = in_stack;
}

}  // namespace __emu

using namespace __emu;

extern "C" void __emu_threadgroup_memory(void* memory, unsigned long nbytes, const char* name) {
    for (u32 i = known.lasting; i < known.count; ++i) {
        if (known.blocks[i].begin == memory) return;
    }
    known.shared += nbytes;
    if (known.shared > most_memory || known.count == most_blocks) {
        record* r = crash(fault_threadgroup_memory, (u64)__builtin_return_address(0) - 1);
        r->a = i64(known.shared);
        halt();
    }
    memset(memory, 0xcd, nbytes);
    block& b = known.blocks[known.count++];
    b = {(char*)memory, nbytes, nullptr, in_static, 0, is_writable | is_undefined, name};
    if (run.sanitized) sanitize_block(b);
}
