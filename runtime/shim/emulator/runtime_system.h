// The system's calls and structures, written out: the library is compiled without any header.
//
// Layouts are those of Linux (glibc and musl agree) and of macOS, 64 bits each.

#pragma once

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned;
using u64 = unsigned long;
using i64 = long;

extern "C" {
void* mmap(void*, u64, int, int, int, long);
int munmap(void*, u64);
int madvise(void*, u64, int);
int mprotect(void*, u64, int);
int sigaction(int, const void*, void*);
int sigaltstack(const void*, void*);
int setitimer(int, const void*, void*);
int getppid();
int dladdr(const void*, void*);
[[noreturn]] void _exit(int);
void* memset(void*, int, u64);
void* memcpy(void*, const void*, u64);
void* memmove(void*, const void*, u64);
int memcmp(const void*, const void*, u64);
}

namespace __emu {

struct loaded_library { const char* path; void* begin; const char* symbol; void* at; };  // what `dladdr` tells

constexpr int prot_none = 0, prot_read = 1, prot_write = 2;
constexpr int map_shared = 1, map_private = 2, map_fixed = 0x10;
constexpr int sigill = 4, sigtrap = 5, sigabrt = 6, sigfpe = 8, sigsegv = 11, sigalrm = 14;

#ifdef __APPLE__

constexpr int map_anonymous = 0x1000, map_noreserve = 0x40;
constexpr int sigbus = 10, sa_siginfo = 0x40, sa_onstack = 1, sa_nodefer = 0x10, sa_restart = 2;
struct signal_action { void* handler; u32 mask; int flags; };
struct signal_stack { void* memory; u64 nbytes; int flags; };
constexpr u64 address_in_info = 24;

inline char* machine_context(void* context) { return *(char**)((char*)context + 48); }
#ifdef __x86_64__
inline u64& pc_of(void* context) { return *(u64*)(machine_context(context) + 16 + 16 * 8); }
inline int is_write(void* context) { return *(u32*)(machine_context(context) + 4) >> 1 & 1; }
// By the processor's own numbers: rax rcx rdx rbx rsp rbp rsi rdi r8 … r15.
inline u64& register_of(void* context, u32 number) {
    constexpr u8 place[] = {0, 2, 3, 1, 7, 6, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15};
    return *(u64*)(machine_context(context) + 16 + place[number] * 8);
}
inline u64 sp_of(void* context) { return register_of(context, 4); }
inline u64 frame_of(void* context) { return register_of(context, 5); }
#else
inline u64& pc_of(void* context) { return *(u64*)(machine_context(context) + 16 + 32 * 8); }
inline u64 frame_of(void* context) { return *(u64*)(machine_context(context) + 16 + 29 * 8); }
inline u64 sp_of(void* context) { return *(u64*)(machine_context(context) + 16 + 31 * 8); }
inline int is_write(void* context) { return *(u32*)(machine_context(context) + 8) >> 6 & 1; }
#endif

#else

constexpr int map_anonymous = 0x20, map_noreserve = 0x4000;
constexpr int sigbus = 7, sa_siginfo = 4, sa_onstack = 0x08000000, sa_nodefer = 0x40000000, sa_restart = 0x10000000;
struct signal_action { void* handler; u64 mask[16]; int flags; void* restorer; };
struct signal_stack { void* memory; int flags; u64 nbytes; };
constexpr u64 address_in_info = 16;

#ifdef __x86_64__
inline u64& pc_of(void* context) { return *(u64*)((char*)context + 40 + 16 * 8); }
inline int is_write(void* context) { return *(u64*)((char*)context + 40 + 19 * 8) >> 1 & 1; }
inline u64& register_of(void* context, u32 number) {
    constexpr u8 place[] = {13, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7};
    return *(u64*)((char*)context + 40 + place[number] * 8);
}
inline u64 sp_of(void* context) { return register_of(context, 4); }
inline u64 frame_of(void* context) { return register_of(context, 5); }
#else
inline u64& pc_of(void* context) { return *(u64*)((char*)context + 440); }
inline u64 frame_of(void* context) { return *(u64*)((char*)context + 416); }
inline u64 sp_of(void* context) { return *(u64*)((char*)context + 432); }
inline int is_write(void*) { return -1; }  // only in a record that not each kernel has
#endif

#endif

}  // namespace __emu
