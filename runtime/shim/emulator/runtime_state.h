// What the parts of the runtime share: the request of a run, the page that tells its outcome, the threads.

#pragma once

#pragma GCC visibility push(default)  // all else is the library's own, and reached without a detour
#include "abi.h"
#pragma GCC visibility pop

#include "runtime_switch.h"

namespace __emu {

constexpr u32 most_threads = 1024, width = 32, most_simdgroups = most_threads / width, slots = 31;
constexpr u32 most_memory = 32768;       // bytes of threadgroup memory
constexpr u64 stack_size = 256 << 10;
constexpr u32 most_calls = 15, most_loops = 16;  // deeper ones are not told apart

// --- the request; `process.py` packs it ---

enum : u32 { run_sanitized = 1, run_lenient = 2, run_shuffled = 4 };
enum : u32 { is_writable = 1, is_undefined = 2, is_padded = 4 };  // padded: of structs, which may have gaps

// Memory that was given, in the shared file: `nbytes` from `offset` on. Bindings that overlap are in one region.
struct region {
    u64 offset, nbytes;
    u32 flags, unused;
};

struct binding {
    u32 slot, region;
    u64 offset, nbytes;  // in the region
    u32 flags, unused;
};

struct memory {
    u32 slot, nbytes;
};

struct request {
    u32 flags, page;              // bytes of a page
    u32 regions, bindings, memories;
    u32 groups[3], threads[3], threadgroup[3];
    u64 seed;
    double limit;                 // seconds without a threadgroup that ends
    // then the regions, the bindings, the memories
};

// --- the outcome; `faults.py` reads it ---

// The numbers from 1 to 15 are those of `fault`.
enum : u32 {
    fault_memory_access = 16,    // a = 1 write, 0 read, -1 unknown
    fault_stack_overflow, fault_illegal, fault_abort, fault_bus, fault_endless,
    fault_divergent_barrier,     // a threads stand at the place, b elsewhere, c have ended, of d
    fault_divergent_simdgroup,   // likewise
    fault_threadgroup_memory,    // a bytes wanted
    fault_out_of_bounds, fault_race, fault_uninitialised, fault_unwritten, fault_foreign_stack, fault_read_only,
    fault_division_by_zero, fault_division_overflow, fault_shift, fault_array_bounds, fault_alignment,
    fault_private,               // beside a variable of the stack or a constant; a = 1 if its scope has ended
    fault_promise,               // a = value, b = the other thread's, c = the kind of `__emu_promise`
};
enum : u32 { in_nothing, in_buffer, in_argument, in_static, in_stack_guard, in_stack, in_constant };
constexpr u32 access_read = 0, access_write = 1, access_atomic = 2;
constexpr u32 access_both = 4;  // with access_write: a read too

struct position {
    size3 grid, group;
};

struct record {
    u32 kind, count;
    u32 space, slot;              // where the address lies, or beside what
    i64 offset;                   // bytes from the start of that
    u64 extent;                   // its bytes
    u32 nbytes, access, other_access, has_other;
    position at, other;
    u64 address, pc, other_pc;
    i64 a, b, c, d;
    u32 line, column, other_line, other_column;
    char text[88];                // a name, a message; for what clang's checks find, the file
};
static_assert(sizeof(record) == 256);

constexpr u32 most_records = 64;
enum : u32 { ended = 0, running = 1, stopped = 2 };  // stopped: the run did not end, the last record says why

struct control {
    u32 status, records, dropped, unused;
    u64 entry;                    // the entry's address: tells where the kernel's library lies
    record table[most_records + 1];
};

// --- the threads of the running group ---

enum state : u8 { fresh, ready, exchanging, at_simdgroup_barrier, at_barrier, yielded, finished };

struct alignas(64) lane {
    thread self;                  // first: what `__emu_current` points to
    void* context;                // where it goes on
    u64 pc;
    u32 line, column;             // where it stopped
    u64 place;                    // that and its calls as one number: up to here, a barrier touches one line of the cache
    const void* value;            // what it gives
    u32 nbytes, turns;            // how much it gives, how often it asked for others
    u32 depth;                    // calls that it stands in
    u64 calls[most_calls];        // where it goes on in each, the innermost first
};

struct grid {
    group now;                    // first: what the threads see
    const request* of;
    void (*entry)();
    control* outcome;
    size3 size;                   // of the group that the lanes are made for
    u64 number, count;            // of the running group, and of all
    u32 threads, simdgroups;      // of the running group
    u64 ended_groups;             // read by the alarm
    void* main;                   // the context of the launch
    u32 cursor, limit;            // in `order`: the next to run, and the end of the running simdgroup
    u32 turn, simdgroup;          // which in `simdgroup_order`, and its number
    u32 exchanging[most_simdgroups];  // lanes that have given
    u32 waiting, finished, yielding;  // threads at the barrier, ended, or leaving the turn to others
    u32 rounds;                   // in which nothing but yielding happened
    u64 barrier;                  // the place of the first that waits
    u32 barrier_flags;            // its
    u8 mixed, sanitized, lenient; // mixed: not all wait at the same place
    state states[most_threads];   // by index in the threadgroup
    u16 order[most_threads + 1];  // within each simdgroup; one more is looked at ahead
    u16 simdgroup_order[most_simdgroups];
    lane lanes[most_threads];
    exchange exchanges[most_simdgroups];
    alignas(64) char values[most_simdgroups][width * 64];
};

extern grid run;
extern control* page_of_outcome;

inline lane* current() { return (lane*)__emu_current; }

// --- memory that a kernel may touch ---

struct cell;                      // what the sanitizer knows of four bytes

struct block {
    char* begin;
    u64 nbytes;
    cell* cells;                  // in sanitized runs
    u32 space, slot, flags;       // `space` as in a record; `is_writable`, `is_undefined`
    const char* name;
};

constexpr u32 most_blocks = 128;
constexpr u64 gap = 64 << 10;     // bytes on both sides of a buffer: in sanitized runs memory, otherwise nothing

struct memory_map {
    block blocks[most_blocks];    // buffers and arguments of the run, then the group's own
    u32 lasting, count;           // blocks of the run; all
    void *buffers[slots], *arguments[slots];  // what the threads see of them
    u64 shared;                   // bytes of threadgroup memory in use
    char *low, *high;             // where buffers and arguments lie
};

extern memory_map known;

// --- what one part asks of another ---

[[noreturn]] void halt();         // leaves the kernel for good: the run has not ended
void make_stacks(u64 page);
void run_grid(const request&, void (*entry)(), control*);
bool map_memory(const request&, int file);
void clear_threadgroup_memory();
char* stacks_low();
char* stacks_high();

// A new record, or the one of the same kind and place, counted; never null.
record* report(u32 kind, u64 pc, u32 line = 0, u32 column = 0);
record* crash(u32 kind, u64 pc);  // as the last one: the run has not ended
position position_of(const thread&);
void watch(double limit);         // in seconds
void stop_watching();
void catch_signals();
void place(record*, u64 address); // fills in where the address lies

// The sanitizer; called in sanitized runs only.
void forget_promises();           // of the run before
void sanitize_begin();
void private_begin(u64 entry, bool halted);  // whether the run before did not end
void look_at_private(const char* p, u64 n, u32 how, u64 pc);   // an address in the thread's own stack
bool look_at_constant(const char* p, u64 n, u32 how, u64 pc);  // false: there is no constant
void sanitize_block(block&);
void sanitize_group();
void sanitize_barrier(u32 flags);
void sanitize_simdgroup_barrier(u32 simdgroup, u32 flags);
void sanitize_fence();
void sanitize_end();

}  // namespace __emu
