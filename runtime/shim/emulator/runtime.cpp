// What the worker process calls: once at its start, and for each run.

#include "runtime_state.h"

namespace {

int file;

}

#pragma GCC visibility push(default)

extern "C" {

// `descriptor` is the shared file, whose first `nbytes` are the page of outcomes. 0, or -1 where it cannot be mapped.
int __emu_start(int descriptor, u64 nbytes, u64 page) {
    file = descriptor;
    void* shared = mmap(nullptr, nbytes, __emu::prot_read | __emu::prot_write, __emu::map_shared, descriptor, 0);
    if (shared == (void*)-1) return -1;
    __emu::page_of_outcome = (__emu::control*)shared;
    __emu::make_stacks(page);
    __emu::catch_signals();
    return 0;
}

// 0: the control page tells the outcome. -1: the memory cannot be mapped.
int __emu_run(const __emu::request* request, void (*entry)()) {
    using namespace __emu;
    control* outcome = page_of_outcome;
    bool halted = outcome->status == stopped;
    outcome->records = outcome->dropped = 0;
    outcome->status = running;
    outcome->entry = (u64)entry;
    __emu_current = nullptr;
    if (!map_memory(*request, file)) return -1;
    watch(request->limit);
    bool sanitized = request->flags & run_sanitized;
    if (sanitized) forget_promises(), sanitize_begin(), private_begin(outcome->entry, halted);
    run_grid(*request, entry, outcome);
    __emu_current = nullptr;
    if (sanitized && outcome->status != stopped) sanitize_end();
    stop_watching();
    if (outcome->status != stopped) outcome->status = ended;
    return 0;
}

}

#pragma GCC visibility pop
