// What a compiled kernel, the library of Metal's functions and the runtime share.
//
// A worker process runs one threadgroup at a time on one operating-system thread, so `__emu_current` is a plain
// variable, and `threadgroup` variables are statics. A thread of the group runs until it ends or stops in one of the
// functions below; the runtime then runs another one. Everything here is layout and names: no code.

#pragma once

namespace __emu {

struct size3 {
    unsigned x, y, z;
};

// The running threadgroup. `threads_per_threadgroup` is its own size: smaller than the dispatched one at the edge of a
// grid that is no multiple. `buffers` and `memory` are what `[[buffer(i)]]` and `[[threadgroup(i)]]` are bound to.
struct group {
    void* const* buffers;
    void* const* memory;
    size3 threads_per_grid, threadgroups_per_grid;
    size3 dispatch_threads_per_threadgroup, threads_per_threadgroup;
    size3 threadgroup_position_in_grid;
};

// A loop with exchanges in it, in a turn of it: lanes in an earlier turn go first. `line` and `column` are the loop's.
struct loop {
    loop* outer;
    unsigned line, column, turn;
};

struct thread {
    const group* in;
    size3 position_in_threadgroup;
    unsigned index;       // in the threadgroup, x fastest; its simdgroup is index / 32, its lane index % 32
    mutable loop* loops;  // the innermost that it is in
};

// What the lanes of a simdgroup gave to an exchange: lane i's value at values + i * stride, if bit i of `active` is set.
// It stays as it is until the asking lane stops again.
// A result that is the same for all of them is worked out by the first and kept in `answer`.
struct exchange {
    unsigned active;
    unsigned stride;
    const char* values;
    mutable unsigned answered;
    alignas(16) mutable char answer[64];
};

// How the library reports what a sanitized kernel does wrong; the numbers are known to `faults.py`.
enum fault : unsigned {
    fault_index = 1,         // a = index, b = length: a component of a vector or element of an array<T, n>
    fault_lane = 2,          // a = lane asked for: not active, or no lane at all
    fault_unsupported = 3,   // `text` says what is only declared here (sampling a texture, a ray query)
    fault_value = 4,         // `text`: an argument outside of what the specification defines (clamp with lo > hi)
    // Of a component of a vector; clang's own checks tell of scalars.
    fault_divisor = 5,       // a = dividend, divided by zero
    fault_quotient = 6,      // a = dividend, the smallest integer, divided by -1
    fault_count = 7,         // a = count, b = bits of what is shifted
};

}  // namespace __emu

// Calls that only the threads of one place make together: two of them are never made one, nor one two.
#define __EMU_TOGETHER __attribute__((convergent, nomerge))

// Where a call stands in the user's text: `unsigned line = __builtin_LINE(), unsigned column = __builtin_COLUMN()` as
// default arguments of Metal's function.
extern "C" {
extern const __emu::thread* __emu_current;

// Stops until every thread of the threadgroup (of the simdgroup) stands at the same place. `flags`: 1 device memory,
// 2 threadgroup memory, 4 textures.
__EMU_TOGETHER void __emu_threadgroup_barrier(unsigned flags, unsigned line, unsigned column);
__EMU_TOGETHER void __emu_simdgroup_barrier(unsigned flags, unsigned line, unsigned column);

// Gives `nbytes` (at most 64) at `value` to the other lanes of the simdgroup that stand at the same place, stops until
// all active ones have, and returns what all of them gave.
__EMU_TOGETHER const __emu::exchange* __emu_exchange(const void* value, unsigned nbytes, unsigned line, unsigned column);

// Atomic loads and failed compare-exchanges say so, that threads which wait for each other get on.
void __emu_yield();

// Behind the definition of a `threadgroup` variable: the memory of the running group, undefined until written.
void __emu_threadgroup_memory(void* memory, unsigned long nbytes, const char* name);

// A thread comes to a `uniform(…)` of metaljit with this value, which all threads of the group are to hold. `kind`: 0 a
// signed integer, 1 an unsigned one, 2 the bits of a double, 3 a truth value.
void __emu_promise(unsigned long value, unsigned kind, unsigned line, unsigned column);

// `line` 0: where the call stands.
__attribute__((nomerge)) void __emu_fault(unsigned kind, long a, long b, const char* text, unsigned line, unsigned column);
}
