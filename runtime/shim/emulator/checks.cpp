// What is wrong with a value: found by clang's own checks, by the processor, or by the library of Metal's functions.
//
// Clang hands over where the check stands and the types in tables of its own layout, which are written out here.

#include "runtime_state.h"

namespace __emu {

namespace {

struct checked_place {
    const char* file;
    u32 line, column;
};

struct checked_type {
    u16 kind, info;               // kind 0: an integer; info: bit 0 signed, above it the logarithm of the bits
    char name[1];
};

struct checked_division {
    checked_place at;
    const checked_type* type;     // of both operands
};

struct checked_shift {
    checked_place at;
    const checked_type *left, *right;
};

struct checked_index {
    checked_place at;
    const checked_type *array, *index;
};

struct checked_pointer {
    checked_place at;
    const checked_type* type;
    u8 log_alignment, what;
};

u32 bits_of(const checked_type& t) { return 1u << (t.info >> 1); }

// The value as a number: it comes without its sign's extension.
i64 value_of(const checked_type& t, u64 value) {
    u32 bits = bits_of(t);
    if (!(t.info & 1) || bits >= 64) return i64(value);
    return i64(value << (64 - bits)) >> (64 - bits);
}

// Of `float[4][8]`: 4.
i64 extent_of(const checked_type& t) {
    const char* c = t.name;
    while (*c && *c != '[') ++c;
    i64 n = 0;
    while (*c && *++c >= '0' && *c <= '9') n = n * 10 + (*c - '0');
    return n;
}

void copy_text(record* r, const char* text) {
    u64 n = 0;
    while (text && text[n]) ++n;
    if (n >= sizeof r->text) text += n - sizeof r->text + 1, n = sizeof r->text - 1;  // of a path the end tells more
    memcpy(r->text, text, n);
    r->text[n] = 0;
}

// `typedef float values[1]; device values& x` is how translators of shaders write a buffer of any length. The name tells
// it, `'values' (aka 'float[1]')`, and the first bound is the one that is open: what lies behind it is looked at when it
// is accessed.
bool is_open(const checked_type& array) {
    const char* at = array.name;
    while (*at) ++at;
    if (at - array.name < 6 || memcmp(at -= 3, "]')", 3)) return false;
    while (at[-1] != '[' || at[-2] == ']') --at;
    return !memcmp(at, "1]", 2);
}

record* report_at(u32 kind, const checked_place& at) {
    record* r = report(kind, 0, at.line, at.column);
    copy_text(r, at.file);
    return r;
}

void tell_alignment(record* r, u64 alignment, u64 address) {
    char file[sizeof r->text];
    memcpy(file, r->text, sizeof file);
    place(r, address);
    memcpy(r->text, file, sizeof file);
    r->a = i64(alignment);
}

}  // namespace

}  // namespace __emu

#pragma GCC visibility push(default)

using namespace __emu;

extern "C" {

void __ubsan_handle_divrem_overflow(checked_division* check, u64 left, u64 right) {
    bool is_zero = !value_of(*check->type, right);
    record* r = report_at(is_zero ? fault_division_by_zero : fault_division_overflow, check->at);
    r->a = value_of(*check->type, left);
}

void __ubsan_handle_shift_out_of_bounds(checked_shift* check, u64 left, u64 right) {
    i64 by = value_of(*check->right, right);
    u32 bits = bits_of(*check->left);
    if (by >= 0 && by < i64(bits)) return;
    record* r = report_at(fault_shift, check->at);
    r->a = value_of(*check->left, left), r->b = by, r->c = bits;
}

void __ubsan_handle_out_of_bounds(checked_index* check, u64 index) {
    if (is_open(*check->array)) return;
    record* r = report_at(fault_array_bounds, check->at);
    r->a = value_of(*check->index, index), r->b = extent_of(*check->array);
}

void __ubsan_handle_type_mismatch_v1(checked_pointer* check, u64 address) {
    u64 alignment = 1ul << check->log_alignment;
    if (!address || address % alignment == 0) return;
    record* r = report_at(fault_alignment, check->at);
    tell_alignment(r, alignment, address);
}

void __ubsan_handle_alignment_assumption(checked_pointer* check, u64 address, u64 alignment, u64) {
    record* r = report_at(fault_alignment, check->at);
    tell_alignment(r, alignment, address);
}

void __emu_aligned(const void* p, u64 alignment) {
    if ((u64)p < 4096 || (u64)p % alignment == 0) return;
    tell_alignment(report(fault_alignment, (u64)__builtin_return_address(0) - 1), alignment, (u64)p);
}

void __emu_fault(unsigned kind, long a, long b, const char* text, unsigned line, unsigned column) {
    record* r = report(kind, (u64)__builtin_return_address(0) - 1, line, column);
    r->a = a, r->b = b;
    copy_text(r, text);
}

}

#pragma GCC visibility pop
