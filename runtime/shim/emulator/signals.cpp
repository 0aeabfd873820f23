// What ends a kernel that the processor stops, or that does not stop: a record in the shared page, and the worker's exit.
//
// Division by zero alone goes on, with zero, where the processor stops for it.

#include "runtime_division.h"
#include "runtime_state.h"

namespace __emu {

control* page_of_outcome;

namespace {

constexpr u64 tick = 250000;  // microseconds
constexpr int exit_status = 86;  // the record says why
char signal_stack_memory[64 << 10];
int parent;
double waited, limit;
u64 seen_groups;

record* begin(record* r, u32 kind, u64 pc) {
    *r = {};
    r->kind = kind, r->count = 1, r->pc = pc;
    if (__emu_current) r->at = position_of(*__emu_current);
    return r;
}

// The guard of the thread's stack was met, or a frame of many bytes has taken the stack pointer beyond all stacks.
bool is_stack_exhausted(u64 address, u64 sp) {
    u64 low = (u64)stacks_low(), high = (u64)stacks_high();
    if (sp < low || sp >= high) return true;
    u64 stride = (high - low) / most_threads;
    bool is_guard = address >= low && address < high && (address - low) % stride < stride - stack_size;
    return is_guard && (address - low) / stride == (sp - low) / stride;
}

void on_crash(int signal, char* info, void* context) {
    u64 pc = pc_of(context);
    u64 address = *(u64*)(info + address_in_info);
    u32 kind = signal == sigsegv ? fault_memory_access
             : signal == sigbus ? fault_bus
             : signal == sigabrt ? fault_abort : fault_illegal;
    record* r = crash(kind, pc);
    if (kind == fault_memory_access || kind == fault_bus) {
        r->a = is_write(context);
        place(r, address);
        if (is_stack_exhausted(address, sp_of(context))) r->kind = fault_stack_overflow, r->space = in_stack_guard;
    }
    page_of_outcome->status = stopped;
    _exit(exit_status);
}

void on_division(int signal, char* info, void* context) {
#ifdef __x86_64__
    u64 pc = pc_of(context);
    division found = skip_division(context);
    if (found == division::overflow && run.sanitized) report(fault_division_overflow, pc);  // clang tells of zero
    if (found != division::none) return;
#endif
    on_crash(signal, info, context);
}

constexpr u32 most_alarms = 50;  // after the limit, for a place to name

u64 library_of(u64 pc) {
    loaded_library found = {};
    return dladdr((void*)pc, &found) ? u64(found.begin) : 0;
}

// Where the kernel itself stands: the runtime may be at work for it, in as many calls.
u64 pc_in_kernel(void* context) {
    u64 pc = pc_of(context), own = library_of(page_of_outcome->entry);
    u64 frame = frame_of(context), low = (u64)stacks_low(), high = (u64)stacks_high(), at = pc;
    while (library_of(at) != own) {
        if (frame % 8 || frame < low || frame >= high || !((u64*)frame)[0]) return pc;
        at = ((u64*)frame)[1] - 1, frame = ((u64*)frame)[0];
    }
    return at;
}

void on_alarm(int, char*, void* context) {
    if (getppid() != parent) _exit(exit_status);
    if (run.ended_groups != seen_groups) {
        seen_groups = run.ended_groups;
        waited = 0;
        return;
    }
    waited += double(tick) / 1e6;
    if (waited < limit) return;
    // Between two threads it stands nowhere in the kernel: the next alarm may find it at a line of the user's.
    u64 pc = pc_in_kernel(context);
    if (library_of(pc) != library_of(page_of_outcome->entry) && waited < limit + most_alarms * double(tick) / 1e6) return;
    record* r = crash(fault_endless, pc);
    r->a = i64(limit * 1000);
    page_of_outcome->status = stopped;
    _exit(exit_status);
}

void set_alarm(u64 microseconds) {
    u64 timer[4] = {0, microseconds, 0, microseconds};
    setitimer(0, timer, nullptr);
}

}  // namespace

position position_of(const thread& t) {
    const size3 g = t.in->threadgroup_position_in_grid, full = t.in->dispatch_threads_per_threadgroup;
    const size3 p = t.position_in_threadgroup;
    return {{g.x * full.x + p.x, g.y * full.y + p.y, g.z * full.z + p.z}, g};
}

record* report(u32 kind, u64 pc, u32 line, u32 column) {
    control& c = *page_of_outcome;
    static record spare;
    for (u32 i = 0; i < c.records; ++i) {
        record& r = c.table[i];
        if (r.kind == kind && r.pc == pc && r.line == line && r.column == column) {
            ++r.count;
            return &spare;  // the first of its kind tells
        }
    }
    if (c.records == most_records) {
        ++c.dropped;
        return &spare;
    }
    record* r = begin(&c.table[c.records++], kind, pc);
    r->line = line, r->column = column;
    return r;
}

record* crash(u32 kind, u64 pc) {
    control& c = *page_of_outcome;
    return begin(&c.table[c.records++], kind, pc);
}

void watch(double seconds) {
    limit = seconds, waited = 0, seen_groups = run.ended_groups = 0;
    set_alarm(tick);
}

void stop_watching() { set_alarm(0); }

void catch_signals() {
    parent = getppid();
    signal_stack s = {};
    s.memory = signal_stack_memory, s.nbytes = sizeof signal_stack_memory;
    sigaltstack(&s, nullptr);
    const int caught[] = {sigsegv, sigbus, sigill, sigabrt, sigtrap, sigfpe, sigalrm};
    for (int number : caught) {
        signal_action action = {};
        action.handler = number == sigalrm ? (void*)on_alarm : number == sigfpe ? (void*)on_division : (void*)on_crash;
        action.flags = sa_siginfo | sa_onstack | sa_restart;
        sigaction(number, &action, nullptr);
    }
}

}  // namespace __emu
