// What the threads of a group compute together, where they are the places of an array.
#pragma once

#include "cpu_types.h"

// All values as one: 32 columns at a time, so that it is vectors that are combined, then the columns in halves.
template <class T, class F> MJ_INLINE T mj_lanes_reduce(const T *values, int count, F combine) {
    T part[32];
    for (int lane = 0; lane < 32; ++lane) part[lane] = values[lane];
    for (int first = 32; first < count; first += 32) {
        for (int lane = 0; lane < 32; ++lane) part[lane] = combine(part[lane], values[first + lane]);
    }
    for (int half = 16; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) part[lane] = combine(part[lane], part[lane + half]);
    }
    return part[0];
}

// Each value becomes the sum of those up to it; of those before it if exclusive.
template <bool exclusive, class T, class F> MJ_INLINE void mj_lanes_prefix(T *values, int count, F combine) {
    T total = T(0);
    for (int k = 0; k < count; ++k) {
        const T after = combine(total, values[k]);
        values[k] = exclusive ? total : after;
        total = after;
    }
}

// A bit for each lane.
MJ_INLINE uint mj_lanes_ballot(const bool *values) {
    uint bits = 0;
    for (int lane = 0; lane < 32; ++lane) bits |= uint(values[lane]) << lane;
    return bits;
}

// Tiles of 8 by 8 numbers, row by row.
template <class T> MJ_INLINE void mj_tile_fill(T (&tile)[64], T value) {
    for (int k = 0; k < 64; ++k) tile[k] = value;
}
template <class T> MJ_INLINE void mj_tile_load(T (&tile)[64], const T *from, long stride) {
    for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) tile[8 * y + x] = from[y * stride + x];
    }
}
template <class T> MJ_INLINE void mj_tile_store(const T (&tile)[64], T *to, long stride) {
    for (int y = 0; y < 8; ++y) {
        for (int x = 0; x < 8; ++x) to[y * stride + x] = tile[8 * y + x];
    }
}

// Sums of halves are made in float and rounded once.
template <class T>
MJ_INLINE void mj_tile_multiply(T (&result)[64], const T (&left)[64], const T (&right)[64], const T (&added)[64]) {
    float sums[64];
    for (int k = 0; k < 64; ++k) sums[k] = float(added[k]);
    for (int k = 0; k < 8; ++k) {
        for (int y = 0; y < 8; ++y) {
            for (int x = 0; x < 8; ++x) sums[8 * y + x] += float(left[8 * y + k]) * float(right[8 * k + x]);
        }
    }
    for (int k = 0; k < 64; ++k) result[k] = T(sums[k]);
}
