// Private arrays and constants: what clang's address sanitizer puts around them, looked up when an access meets it.
//
// Compiled code marks, for each eight bytes of a stack, how many of them may be touched: none between variables and behind
// their scopes. Constants and threadgroup variables have unused bytes behind them, and come with their names.

#include "runtime_state.h"

extern "C" __attribute__((visibility("default"))) u64 __asan_shadow_memory_dynamic_address;

namespace __emu {

namespace {

constexpr u64 granule = 8, frame_mark = 0x41b58ab3;
constexpr u8 left_of_frame = 0xf1, after_scope = 0xf8;
constexpr u32 most_libraries = 1024, most_name = 80;

// As clang lays it out, and what is before a frame's variables.
struct variable {
    const char* begin;
    u64 nbytes, with_gap;
    const char *name, *module;
    u64 unused[3];
};
struct frame {
    u64 mark;
    const char* text;             // how many variables, then of each: offset, size, length of the name, name
};

struct {
    const variable* all;
    u64 count;
} libraries[most_libraries], here;
u32 loaded;

u8* shadow;
const variable* hints[256];

u64 distance(const void* a, u64 b) { return (u64)a < b ? b - (u64)a : (u64)a - b; }

u64 number(const char*& text) {
    while (*text == ' ') ++text;
    u64 n = 0;
    while (*text >= '0' && *text <= '9') n = n * 10 + u64(*text++ - '0');
    return n;
}

// The variable of a frame that lies nearest.
void name_variable(record* r, const frame* f, const char* p) {
    const char* text = f->text;
    u64 nearest = ~0ul;
    for (u64 count = number(text); count; --count) {
        u64 offset = number(text), nbytes = number(text), length = number(text);
        const char *name = ++text, *begin = (const char*)f + offset;
        text += length;
        u64 away = p < begin ? u64(begin - p) : p < begin + nbytes ? 0 : u64(p - begin - nbytes) + 1;
        if (away >= nearest) continue;
        nearest = away;
        r->offset = p - begin, r->extent = nbytes;
        u64 n = 0;  // the name is followed by a colon and its line
        while (n < length && n < most_name && name[n] != ':') r->text[n] = name[n], ++n;
        r->text[n] = 0;
    }
}

void describe_private(record* r, const char* p, u64 n, u32 how) {
    r->address = (u64)p, r->nbytes = u32(n), r->access = how, r->space = in_stack;
    const char* bottom = (const char*)__builtin_frame_address(0);
    const u8* at = shadow + u64(p - stacks_low()) / granule;
    if (p >= bottom) {
        const u8* end = shadow + u64(bottom - stacks_low()) / granule;
        while (at > end && *at != left_of_frame) --at;
        while (at > end && at[-1] == left_of_frame) --at;
        const frame* f = (const frame*)(stacks_low() + u64(at - shadow) * granule);
        if (*at == left_of_frame && f->mark == frame_mark) name_variable(r, f, p);
    }
    r->a = r->extent && r->offset >= 0 && u64(r->offset) < r->extent;  // inside: its scope has ended
}

bool is_marked(const char* p, u64 n) {
    const u8* first = shadow + u64(p - stacks_low()) / granule;
    const u8* last = shadow + u64(p + n - 1 - stacks_low()) / granule;
    for (const u8* s = first; s != last; ++s) {
        if (*s) return true;
    }
    return *last >= granule || (*last && u64(p + n - 1) % granule >= *last);
}

const variable* look_for(const char* p) {
    const variable*& hint = hints[(u64)p >> 6 & 255];
    if (hint && u64(p - hint->begin) < hint->with_gap) return hint;
    for (u64 i = 0; i < here.count; ++i) {
        if (u64(p - here.all[i].begin) < here.all[i].with_gap) return hint = &here.all[i];
    }
    return nullptr;
}

}  // namespace

void private_begin(u64 entry, bool halted) {
    u64 nbytes = u64(stacks_high() - stacks_low()) / granule;
    const int kind = map_private | map_anonymous | map_noreserve, both = prot_read | prot_write;
    if (!shadow || halted) {      // what did not come to its end has left marks behind
        shadow = (u8*)mmap(shadow, nbytes, both, kind | (shadow ? map_fixed : 0), -1, 0);
        __asan_shadow_memory_dynamic_address = (u64)shadow - (u64)stacks_low() / granule;
    }
    memset(hints, 0, sizeof hints);
    here = {};
    for (u32 i = 0; i < loaded; ++i) {
        if (!here.all || distance(libraries[i].all, entry) < distance(here.all, entry)) here = libraries[i];
    }
}

__attribute__((noinline)) void look_at_private(const char* p, u64 n, u32 how, u64 pc) {
    bool is_live = p >= (const char*)__builtin_frame_address(0);
    if (is_live && !is_marked(p, n)) return;
    bool goes_on = !(how & access_write);  // a write would change another variable
    record* r = goes_on ? report(fault_private, pc) : crash(fault_private, pc);
    if (r->kind == fault_private) describe_private(r, p, n, how & ~access_both);
    if (!goes_on) halt();
}

bool look_at_constant(const char* p, u64 n, u32 how, u64 pc) {
    const variable* v = look_for(p);
    if (!v) return false;
    for (u32 i = known.lasting; i < known.count; ++i) {
        if (known.blocks[i].begin == v->begin) return false;  // threadgroup memory
    }
    u64 offset = u64(p - v->begin);
    if (offset + n <= v->nbytes) return true;
    record* r = report(fault_private, pc);
    if (r->kind != fault_private) return true;
    r->address = (u64)p, r->nbytes = u32(n), r->access = how & ~access_both;
    r->space = in_constant, r->offset = i64(offset), r->extent = v->nbytes;
    const char* name = v->name;   // that of a local one has its function before it: `__const.k.a`
    for (const char* c = name; *c; ++c) name = *c == '.' ? c + 1 : name;
    u64 i = 0;
    while (i < most_name && name[i]) r->text[i] = name[i], ++i;
    r->text[i] = 0;
    return true;
}

}  // namespace __emu

#pragma GCC visibility push(default)

using namespace __emu;

extern "C" {

u64 __asan_shadow_memory_dynamic_address;

void __asan_init() {}
void __asan_register_image_globals(u64*) {}  // of Mach-O, where constants come without their bounds
void __asan_unregister_image_globals(u64*) {}
void __asan_handle_no_return() {}
void __asan_before_dynamic_init(const char*) {}
void __asan_after_dynamic_init() {}

void __asan_register_globals(const variable* all, u64 count) {
    if (loaded == most_libraries) return;
    libraries[loaded].all = all, libraries[loaded].count = count;
    ++loaded;
}

void __asan_unregister_globals(const variable* all, u64) {
    for (u32 i = 0; i < loaded; ++i) {
        if (libraries[i].all == all) libraries[i] = libraries[--loaded];
    }
}

#define MARK(byte)                                                                                 \
    void __asan_set_shadow_##byte(u64 at, u64 n) { memset((void*)at, 0x##byte, n); }

MARK(00)
MARK(01)
MARK(02)
MARK(03)
MARK(04)
MARK(05)
MARK(06)
MARK(07)
MARK(f1)
MARK(f2)
MARK(f3)
MARK(f5)
MARK(f8)

void __asan_poison_stack_memory(char* p, u64 n) {
    memset(shadow + u64(p - stacks_low()) / granule, after_scope, (n + granule - 1) / granule);
}

void __asan_unpoison_stack_memory(char* p, u64 n) {
    u8* at = shadow + u64(p - stacks_low()) / granule;
    memset(at, 0, n / granule);
    if (n % granule) at[n / granule] = u8(n % granule);
}

}

#pragma GCC visibility pop
