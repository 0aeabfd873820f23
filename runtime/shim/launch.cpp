// From Python's objects to a loop nest: one call checks the arrays and runs. Compiled once, not with each kernel.

#include "pool.h"

// NumPy's public PyArrayObject from the class on, which is the last thing in the head of every object.
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

// What `cpu.py` packs once for equal extents. For each array there are in `arrays`: its dtype's address, the flags that
// it must have, its bytes, its rank, its extents.
struct mj_plan {
    mj_nest nest;
    const void* type;         // the class `ndarray`
    long head, count;         // bytes of an object's head; arrays
    long total, block, chunk, threads;
    long arrays[];
};

namespace {

const int MOST_ARRAYS = 32;
const int WRITEABLE = 0x400;  // NPY_ARRAY_WRITEABLE: a result

bool as_planned(const mj_plan* plan, const long* wanted, const mj_array* a) {
    if (a->type != plan->type || a->dtype != (const void*)wanted[0]) return false;
    if ((a->flags & wanted[1]) != wanted[1] || a->rank != wanted[3]) return false;
    for (int k = 0; k < a->rank; ++k) {
        if (a->shape[k] != wanted[4 + k]) return false;
    }
    return true;
}

}  // namespace

// Runs a plan on NumPy's arrays. With `check` it gives 0 and does nothing unless all are as planned, and no result shares
// memory with another array.
MJ_EXPORT int mj_launch(const mj_plan* plan, char* const* objects, const void* params, unsigned* status, int check) {
    void* buffers[MOST_ARRAYS];
    const long* each[MOST_ARRAYS];
    const long* wanted = plan->arrays;
    const int count = int(plan->count);
    for (int i = 0; i < count; ++i) {
        const mj_array* a = (const mj_array*)(objects[i] + plan->head - sizeof(void*));
        if (check && !as_planned(plan, wanted, a)) return 0;
        buffers[i] = a->data;
        each[i] = wanted;
        wanted += 4 + wanted[3];
    }
    for (int i = 0; check && i < count; ++i) {
        for (int j = 0; each[i][1] & WRITEABLE && j < count; ++j) {
            const char *a = (char*)buffers[i], *b = (char*)buffers[j];
            if (i != j && a < b + each[j][2] && b < a + each[i][2]) return 0;
        }
    }
    parallel_for(plan->nest, buffers, params, status, plan->total, plan->block, plan->chunk, int(plan->threads));
    return 1;
}
