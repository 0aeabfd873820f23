// `metal_simdgroup` and `metal_quadgroup`: what the lanes of a simdgroup, or of four in a row, do together.
//
// Every function is one exchange: each lane gives its value and sees those of the lanes that stand at the same place.
// Only these take part, as on a GPU where some lanes have left a branch. Asking a lane that does not is a fault, and
// gives the own value. The order of a reduction is a tree over the lanes.
#pragma once

#include "synchronization.h"

namespace __emu {

// Where a call stands in the user's text.
struct place {
    uint line, column;
};

// The lanes that a function ranges over: all 32, or the quad of the calling lane.
template <uint size> struct lanes {
    const exchange *all;
    uint own, first;
    place at;

    template <class T>
    __EMU_OWN lanes(const T &value, place at)
        : all(__emu_exchange(&value, sizeof(T), at.line, at.column)), own(__emu_current->index % 32u),
          first(own / size * size), at(at) {}

    __EMU_OWN uint lane() const { return own - first; }
    __EMU_OWN bool active(uint lane) const { return lane < size && (all->active >> (first + lane) & 1u); }
    __EMU_OWN uint mask() const { return all->active >> first & (size == 32 ? ~0u : (1u << (size & 31u)) - 1u); }
    template <class T> __EMU_OWN T value(uint lane) const {
        T x;
        __builtin_memcpy(&x, all->values + (first + lane) * all->stride, sizeof(T));
        return x;
    }
    template <class T> __EMU_OWN T ask(uint lane) const {
        if (active(lane)) return value<T>(lane);
#ifdef __EMU_SANITIZE
        __emu_fault(fault_lane, lane, size, "", at.line, at.column);
#endif
        return T{};  // Metal leaves it open; kernels that get away with it on a GPU rely on 0
    }
};

// bool and the 64-bit types have no such functions.
template <class T>
concept shared = one_of<element_of<T>, char, signed char, uchar, short, ushort, int, uint, float, half, bfloat>;
template <class T> concept shared_bits = shared<T> && integer<element_of<T>>;

// `f` over the values of the active lanes: neighbours first, then their results.
template <uint size, class T, class F> __EMU_OWN T tree(const lanes<size> &in, F f) {
    T value[size];
    bool filled[size];
    for (uint i = 0; i < size; ++i)
        if ((filled[i] = in.active(i))) value[i] = in.template value<T>(i);
    for (uint step = 1; step < size; step *= 2) {
        for (uint i = 0; i + step < size; i += 2 * step) {
            if (!filled[i + step]) continue;
            value[i] = filled[i] ? f(value[i], value[i + step]) : value[i + step];
            filled[i] = true;
        }
    }
    return value[0];
}
template <uint size, class T, class F> __EMU_OWN T reduced(const lanes<size> &in, F f) {
    if constexpr (size < 32) {
        return tree<size, T>(in, f);
    } else {
        T r;
        if (in.all->answered) {
            __builtin_memcpy(&r, in.all->answer, sizeof(T));
        } else {
            r = tree<size, T>(in, f);
            __builtin_memcpy(in.all->answer, &r, sizeof(T));
            in.all->answered = 1;
        }
        return r;
    }
}
template <uint size, class T, class F> __EMU_OWN T prefix(const lanes<size> &in, T start, bool inclusive, F f) {
    T r = start;
    for (uint i = 0; i < in.lane() + (inclusive ? 1u : 0u); ++i)
        if (in.active(i)) r = f(r, in.template value<T>(i));
    return r;
}

// Of two values, vectors by component; NaN gives way to a number.
template <class T> __EMU_OWN T smaller(T a, T b) {
    if constexpr (a_vector<T>)
        return each([](auto x, auto y) { return smaller(x, y); }, a, b);
    else
        return a != a || b < a ? b : a;
}
template <class T> __EMU_OWN T larger(T a, T b) {
    if constexpr (a_vector<T>)
        return each([](auto x, auto y) { return larger(x, y); }, a, b);
    else
        return a != a || a < b ? b : a;
}

// The result of a ballot: bit i is lane i's answer.
template <uint size> class ballot_of {
    ulong bits;
    static constexpr ulong every = (1ul << size) - 1ul;

public:
    typedef ulong vote_t;
    explicit constexpr ballot_of(vote_t bits = 0) : bits(bits) {}
    explicit constexpr operator vote_t() const { return bits; }
    constexpr bool all() const { return (bits & every) == every; }
    constexpr bool any() const { return (bits & every) != 0; }
};

}  // namespace __emu

namespace metal {

typedef __emu::ballot_of<32> simd_vote;
typedef __emu::ballot_of<4> quad_vote;

#define __EMU_PLACE __emu::place{__emu_line, __emu_column}

// From the lane that `from` computes. Where nothing is shifted in, a lane keeps what it has.
#define __EMU_MOVE(name, size, from)                                                                                   \
    template <__emu::shared T> __EMU_OWN inline T name(T data, ushort by, __EMU_HERE) {                                \
        __emu::lanes<size> in(data, __EMU_PLACE);                                                                      \
        [[maybe_unused]] const uint lane = in.lane();                                                                  \
        return in.template ask<T>(from);                                                                               \
    }
#define __EMU_REDUCE(name, size, kind, ...)                                                                            \
    template <__emu::kind T> __EMU_OWN inline T name(T data, __EMU_HERE) {                                             \
        __emu::lanes<size> in(data, __EMU_PLACE);                                                                      \
        return __emu::reduced<size, T>(in, [](T a, T b) { return T(__VA_ARGS__); });                                   \
    }
#define __EMU_PREFIX(name, size, start, inclusive, op)                                                                 \
    template <__emu::shared T> __EMU_OWN inline T name(T data, __EMU_HERE) {                                           \
        __emu::lanes<size> in(data, __EMU_PLACE);                                                                      \
        const T first = T(__emu::element_of<T>(start));                                                                \
        return __emu::prefix<size, T>(in, first, inclusive, [](T a, T b) { return T(a op b); });                       \
    }
// Lanes at the opposite end give `filling`; a modulo splits the lanes into independent rows of that many.
#define __EMU_FILL(name, size, direction)                                                                              \
    template <__emu::shared T>                                                                                         \
    __EMU_OWN inline T name(T data, T filling, ushort shift, ushort modulo = size, __EMU_HERE) {                       \
        struct both { T data, filling; };                                                                              \
        __emu::lanes<size> in(both{data, filling}, __EMU_PLACE);                                                       \
        const uint lane = in.lane(), row = lane / modulo * modulo;                                                     \
        const int to = int(lane - row) + direction * int(shift);                                                       \
        const bool inside = to >= 0 && to < int(modulo);                                                               \
        both found = in.template ask<both>(row + (uint(to) & (modulo - 1u)));                                          \
        return inside ? found.data : found.filling;                                                                    \
    }

#define __EMU_COLLECTIVES(prefix, size)                                                                                \
    __EMU_MOVE(prefix##_shuffle, size, by)                                                                             \
    __EMU_MOVE(prefix##_broadcast, size, by)                                                                           \
    __EMU_MOVE(prefix##_shuffle_up, size, lane < by ? lane : lane - by)                                                \
    __EMU_MOVE(prefix##_shuffle_down, size, lane + by < size ? lane + by : lane)                                       \
    __EMU_MOVE(prefix##_shuffle_rotate_up, size, (lane - by) % size)                                                   \
    __EMU_MOVE(prefix##_shuffle_rotate_down, size, (lane + by) % size)                                                 \
    __EMU_MOVE(prefix##_shuffle_xor, size, lane ^ by)                                                                  \
    __EMU_FILL(prefix##_shuffle_and_fill_up, size, -1)                                                                 \
    __EMU_FILL(prefix##_shuffle_and_fill_down, size, +1)                                                               \
    template <__emu::shared T> __EMU_OWN inline T prefix##_broadcast_first(T data, __EMU_HERE) {                       \
        __emu::lanes<size> in(data, __EMU_PLACE);                                                                      \
        return in.template value<T>(uint(__builtin_ctz(in.mask())));                                                   \
    }                                                                                                                  \
    __EMU_REDUCE(prefix##_sum, size, shared, a + b)                                                                    \
    __EMU_REDUCE(prefix##_product, size, shared, a *b)                                                                 \
    __EMU_REDUCE(prefix##_min, size, shared, __emu::smaller(a, b))                                                     \
    __EMU_REDUCE(prefix##_max, size, shared, __emu::larger(a, b))                                                      \
    __EMU_REDUCE(prefix##_and, size, shared_bits, a & b)                                                               \
    __EMU_REDUCE(prefix##_or, size, shared_bits, a | b)                                                                \
    __EMU_REDUCE(prefix##_xor, size, shared_bits, a ^ b)                                                               \
    __EMU_PREFIX(prefix##_prefix_exclusive_sum, size, 0, false, +)                                                     \
    __EMU_PREFIX(prefix##_prefix_inclusive_sum, size, 0, true, +)                                                      \
    __EMU_PREFIX(prefix##_prefix_exclusive_product, size, 1, false, *)                                                 \
    __EMU_PREFIX(prefix##_prefix_inclusive_product, size, 1, true, *)                                                  \
    __EMU_OWN inline prefix##_vote prefix##_ballot(bool expr, __EMU_HERE) {                                            \
        __emu::lanes<size> in(expr, __EMU_PLACE);                                                                      \
        ulong bits = 0;                                                                                                \
        for (uint i = 0; i < size; ++i)                                                                                \
            if (in.active(i) && in.template value<bool>(i)) bits |= 1ul << i;                                          \
        return prefix##_vote(bits);                                                                                    \
    }                                                                                                                  \
    __EMU_OWN inline prefix##_vote prefix##_active_threads_mask(__EMU_HERE) {                                          \
        return prefix##_ballot(true, __emu_line, __emu_column);                                                        \
    }                                                                                                                  \
    __EMU_OWN inline bool prefix##_any(bool expr, __EMU_HERE) {                                                        \
        return prefix##_ballot(expr, __emu_line, __emu_column).any();                                                  \
    }                                                                                                                  \
    __EMU_OWN inline bool prefix##_all(bool expr, __EMU_HERE) {                                                        \
        return !prefix##_ballot(!expr, __emu_line, __emu_column).any();                                                \
    }                                                                                                                  \
    __EMU_OWN inline bool prefix##_is_first(__EMU_HERE) {                                                              \
        __emu::lanes<size> in(true, __EMU_PLACE);                                                                      \
        return in.lane() == uint(__builtin_ctz(in.mask()));                                                            \
    }                                                                                                                  \
    __EMU_OWN inline bool prefix##_is_helper_thread() { return false; }

__EMU_COLLECTIVES(simd, 32)
__EMU_COLLECTIVES(quad, 4)
#undef __EMU_COLLECTIVES
#undef __EMU_MOVE
#undef __EMU_REDUCE
#undef __EMU_PREFIX
#undef __EMU_FILL

}  // namespace metal
