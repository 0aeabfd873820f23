// Whether what `uniform(…)` promises is true: all threads of a group hold one value there.
//
// The places are such that all threads come to them equally often, or the kernel is wrong; so the n-th value of a thread
// is compared with the n-th that any thread brought first. Of a place the last values are kept: a thread that lags
// behind by more than those, without a barrier, is not compared.

#include "runtime_state.h"

namespace __emu {

namespace {

constexpr u32 most_promises = 64, most_values = 1024;

struct promise {
    u32 line, column;
    u64 group, begun;             // the group it was last met in, counted from 1; values brought there
    u64 turns[most_threads];      // values that each thread has brought
    u64 values[most_values];
    u32 who[most_values];         // the thread that brought it first
};

promise* promises;
u32 known_promises;

promise* find(u32 line, u32 column) {
    for (u32 i = 0; i < known_promises; ++i) {
        if (promises[i].line == line && promises[i].column == column) return &promises[i];
    }
    if (known_promises == most_promises) return nullptr;
    promise& made = promises[known_promises++];
    made = {};
    made.line = line, made.column = column;
    return &made;
}

}  // namespace

void forget_promises() { known_promises = 0; }

}  // namespace __emu

#pragma GCC visibility push(default)

extern "C" void __emu_promise(unsigned long value, unsigned kind, unsigned line, unsigned column) {
    using namespace __emu;
    if (!promises) {
        u64 nbytes = most_promises * sizeof(promise);
        promises = (promise*)mmap(nullptr, nbytes, prot_read | prot_write, map_private | map_anonymous, -1, 0);
    }
    promise* p = find(line, column);
    if (!p) return;
    if (p->group != run.number + 1) {
        memset(p->turns, 0, sizeof p->turns);
        p->group = run.number + 1, p->begun = 0;
    }
    u32 me = __emu_current->index;
    u64 turn = p->turns[me]++;
    if (turn == p->begun) {
        ++p->begun;
        p->values[turn % most_values] = value, p->who[turn % most_values] = me;
        return;
    }
    if (p->begun - turn > most_values || p->values[turn % most_values] == value) return;
    record* r = report(fault_promise, (u64)__builtin_return_address(0) - 1, line, column);
    r->a = i64(value), r->b = i64(p->values[turn % most_values]), r->c = kind;
    r->other = position_of(run.lanes[p->who[turn % most_values]].self);
}

#pragma GCC visibility pop
