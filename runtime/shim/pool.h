// A small pool of threads for loop nests: C++ without any library but the system's own threads.
//
// One job runs at a time. The caller works too, so a job ends even where no worker ever wakes; a second
// caller meanwhile runs its job alone. Workers spin for a moment after a job, since kernels come in rows and
// what Python does between two of them takes up to 0.1 ms, and then sleep.
//
// `gate` is the pool's state in one word: the number of the job in the upper half, then a bit that says
// whether workers may still enter, then the number of workers inside. A worker enters by adding one while
// the bit is set; the caller takes the bit away when no units are left, and waits for those inside. So a
// worker that wakes late finds the gate shut, and never sees a job that is over.

typedef void (*mj_nest)(void* const* buffers, const void* params, unsigned* status, long begin, long end, long block);

extern "C" {
// Prototypes instead of headers: there are none where this is compiled. The types behind the pointers are
// opaque, and no system's are larger than these.
struct alignas(16) mj_opaque { char bytes[256]; };
struct mj_time { long seconds, nanoseconds; };
int pthread_create(void** thread, const mj_opaque* attributes, void* (*start)(void*), void* argument);
int pthread_attr_init(mj_opaque*);
int pthread_attr_setstacksize(mj_opaque*, unsigned long);
int pthread_attr_setdetachstate(mj_opaque*, int);
int pthread_mutex_init(mj_opaque*, const void*);
int pthread_mutex_lock(mj_opaque*);
int pthread_mutex_unlock(mj_opaque*);
int pthread_cond_init(mj_opaque*, const void*);
int pthread_cond_wait(mj_opaque*, mj_opaque*);
int pthread_cond_signal(mj_opaque*);
int pthread_sigmask(int how, const mj_opaque* set, mj_opaque* old);
int sigfillset(mj_opaque*);
int clock_gettime(int clock, mj_time*);
int sched_yield(void);
int getpid(void);
#if defined(__linux__)
int sched_getcpu(void);
int sched_getaffinity(int process, unsigned long size, void* mask);
int pthread_setaffinity_np(void* thread, unsigned long size, const void* mask);
#endif
}

#if defined(__APPLE__)
enum { CLOCK_STEADY = 6, SIGNALS_SET = 3, DETACHED = 2 };
#else
enum { CLOCK_STEADY = 1, SIGNALS_SET = 2, DETACHED = 1 };
#endif

namespace {

typedef unsigned long long word;
const word OPEN = 1ull << 31, INSIDE = OPEN - 1, JOB = 1ull << 32;
const long SPIN_NANOSECONDS = 200000;
const unsigned long STACK = 8ul << 20;

struct Job {
    mj_nest nest;
    void* const* buffers;
    const void* params;
    unsigned* status;
    long total, block, chunk;
} job;

alignas(64) word gate;
alignas(64) long next_unit;
int most_inside;      // of the job behind the gate
alignas(64) int busy;
int sleepers;
const int MOST_WORKERS = 1024;
int workers;          // started in this process
void* threads_of[MOST_WORKERS];
int avoided, kept_off;  // the processor that the first so many workers stay off
int owner;            // the process that the workers live in
mj_opaque mutex, wake;

inline void pause_briefly() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
}

long now() {
    mj_time t;
    clock_gettime(CLOCK_STEADY, &t);
    return t.seconds * 1000000000l + t.nanoseconds;
}

void work(const Job& j) {
    for (;;) {
        const long begin = __atomic_fetch_add(&next_unit, j.chunk, __ATOMIC_RELAXED);
        if (begin >= j.total) return;
        const long left = j.total - begin;
        j.nest(j.buffers, j.params, j.status, begin, begin + (left < j.chunk ? left : j.chunk), j.block);
    }
}

// Enters the job behind the gate unless it is shut, or full, or the one that this worker has just left.
bool enter(word& last) {
    word seen = __atomic_load_n(&gate, __ATOMIC_SEQ_CST);
    while ((seen & OPEN) && seen / JOB != last
           && long(seen & INSIDE) < __atomic_load_n(&most_inside, __ATOMIC_RELAXED)) {
        if (__atomic_compare_exchange_n(&gate, &seen, seen + 1, true, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE)) {
            last = seen / JOB;
            return true;
        }
    }
    return false;
}

bool spin(word& last) {
    const long until = now() + SPIN_NANOSECONDS;
    do {
        for (int i = 0; i < 64; ++i) {
            if (enter(last)) return true;
            pause_briefly();
        }
    } while (now() < until);
    return false;
}

void* run_worker(void*) {
    word last = 0;
    for (;;) {
        if (!spin(last)) {
            pthread_mutex_lock(&mutex);
            __atomic_fetch_add(&sleepers, 1, __ATOMIC_SEQ_CST);
            bool entered;
            while (!(entered = enter(last))) pthread_cond_wait(&wake, &mutex);
            __atomic_fetch_sub(&sleepers, 1, __ATOMIC_SEQ_CST);
            pthread_mutex_unlock(&mutex);
        }
        work(job);
        __atomic_fetch_sub(&gate, 1, __ATOMIC_RELEASE);
    }
    return nullptr;
}

void start_workers(int wanted) {
    mj_opaque attributes, all, before;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, DETACHED);
    // Workers take no signals: Python's handlers belong to the main thread.
    sigfillset(&all);
    pthread_sigmask(SIGNALS_SET, &all, &before);
    while (workers < wanted && workers < MOST_WORKERS) {
        if (pthread_create(&threads_of[workers], &attributes, run_worker, nullptr) != 0) break;
        ++workers;
    }
    pthread_sigmask(SIGNALS_SET, &before, nullptr);
}

// Linux likes to start a woken thread on the processor of the one that woke it, where one of the two then waits while
// other processors are idle; for short jobs that is all of their time. So the workers stay off the caller's.
void keep_off_caller() {
#if defined(__linux__)
    const int here = sched_getcpu();
    if (here < 0 || (here == avoided && kept_off == workers)) return;
    unsigned long mask[MOST_WORKERS / (8 * sizeof(long))] = {}, others = 0;
    const int bits = 8 * sizeof(long), words = sizeof mask / sizeof *mask;
    avoided = here;
    kept_off = workers;
    if (here >= words * bits || sched_getaffinity(0, sizeof mask, mask) < 0) return;
    mask[here / bits] &= ~(1ul << here % bits);
    for (int i = 0; i < words; ++i) others |= mask[i];
    for (int i = 0; others && i < workers; ++i) pthread_setaffinity_np(threads_of[i], sizeof mask, mask);
#endif
}

// A forked child has none of its parent's threads, and may have caught the state in the middle of a job.
void settle() {
    const int self = getpid();
    if (owner == self) return;
    owner = self;
    gate = 0;
    sleepers = workers = kept_off = 0;
    pthread_mutex_init(&mutex, nullptr);
    pthread_cond_init(&wake, nullptr);
}

}  // namespace

#define MJ_EXPORT extern "C" __attribute__((visibility("default")))

// To be called in a forked child before anything else of this library.
MJ_EXPORT void mj_after_fork() { busy = 0; }

// Runs nest over the units [0, total), `chunk` at a time, on up to `threads` threads, the caller's included.
static void parallel_for(mj_nest nest, void* const* buffers, const void* params, unsigned* status,
                         long total, long block, long chunk, int threads) {
    if (threads < 2 || total <= chunk || __atomic_exchange_n(&busy, 1, __ATOMIC_ACQUIRE)) {
        nest(buffers, params, status, 0, total, block);
        return;
    }
    settle();
    if (workers < threads - 1) start_workers(threads - 1);
    keep_off_caller();
    job = Job{nest, buffers, params, status, total, block, chunk};
    __atomic_store_n(&next_unit, 0l, __ATOMIC_RELAXED);
    __atomic_store_n(&most_inside, threads - 1, __ATOMIC_RELAXED);
    __atomic_store_n(&gate, (gate / JOB + 1) * JOB | OPEN, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&sleepers, __ATOMIC_SEQ_CST)) {
        pthread_mutex_lock(&mutex);
        for (int i = 1; i < threads; ++i) pthread_cond_signal(&wake);
        pthread_mutex_unlock(&mutex);
    }
    work(job);
    word seen = __atomic_and_fetch(&gate, ~OPEN, __ATOMIC_ACQUIRE);
    for (int i = 0; seen & INSIDE; ++i) {
        if (i < 4096) pause_briefly(); else sched_yield();
        seen = __atomic_load_n(&gate, __ATOMIC_ACQUIRE);
    }
    __atomic_store_n(&busy, 0, __ATOMIC_RELEASE);
}
