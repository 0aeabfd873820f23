// From Python's objects to a loop nest: one call checks the arrays and runs.
//
// A plan is a row of 64-bit numbers that `cpu.py` packs once for equal extents:
//     the address of the class `ndarray`, units, columns of a unit, units at a time, threads, the pool's entry,
//     and for each array: its dtype's address, the flags it must have, its bytes, its rank, its extents.

typedef void (*mj_nest)(void* const* buffers, const void* params, unsigned* status, long begin, long end, long block);
typedef void (*mj_pool)(mj_nest, void* const* buffers, const void* params, unsigned* status, long total, long block,
                        long chunk, int threads);

// NumPy's public PyArrayObject from the class on, which stands before it in the head of every object.
struct mj_array {
    const void* type;
    char* data;
    int rank;
    const long* shape;
    const long* strides;
    const void* base;
    const void* dtype;
    int flags;
};

enum { MJ_WRITEABLE = 0x400 };  // NPY_ARRAY_WRITEABLE: a result

struct mj_plan {
    const void* type;
    long units, block, chunk, threads;
    mj_pool pool;
    long arrays[];
};

// Whether all arrays are as planned, and no result shares memory with another array; finds where they lie.
template <int count>
inline bool mj_as_planned(const mj_plan* plan, const mj_array* const* arrays, void** buffers, bool check) {
    const long* wanted = plan->arrays;
    long bytes[count];
    bool writes[count];
    for (int i = 0; i < count; ++i) {
        const mj_array* a = arrays[i];
        const long flags = wanted[1], rank = wanted[3];
        if (check && (a->type != plan->type || a->dtype != (const void*)wanted[0] || (a->flags & flags) != flags
                      || a->rank != rank)) return false;
        for (int k = 0; check && k < rank; ++k) {
            if (a->shape[k] != wanted[4 + k]) return false;
        }
        buffers[i] = a->data;
        bytes[i] = wanted[2];
        writes[i] = flags & MJ_WRITEABLE;
        wanted += 4 + rank;
    }
    for (int i = 0; check && i < count; ++i) {
        for (int j = 0; writes[i] && j < count; ++j) {
            const char *a = (char*)buffers[i], *b = (char*)buffers[j];
            if (i != j && a < b + bytes[j] && b < a + bytes[i]) return false;
        }
    }
    return true;
}

template <int count>
inline bool mj_run(mj_nest nest, const mj_plan* plan, char* const* objects, long head, const void* params,
                   unsigned* status, bool check) {
    const mj_array* arrays[count];
    void* buffers[count];
    for (int i = 0; i < count; ++i) arrays[i] = (const mj_array*)(objects[i] + head - sizeof(void*));
    if (!mj_as_planned<count>(plan, arrays, buffers, check)) return false;
    if (plan->threads < 2) nest(buffers, params, status, 0, plan->units, plan->block);
    else plan->pool(nest, buffers, params, status, plan->units, plan->block, plan->chunk, int(plan->threads));
    return true;
}
