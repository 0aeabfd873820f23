// The threads of a threadgroup as fibers of one operating-system thread, and the order in which they run.
//
// A simdgroup runs until each of its lanes has ended or stopped. Lanes that stand in an exchange are then released, those
// first whose call comes first in the code, so that lanes which took another branch catch up. When all simdgroups rest,
// the barrier is released, if everybody stands at the same one.
//
// A place in the code is a call with all calls that it stands in, and the turns of the loops around it: who has gone
// round a loop waits for those that are further down in the turn before.
//
// A fiber whose thread has ended goes on with the next thread on the same stack: a kernel that never stops
// needs one stack, and costs a call for each thread.

#include "runtime_state.h"

namespace __emu {

grid run;

namespace {

constexpr u32 patience = 64;  // rounds of mere yielding before an exchange does without those that yield
constexpr u32 colours = 61;   // stacks start at different lines of the cache
constexpr u32 above_stack = 1024;  // bytes: who reads a little beyond the first frame's arrays goes on, and is reported

char* stacks;
u64 stack_stride;
u32 stacks_made, stacks_free;
u16 free_stacks[most_threads];

char* take_stack() {
    u32 number;
    if (stacks_free) {
        number = free_stacks[--stacks_free];
    } else {
        number = stacks_made++;
        mprotect(stacks + (number + 1) * stack_stride - stack_size, stack_size, prot_read | prot_write);
    }
    return stacks + (number + 1) * stack_stride - above_stack - number % colours * 64;
}

void give_stack(void* inside) { free_stacks[stacks_free++] = u16(((char*)inside - stacks) / stack_stride); }

void open_turn(u32 turn) {
    run.turn = turn;
    run.simdgroup = run.simdgroup_order[turn];
    run.cursor = run.simdgroup * width;
    run.limit = run.cursor + width < run.threads ? run.cursor + width : run.threads;
}

bool before(const lane& a, const lane& b) { return a.line != b.line ? a.line < b.line : a.column < b.column; }

u32 loops_of(const lane& l, const loop** out) {
    u32 n = 0;
    for (const loop* k = l.self.loops; k && n < most_loops; k = k->outer) out[n++] = k;
    return n;
}

// The order in which two lanes that stand in exchanges came there: below 0 if `a` is the earlier one, 0 if they stand
// together. Outer loops and outer calls decide first.
int order_of(const lane& a, const lane& b) {
    if (a.self.loops || b.self.loops) {
        const loop *mine[most_loops], *other[most_loops];
        u32 n = loops_of(a, mine), m = loops_of(b, other);
        while (n && m) {
            const loop *x = mine[--n], *y = other[--m];
            if (x->line != y->line || x->column != y->column) break;
            if (x->turn != y->turn) return x->turn < y->turn ? -1 : 1;
        }
    }
    u32 n = a.depth, m = b.depth;
    while (n && m) {
        u64 x = a.calls[--n], y = b.calls[--m];
        if (x != y) return x < y ? -1 : 1;
    }
    return n == m ? 0 : n < m ? -1 : 1;
}

// Whether two lanes stand at one barrier, which each reaches through its own calls.
bool together(const lane& a, const lane& b) { return a.place == b.place; }

void gather(exchange& out, char* values, u32 first, u32 mask, u32 nbytes) {
    out.active = mask, out.stride = nbytes, out.values = values, out.answered = 0;
    for (u32 i = 0; i < width; ++i) {
        if (!(mask >> i & 1)) continue;
        const void* value = run.lanes[first + i].value;
        if (nbytes == 4) memcpy(values + i * 4, value, 4);
        else memcpy(values + i * nbytes, value, nbytes);
    }
}

void tell_divergence(u32 kind, const lane& first, u32 begin, u32 end) {
    i64 here = 0, elsewhere = 0, gone = 0;
    const lane* other = nullptr;
    for (u32 i = begin; i < end; ++i) {
        const lane& l = run.lanes[i];
        if (run.states[i] == finished) ++gone;
        else if (together(l, first)) ++here;
        else ++elsewhere, other = !other || before(l, *other) ? &l : other;
    }
    const thread* mine = __emu_current;
    __emu_current = &first.self;
    bool ends = kind == fault_divergent_barrier && !run.lenient;
    record* r = ends ? crash(kind, first.pc) : report(kind, first.pc, first.line, first.column);
    __emu_current = mine;
    r->line = first.line, r->column = first.column;
    r->a = here, r->b = elsewhere, r->c = gone, r->d = end - begin;
    if (other) r->other_line = other->line, r->other_column = other->column, r->other_pc = other->pc;
    if (ends) halt();
}

// Releases the lanes of a simdgroup that stand at its first place; false if nobody can go on yet.
bool settle(u32 simdgroup) {
    u32 begin = simdgroup * width, end = run.limit;
    lane* first = nullptr;
    u32 here = 0;
    for (u32 i = begin; i < end; ++i) {
        state s = run.states[i];
        if (s == yielded && run.rounds < patience) return false;
        if (s != exchanging && s != at_simdgroup_barrier) continue;
        if (!first || order_of(run.lanes[i], *first) < 0) first = &run.lanes[i];
    }
    for (u32 i = begin; i < end; ++i) {
        state s = run.states[i];
        bool is_there = (s == exchanging || s == at_simdgroup_barrier) && !order_of(run.lanes[i], *first);
        here |= u32(is_there) << (i - begin);
    }
    u32 count = __builtin_popcount(here);
    if (run.states[first->self.index] == at_simdgroup_barrier) {
        if (run.sanitized) {
            if (count < end - begin) tell_divergence(fault_divergent_simdgroup, *first, begin, end);
            sanitize_simdgroup_barrier(simdgroup, first->nbytes);
        }
    } else {
        gather(run.exchanges[simdgroup], run.values[simdgroup], begin, here, first->nbytes);
    }
    for (u32 i = 0; i < width; ++i) {
        if (here >> i & 1) run.states[begin + i] = ready;
    }
    run.exchanging[simdgroup] -= count;
    run.rounds = 0;
    run.cursor = begin;
    return true;
}

// Not everybody has come to the same barrier: a fault, and without strictness those at the smallest place go on.
void release_some() {
    lane* first = nullptr;
    for (u32 i = 0; i < run.threads; ++i) {
        if (run.states[i] == at_barrier && (!first || before(run.lanes[i], *first))) first = &run.lanes[i];
    }
    tell_divergence(fault_divergent_barrier, *first, 0, run.threads);
    run.mixed = 0;
    run.waiting = 0;
    for (u32 i = 0; i < run.threads; ++i) {
        if (run.states[i] != at_barrier) continue;
        const lane& l = run.lanes[i];
        if (together(l, *first)) {
            run.states[i] = ready;
            continue;
        }
        if (!run.waiting++) run.barrier = l.place;
        run.mixed |= l.place != run.barrier;
    }
}

// All simdgroups rest: false if the group has ended.
bool settle_group() {
    if (run.yielding) {
        ++run.rounds;
        run.yielding = 0;
        for (u32 i = 0; i < run.threads; ++i) {
            if (run.states[i] == yielded) run.states[i] = ready;
        }
    } else if (run.finished == run.threads) {
        return false;
    } else {
        run.rounds = 0;
        if (run.waiting == run.threads && !run.mixed) {
            memset(run.states, ready, run.threads);
            run.waiting = 0;
        } else {
            release_some();
        }
        if (run.sanitized) sanitize_barrier(run.barrier_flags);
    }
    open_turn(0);
    return true;
}

// Who runs next; null when the group has ended.
__attribute__((noinline)) lane* search() {
    for (;;) {
        while (run.cursor < run.limit) {
            u32 i = run.order[run.cursor++];
            if (run.states[i] <= ready) return &run.lanes[i];
        }
        if (run.exchanging[run.simdgroup] && settle(run.simdgroup)) continue;
        if (run.turn + 1 < run.simdgroups) open_turn(run.turn + 1);
        else if (!settle_group()) return nullptr;
    }
}

inline lane* next() {
    if (run.cursor < run.limit) {
        u32 i = run.order[run.cursor];
        const char* after = (const char*)run.lanes[run.order[run.cursor + 1]].context;
        __builtin_prefetch(after, 1);  // a thousand stacks do not fit the nearest cache
        __builtin_prefetch(after + 64, 1);
        if (run.states[i] <= ready) return ++run.cursor, &run.lanes[i];
    }
    return search();
}

void fiber();

// Leaves the running context for a thread that has not begun, or (null) for the launch.
__attribute__((noinline)) void begin(void** mine, lane* to) {
    if (!to) return switch_stacks(mine, run.main);
    run.states[to->self.index] = ready;
    switch_stacks(mine, fresh_context(take_stack(), fiber));
}

inline void resume(void** mine, lane* to) {
    if (to) __emu_current = &to->self;
    if (!to || run.states[to->self.index] == fresh) return begin(mine, to);
    switch_stacks(mine, to->context);
}

// The bottom of each stack.
void fiber() {
    void* left;
    for (;;) {
        __emu_current->loops = nullptr;
        run.entry();
        run.states[__emu_current->index] = finished;
        ++run.finished;
        lane* to = next();
        if (to && run.states[to->self.index] == fresh) {
            run.states[to->self.index] = ready;
            __emu_current = &to->self;
            continue;
        }
        give_stack(&left);
        resume(&left, to);
    }
}

inline void stop(lane* me, state why) {
    run.states[me->self.index] = why;
    lane* to = next();
    if (to != me) resume(&me->context, to);
}

// A number below `count` for each below `count`, each once: rounds of a mixing that can be undone, on the next power
// of two, repeated where it leads outside.
u64 permuted(u64 i, u64 count, u64 seed) {
    u32 bits = 64 - __builtin_clzl(count | 1);
    u64 mask = bits == 64 ? ~0ul : (1ul << bits) - 1;
    do {
        for (u32 k = 0; k < 4; ++k) {
            i = (i * 0x9e3779b97f4a7c15 + (seed >> k * 16 | 1)) & mask;
            i ^= i >> (bits / 2 + 1);
        }
    } while (i >= count);
    return i;
}

void order_threads(u64 seed) {
    bool shuffled = run.of->flags & run_shuffled;
    for (u32 s = 0; s < run.simdgroups; ++s) {
        run.simdgroup_order[s] = u16(shuffled ? permuted(s, run.simdgroups, seed) : s);
        u32 begin = s * width, count = run.threads - begin < width ? run.threads - begin : width;
        for (u32 i = 0; i < count; ++i) {
            run.order[begin + i] = u16(begin + (shuffled ? permuted(i, count, seed + s + 1) : i));
        }
    }
}

void shape(size3 size) {
    run.size = run.now.threads_per_threadgroup = size;
    run.threads = size.x * size.y * size.z;
    run.simdgroups = (run.threads + width - 1) / width;
    u32 i = 0;
    for (u32 z = 0; z < size.z; ++z)
        for (u32 y = 0; y < size.y; ++y)
            for (u32 x = 0; x < size.x; ++x, ++i) run.lanes[i].self = {&run.now, {x, y, z}, i};
    order_threads(0);
}

u32 edge(u32 position, u32 size, u32 threads) {
    u32 left = threads - position * size;
    return left < size ? left : size;
}

void run_group(u64 number) {
    const request& of = *run.of;
    const size3 groups = run.now.threadgroups_per_grid;
    size3 at = {u32(number % groups.x), u32(number / groups.x % groups.y), u32(number / groups.x / groups.y)};
    const u32* full = of.threadgroup;
    const size3 all = run.now.threads_per_grid;
    size3 size = {edge(at.x, full[0], all.x), edge(at.y, full[1], all.y), edge(at.z, full[2], all.z)};
    run.now.threadgroup_position_in_grid = at;
    if (size.x != run.size.x || size.y != run.size.y || size.z != run.size.z) shape(size);
    if (of.flags & run_shuffled) order_threads(of.seed + number * 0x632be59bd9b4e019);
    memset(run.states, fresh, run.threads);
    memset(run.exchanging, 0, sizeof run.exchanging);
    run.waiting = run.finished = run.yielding = run.rounds = run.mixed = 0;
    clear_threadgroup_memory();
    if (run.sanitized) sanitize_group();
    open_turn(0);
    resume(&run.main, next());
}

void set_grid(const request& of) {
    const u32* size = of.threadgroup;
    u32 groups[3], threads[3];
    for (u32 k = 0; k < 3; ++k) {
        groups[k] = of.groups[k] ? of.groups[k] : (of.threads[k] + size[k] - 1) / size[k];
        threads[k] = of.groups[k] ? of.groups[k] * size[k] : of.threads[k];
    }
    run.now.threads_per_grid = {threads[0], threads[1], threads[2]};
    run.now.threadgroups_per_grid = {groups[0], groups[1], groups[2]};
    run.now.dispatch_threads_per_threadgroup = {size[0], size[1], size[2]};
    run.count = u64(groups[0]) * groups[1] * groups[2];
    run.size = {0, 0, 0};
}

}  // namespace

char* stacks_low() { return stacks; }
char* stacks_high() { return stacks + most_threads * stack_stride; }

void make_stacks(u64 page) {
    stack_stride = stack_size + page;
    int kind = map_private | map_anonymous | map_noreserve;
    stacks = (char*)mmap(nullptr, most_threads * stack_stride, prot_none, kind, -1, 0);
}

void halt() {
    void* left;
    run.outcome->status = stopped;
    switch_stacks(&left, run.main);
    __builtin_unreachable();
}

void run_grid(const request& of, void (*entry)(), control* outcome) {
    run.of = &of, run.entry = entry, run.outcome = outcome;
    run.sanitized = of.flags & run_sanitized ? 1 : 0;
    run.lenient = of.flags & run_lenient ? 1 : 0;
    stacks_free = 0;  // a halted run leaves fibers behind
    for (u32 i = 0; i < stacks_made; ++i) free_stacks[stacks_free++] = u16(stacks_made - 1 - i);
    set_grid(of);
    for (u64 i = 0; i < run.count; ++i) {
        run.number = of.flags & run_shuffled ? permuted(i, run.count, of.seed) : i;
        run_group(run.number);
        if (outcome->status == stopped) return;
        ++run.ended_groups;
    }
}

}  // namespace __emu

using namespace __emu;

namespace {

// Looks through the calls that a thread stands in, by the chain of frames that ends at the bottom of its stack: their
// place as one number, and with `keeps` each of them.
template <bool keeps> inline __attribute__((always_inline)) void note_calls(lane* me) {
    u64* frame = (u64*)__builtin_frame_address(0);
    u64 place = u64(me->line) << 32 | me->column;
    u32 n = 0;
    me->pc = frame[1] - 1;
    for (; n < most_calls && frame[0]; ++n, frame = (u64*)frame[0]) {
        place = (place ^ frame[1]) * 0x9e3779b97f4a7c15;
        if (keeps) me->calls[n] = frame[1];
    }
    me->place = place;
    if (keeps) me->depth = n;
}

// The two innermost calls alone, for plain runs: a barrier has to be quick.
inline __attribute__((always_inline)) void note_caller(lane* me) {
    u64* frame = (u64*)__builtin_frame_address(0);
    me->pc = frame[1] - 1;
    me->place = (u64(me->line) << 32 | me->column) ^ frame[1] ^ ((u64*)frame[0])[1] << 1;
}

}  // namespace

extern "C" {

const thread* __emu_current;

void __emu_threadgroup_barrier(unsigned flags, unsigned line, unsigned column) {
    lane* me = current();
    me->line = line, me->column = column;
    if (run.sanitized) note_calls<false>(me);
    else note_caller(me);
    if (!run.waiting++) run.barrier = me->place, run.barrier_flags = flags;
    run.mixed |= me->place != run.barrier;
    stop(me, at_barrier);
}

void __emu_simdgroup_barrier(unsigned flags, unsigned line, unsigned column) {
    lane* me = current();
    me->line = line, me->column = column, me->nbytes = flags;
    note_calls<true>(me);
    ++run.exchanging[run.simdgroup];
    stop(me, at_simdgroup_barrier);
}

const exchange* __emu_exchange(const void* value, unsigned nbytes, unsigned line, unsigned column) {
    lane* me = current();
    me->line = line, me->column = column, me->value = value, me->nbytes = nbytes;
    note_calls<true>(me);
    u32 simdgroup = me->self.index / width;
    ++run.exchanging[simdgroup];
    stop(me, exchanging);
    return &run.exchanges[simdgroup];
}

void __emu_yield() {
    lane* me = current();
    if (++me->turns % patience) return;  // who asks once is not waiting
    ++run.yielding;
    stop(me, yielded);
}

}
