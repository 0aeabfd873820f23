// `metal_simdgroup_matrix`: an 8x8 matrix spread over the 32 lanes of a simdgroup, two elements each.
//
// Metal does not say which lane holds what; public kernels that use `thread_elements()` rely on the mapping below.
// Products are summed in double and rounded once to the type of the result.
#pragma once

#include "collectives.h"

namespace metal {

template <class T, int columns, int rows = columns> struct simdgroup_matrix;

}  // namespace metal

namespace __emu {

template <class D, class A, class B>
__EMU_OWN void multiply(metal::simdgroup_matrix<D, 8, 8> &d, const metal::simdgroup_matrix<A, 8, 8> &a,
                        const metal::simdgroup_matrix<B, 8, 8> &b, double first, double second, place at);

// The row of a lane's two elements, and the column of the first one.
__EMU_FN uint row_of(uint lane) { return (lane / 4u & 4u) + (lane / 2u) % 4u; }
__EMU_FN uint column_of(uint lane) { return (lane / 4u & 2u) * 2u + (lane % 2u) * 2u; }
__EMU_FN uint lane_of(uint row, uint column) {
    return (row / 4u) * 16u + (column / 4u) * 8u + (row % 4u) * 2u + (column % 4u) / 2u;
}
__EMU_FN uint own_lane() { return __emu_current->index % 32u; }

}  // namespace __emu

namespace metal {

template <class T, int columns, int rows> struct simdgroup_matrix {
    static_assert(__emu::floating<T>, "the elements of a simdgroup_matrix are of type half, bfloat or float");
    static_assert(columns == 8 && rows == 8, "a simdgroup_matrix has 8 columns and 8 rows");
    typedef vec<T, 2> storage_type;
    storage_type __emu_elements;

    simdgroup_matrix() = default;
    // The scalar is the diagonal.
    template <class U>
        requires(__emu::scalar<U>)
    __EMU_MEMBER explicit simdgroup_matrix(U diagonal) {
        uint lane = __emu::own_lane(), row = __emu::row_of(lane), column = __emu::column_of(lane);
        T d = __emu::to<T>(diagonal);
        __emu_elements = storage_type(row == column ? d : T(0), row == column + 1u ? d : T(0));
    }
    // An operator's operand knows where it stands, as a function's default arguments do.
    struct __emu_operand {
        const simdgroup_matrix &matrix;
        __emu::place at;
        __EMU_MEMBER __emu_operand(const simdgroup_matrix &m, __EMU_HERE) : matrix(m), at{__emu_line, __emu_column} {}
    };
    __EMU_OWN friend simdgroup_matrix operator*(const simdgroup_matrix &a, const __emu_operand &b) {
        simdgroup_matrix d;
        __emu::multiply(d, a, b.matrix, 0.0, 0.0, b.at);
        return d;
    }
    __EMU_MEMBER storage_type &thread_elements() { return __emu_elements; }
    __EMU_MEMBER const storage_type &thread_elements() const { return __emu_elements; }
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int columns, int rows = columns, class U>
__EMU_FN simdgroup_matrix<T, columns, rows> make_filled_simdgroup_matrix(U value) {
    simdgroup_matrix<T, columns, rows> m;
    m.__emu_elements = vec<T, 2>(__emu::to<T>(value));
    return m;
}

}  // namespace metal

namespace __emu {

// Where the own two elements of a matrix at `origin` (x = column, y = row) lie in memory; transposed, rows and columns
// change places.
struct placed {
    long first, second;
    __EMU_MEMBER placed(ulong elements_per_row, ulong2 origin, bool transposed) {
        uint row = row_of(own_lane()), column = column_of(own_lane());
        origin += transposed ? ulong2(row, column) : ulong2(column, row);
        first = long(origin.y * elements_per_row + origin.x);
        second = first + (transposed ? long(elements_per_row) : 1);
    }
};

// D = A B + C: each lane gives its elements of A and B and computes its own two of D.
template <class D, class A, class B>
__EMU_OWN void multiply(metal::simdgroup_matrix<D, 8, 8> &d, const metal::simdgroup_matrix<A, 8, 8> &a,
                        const metal::simdgroup_matrix<B, 8, 8> &b, double first, double second, place at) {
    struct both { vec<A, 2> a; vec<B, 2> b; };
    lanes<32> in(both{a.__emu_elements, b.__emu_elements}, at);
    if (in.mask() != ~0u) {
        __emu_fault(fault_lane, __builtin_ctz(~in.mask()), 32, "simdgroup_matrix", at.line, at.column);
        return;
    }
    uint row = row_of(in.lane()), column = column_of(in.lane());
    for (uint k = 0; k < 8; ++k) {
        vec<A, 2> pair = in.template value<both>(lane_of(row, k)).a;
        vec<B, 2> factors = in.template value<both>(lane_of(k, column)).b;
        double x = double(k % 2 ? pair.y : pair.x);
        first += x * double(factors.x);
        second += x * double(factors.y);
    }
    d.__emu_elements = vec<D, 2>(to<D>(first), to<D>(second));
}

}  // namespace __emu

namespace metal {

template <class T>
__EMU_FN void simdgroup_load(simdgroup_matrix<T, 8, 8> &d, const T *src, ulong elements_per_row = 8,
                             ulong2 matrix_origin = 0, bool transpose_matrix = false) {
    __emu::placed at(elements_per_row, matrix_origin, transpose_matrix);
    d.__emu_elements.x = src[at.first];
    d.__emu_elements.y = src[at.second];
}
template <class T>
__EMU_FN void simdgroup_store(const simdgroup_matrix<T, 8, 8> &a, T *dst, ulong elements_per_row = 8,
                              ulong2 matrix_origin = 0, bool transpose_matrix = false) {
    __emu::placed at(elements_per_row, matrix_origin, transpose_matrix);
    dst[at.first] = a.__emu_elements.x;
    dst[at.second] = a.__emu_elements.y;
}
template <class D, class A, class B>
__EMU_OWN inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                                         const simdgroup_matrix<B, 8, 8> &b, __EMU_HERE) {
    __emu::multiply(d, a, b, 0.0, 0.0, {__emu_line, __emu_column});
}
template <class D, class A, class B, class C>
__EMU_OWN inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8> &d, const simdgroup_matrix<A, 8, 8> &a,
                                                    const simdgroup_matrix<B, 8, 8> &b,
                                                    const simdgroup_matrix<C, 8, 8> &c, __EMU_HERE) {
    vec<C, 2> sum = c.__emu_elements;
    __emu::multiply(d, a, b, double(sum.x), double(sum.y), {__emu_line, __emu_column});
}

}  // namespace metal
