// The names of vectors, global, in `metal` and in `simd`; and those that <simd/simd.h> shares with C++ for the host.
#pragma once

#include "vectors.h"

#define __EMU_EACH_SCALAR(M)                                                                                           \
    M(bool) M(char) M(uchar) M(short) M(ushort) M(int) M(uint) M(long) M(ulong) M(half) M(bfloat) M(float)

#define __EMU_NAMES(T)                                                                                                 \
    typedef __emu::vec<T, 2> T##2;                                                                                     \
    typedef __emu::vec<T, 3> T##3;                                                                                     \
    typedef __emu::vec<T, 4> T##4;                                                                                     \
    typedef __emu::types::packed<T##2> packed_##T##2;                                                                  \
    typedef __emu::types::packed<T##3> packed_##T##3;                                                                  \
    typedef __emu::types::packed<T##4> packed_##T##4;                                                                  \
    typedef T##2 vector_##T##2, simd_##T##2;                                                                           \
    typedef T##3 vector_##T##3, simd_##T##3;                                                                           \
    typedef T##4 vector_##T##4, simd_##T##4;
__EMU_EACH_SCALAR(__EMU_NAMES)
#undef __EMU_NAMES

#define __EMU_NAMES(T)                                                                                                 \
    using ::T##2;                                                                                                      \
    using ::T##3;                                                                                                      \
    using ::T##4;                                                                                                      \
    using ::packed_##T##2;                                                                                             \
    using ::packed_##T##3;                                                                                             \
    using ::packed_##T##4;
namespace simd {
__EMU_EACH_SCALAR(__EMU_NAMES)
}
namespace metal {

template <class T, int n> using vec = __emu::vec<T, n>;
template <class T, int n> using packed_vec = __emu::types::packed<__emu::vec<T, n>>;

__EMU_EACH_SCALAR(__EMU_NAMES)
#undef __EMU_NAMES

using ::bfloat;
using ::half;
using ::int16_t;
using ::int32_t;
using ::int64_t;
using ::int8_t;
using ::ptrdiff_t;
using ::size_t;
using ::uchar;
using ::uint;
using ::uint16_t;
using ::uint32_t;
using ::uint64_t;
using ::uint8_t;
using ::ulong;
using ::ushort;

}  // namespace metal
