// From one stack to another: what a called function has to keep, the stack pointer, and nothing else.

#pragma once

#include "runtime_system.h"

namespace __emu {

#ifdef __x86_64__

// Keeps the running context in `*from` and goes on with `to`.
__attribute__((naked)) inline void switch_stacks(void** from, void* to) {
    asm("pushq %rbp\n pushq %rbx\n pushq %r12\n pushq %r13\n pushq %r14\n pushq %r15\n"
        "movq %rsp, (%rdi)\n movq %rsi, %rsp\n"
        "popq %r15\n popq %r14\n popq %r13\n popq %r12\n popq %rbx\n popq %rbp\n ret");
}

// A context below `top` (a multiple of 16) that begins with `body`.
inline void* fresh_context(char* top, void (*body)()) {
    void** p = (void**)top - 2;
    p[1] = nullptr;  // where `body` would return to
    p[0] = (void*)body;
    p -= 6;
    memset(p, 0, 48);
    return p;
}

#else

__attribute__((naked)) inline void switch_stacks(void** from, void* to) {
    asm("sub sp, sp, #160\n"
        "stp x19, x20, [sp]\n stp x21, x22, [sp, #16]\n stp x23, x24, [sp, #32]\n stp x25, x26, [sp, #48]\n"
        "stp x27, x28, [sp, #64]\n stp x29, x30, [sp, #80]\n"
        "stp d8, d9, [sp, #96]\n stp d10, d11, [sp, #112]\n stp d12, d13, [sp, #128]\n stp d14, d15, [sp, #144]\n"
        "mov x9, sp\n str x9, [x0]\n mov sp, x1\n"
        "ldp x19, x20, [sp]\n ldp x21, x22, [sp, #16]\n ldp x23, x24, [sp, #32]\n ldp x25, x26, [sp, #48]\n"
        "ldp x27, x28, [sp, #64]\n ldp x29, x30, [sp, #80]\n"
        "ldp d8, d9, [sp, #96]\n ldp d10, d11, [sp, #112]\n ldp d12, d13, [sp, #128]\n ldp d14, d15, [sp, #144]\n"
        "add sp, sp, #160\n ret");
}

inline void* fresh_context(char* top, void (*body)()) {
    void** p = (void**)(top - 160);
    memset(p, 0, 160);
    p[11] = (void*)body;  // x30
    return p;
}

#endif

}  // namespace __emu
