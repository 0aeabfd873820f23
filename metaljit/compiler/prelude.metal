// Functions that the rows of the operation table are printed as. Valid for Metal 2.3 with fast math forced on: what is
// NaN, infinite, zero or negative is asked of the bits, and error terms are formed by fma alone, which is not
// reassociated. The same text is compiled as C++, where loops over it are vectorised: no early return, no table.
// A printed kernel gets the definitions it uses; a blank line separates two of them.

// The unsigned type in which a sum or product of T wraps.
template <typename T> struct mj_word { typedef uint type; };
template <> struct mj_word<long> { typedef ulong type; };
template <> struct mj_word<ulong> { typedef ulong type; };

template <typename T> inline T mj_add(T a, T b) {
    typedef typename mj_word<T>::type W;
    return T(W(a) + W(b));
}

template <typename T> inline T mj_sub(T a, T b) {
    typedef typename mj_word<T>::type W;
    return T(W(a) - W(b));
}

template <typename T> inline T mj_mul(T a, T b) {
    typedef typename mj_word<T>::type W;
    return T(W(a) * W(b));
}

template <typename T> inline T mj_neg(T a) {
    typedef typename mj_word<T>::type W;
    return T(W(0) - W(a));
}

template <typename T> inline T mj_largest() {
    typedef typename mj_word<T>::type W;
    return T(-1) < T(0) ? T((W(1) << (8u * uint(sizeof(T)) - 1u)) - W(1)) : T(-1);
}

template <typename T> inline T mj_smallest() {
    typedef typename mj_word<T>::type W;
    return T(-1) < T(0) ? T(W(1) << (8u * uint(sizeof(T)) - 1u)) : T(0);
}

// The absolute value, which for the least integer fits only the unsigned type.
template <typename T> inline typename mj_word<T>::type mj_magnitude(T a) {
    typedef typename mj_word<T>::type W;
    return a < T(0) ? W(0) - W(a) : W(a);
}

template <typename T> inline T mj_abs(T a) { return T(mj_magnitude(a)); }

// Division rounded down; x // 0 is 0, and the least integer // -1 wraps.
template <typename T> inline T mj_floor_div(T a, T b) {
    bool is_signed = T(-1) < T(0);
    bool wraps = is_signed & (b == T(-1));
    T divisor = (b == T(0)) | wraps ? T(1) : b;
    T q = T(a / divisor);
    T r = T(a - q * divisor);
    q = (r != T(0)) & ((r < T(0)) != (divisor < T(0))) ? T(q - T(1)) : q;
    return b == T(0) ? T(0) : (wraps ? mj_neg(a) : q);
}

// What mj_floor_div leaves, with the sign of b; x % 0 is 0. A division and a product, not a chain of / and %.
template <typename T> inline T mj_mod(T a, T b) {
    bool is_signed = T(-1) < T(0);
    bool none = (b == T(0)) | (is_signed & (b == T(-1)));
    T divisor = none ? T(1) : b;
    T r = T(a - T(a / divisor) * divisor);
    r = (r != T(0)) & ((r < T(0)) != (divisor < T(0))) ? T(r + divisor) : r;
    return none ? T(0) : r;
}

// The remainder of the quotient rounded toward zero, with the sign of a; 0 for b = 0.
template <typename T> inline T mj_rem(T a, T b) {
    bool is_signed = T(-1) < T(0);
    bool none = (b == T(0)) | (is_signed & (b == T(-1)));
    T divisor = none ? T(1) : b;
    return none ? T(0) : T(a - T(a / divisor) * divisor);
}

// By squaring, wrapping; a negative exponent gives the integer part of the inverse.
template <typename T> inline T mj_ipow(T a, T n) {
    bool inverse = n < T(0);
    T one = (n & T(1)) != T(0) ? a : T(1);
    T result = T(1);
    T power = a;
    for (T k = inverse ? T(0) : n; k != T(0); k = T(k >> 1)) {
        result = (k & T(1)) != T(0) ? mj_mul(result, power) : result;
        power = mj_mul(power, power);
    }
    return inverse ? ((a == T(1)) | (mj_neg(a) == T(1)) ? one : T(0)) : result;
}

template <typename T> inline T mj_gcd(T a, T b) {
    typedef typename mj_word<T>::type W;
    W x = mj_magnitude(a);
    W y = mj_magnitude(b);
    while (y != W(0)) {
        W r = x - (x / y) * y;
        x = y;
        y = r;
    }
    return T(x);
}

template <typename T> inline T mj_lcm(T a, T b) {
    typedef typename mj_word<T>::type W;
    W divisor = mj_gcd(mj_magnitude(a), mj_magnitude(b));
    return T(mj_magnitude(a) / (divisor == W(0) ? W(1) : divisor) * mj_magnitude(b));
}

template <typename T> inline T mj_sign(T a) { return T(T(a > T(0)) - T(a < T(0))); }
inline float mj_sign(float x) {
    uint u = as_type<uint>(x);
    float unit = as_type<float>((u & 0x80000000u) | 0x3f800000u);
    float zero_or_unit = (u & 0x7fffffffu) == 0u ? 0.0f : unit;
    return (u & 0x7fffffffu) > 0x7f800000u ? x : zero_or_unit;
}

template <typename T> inline T mj_square(T a) { return mj_mul(a, a); }
inline float mj_square(float x) { return x * x; }

// A count of the width or more, or a negative one, moves every bit out.
template <typename T, typename N> inline T mj_shl(T a, N n) {
    typedef typename mj_word<T>::type W;
    typedef typename mj_word<N>::type C;
    W moved = W(a) << (uint(n) & (8u * uint(sizeof(W)) - 1u));
    return C(n) < C(8u * uint(sizeof(T))) ? T(moved) : T(0);
}

template <typename T, typename N> inline T mj_shr(T a, N n) {
    typedef typename mj_word<N>::type C;
    T moved = T(a >> (uint(n) & (8u * uint(sizeof(T)) - 1u)));
    T sign = a < T(0) ? T(-1) : T(0);
    return C(n) < C(8u * uint(sizeof(T))) ? moved : sign;
}

template <typename T, typename N> inline T mj_rotate(T a, N n) {
    return metal::rotate(a, T(uint(n) & (8u * uint(sizeof(T)) - 1u)));
}

template <typename T> inline T mj_bitwise_count(T a) { return metal::popcount(mj_abs(a)); }

// ---- NaN, infinity, sign ----

// By the bits: a compiler that is told that there are no NaN would call the comparison false.
#ifdef METALJIT_CPU
inline bool mj_isnan(float x) { return x != x; }
#else
inline bool mj_isnan(float x) { return (as_type<uint>(x) & 0x7fffffffu) > 0x7f800000u; }
#endif

inline bool mj_isinf(float x) { return (as_type<uint>(x) & 0x7fffffffu) == 0x7f800000u; }

inline bool mj_isfinite(float x) { return (as_type<uint>(x) & 0x7fffffffu) < 0x7f800000u; }

inline bool mj_isposinf(float x) { return as_type<uint>(x) == 0x7f800000u; }

inline bool mj_isneginf(float x) { return as_type<uint>(x) == 0xff800000u; }

inline bool mj_signbit(float x) { return (as_type<uint>(x) >> 31) != 0u; }

inline float mj_nan() { return as_type<float>(0x7fc00000u); }

inline float mj_inf() { return as_type<float>(0x7f800000u); }

// ---- casts ----

inline bool mj_to_bool(float x) { return (as_type<uint>(x) & 0x7fffffffu) != 0u; }

// Toward zero; the ends of T beyond them, 0 for NaN.
template <typename T> inline T mj_to_int(float x) {
    bool is_signed = T(-1) < T(0);
    uint magnitude = as_type<uint>(x) & 0x7fffffffu;
    bool negative = mj_signbit(x);
    uint exponent = 127u + 8u * uint(sizeof(T)) - (is_signed ? 1u : 0u);
    bool inside = (magnitude < (exponent << 23)) & (is_signed | !negative);
    T end = negative ? mj_smallest<T>() : mj_largest<T>();
    T value = inside ? T(inside ? x : 0.0f) : end;
    return magnitude > 0x7f800000u ? T(0) : value;
}

// The nearest integer of type T.
template <typename T, typename S> inline T mj_saturate(S x) {
    bool negative = x < S(0);
    bool above = !negative & (ulong(x) > ulong(mj_largest<T>()));
    bool below = negative & (long(x) < long(mj_smallest<T>()) | !(T(-1) < T(0)));
    return above ? mj_largest<T>() : (below ? mj_smallest<T>() : T(x));
}

inline float mj_bf16_value(ushort bits) { return as_type<float>(uint(bits) << 16); }

// To nearest, ties to even; a NaN stays one.
inline ushort mj_bf16_bits(float x) {
    uint u = as_type<uint>(x);
    uint rounded = u + 0x7fffu + ((u >> 16) & 1u);
    return ushort((mj_isnan(x) ? u | 0x400000u : rounded) >> 16);
}

inline float mj_round_bf16(float x) { return mj_bf16_value(mj_bf16_bits(x)); }

// ---- choosing ----

inline float mj_minimum(float a, float b) {
    float least = metal::precise::min(a, b);
    return mj_isnan(a) ? a : (mj_isnan(b) ? b : least);
}

inline float mj_maximum(float a, float b) {
    float greatest = metal::precise::max(a, b);
    return mj_isnan(a) ? a : (mj_isnan(b) ? b : greatest);
}

inline float mj_fmin(float a, float b) {
    float least = metal::precise::min(a, b);
    return mj_isnan(a) ? b : (mj_isnan(b) ? a : least);
}

inline float mj_fmax(float a, float b) {
    float greatest = metal::precise::max(a, b);
    return mj_isnan(a) ? b : (mj_isnan(b) ? a : greatest);
}

inline float mj_clip(float x, float low, float high) { return mj_minimum(mj_maximum(x, low), high); }
inline bool mj_clip(bool x, bool low, bool high) { return (x | low) & high; }

inline float mj_heaviside(float x, float at_zero) {
    uint magnitude = as_type<uint>(x) & 0x7fffffffu;
    float side = mj_signbit(x) ? 0.0f : 1.0f;
    return magnitude > 0x7f800000u ? x : (magnitude == 0u ? at_zero : side);
}

inline float mj_step(float edge, float x) { return x < edge ? 0.0f : 1.0f; }

inline float mj_smoothstep(float low, float high, float x) {
    float t = mj_clip((x - low) / (high - low), 0.0f, 1.0f);
    return t * t * (3.0f - 2.0f * t);
}

inline float mj_mix(float x, float y, float a) { return x + (y - x) * a; }

inline float mj_nan_to_num(float x, float largest) {
    float end = mj_signbit(x) ? -largest : largest;
    return mj_isnan(x) ? 0.0f : (mj_isinf(x) ? end : x);
}

// ---- division of floats ----

inline float mj_reciprocal(float x) { return 1.0f / x; }

// The exact remainder with the sign of a. NaN for an infinite a or b = 0; a itself for an infinite b.
inline float mj_fmod(float a, float b) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    uint n = as_type<uint>(b) & 0x7fffffffu;
    bool none = (m >= 0x7f800000u) | (n == 0u) | (n > 0x7f800000u);
    bool all = n == 0x7f800000u;
    float r = metal::precise::fmod(none ? 0.0f : a, none | all ? 1.0f : b);
    return none ? mj_nan() : (all ? a : r);
}

inline float mj_float_mod(float a, float b) {
    float r = mj_fmod(a, b);
    bool zero = (as_type<uint>(r) & 0x7fffffffu) == 0u;
    bool other = mj_signbit(r) != mj_signbit(b);
    float moved = mj_isinf(b) ? b : r + b;
    float signed_zero = as_type<float>(as_type<uint>(b) & 0x80000000u);
    return mj_isnan(r) ? r : (zero ? signed_zero : (other ? moved : r));
}

inline float mj_float_floor_div(float a, float b) {
    float r = mj_fmod(a, b);
    bool exact = (as_type<uint>(r) & 0x7fffffffu) == 0u;
    bool negative = mj_signbit(a) != mj_signbit(b);
    bool other = mj_signbit(r) != mj_signbit(b);
    float q = mj_isinf(b) ? 0.0f : (a - r) / b;
    q = !exact & other ? q - 1.0f : q;
    float whole = metal::floor(q);
    whole = q - whole > 0.5f ? whole + 1.0f : whole;
    uint sign = negative ? 0x80000000u : 0u;
    whole = (as_type<uint>(q) & 0x7fffffffu) == 0u ? as_type<float>(sign) : whole;
    bool by_zero = ((as_type<uint>(b) & 0x7fffffffu) == 0u) & ((as_type<uint>(a) & 0x7fffffffu) != 0u) & !mj_isnan(a);
    return by_zero ? as_type<float>(sign | 0x7f800000u) : (mj_isnan(r) ? r : whole);
}

inline float mj_fract(float x, float below_one) {
    float part = x - metal::floor(x);
    return part > below_one ? below_one : part;
}

inline float mj_ldexp(float x, int k) { return metal::ldexp(x, metal::clamp(k, -400, 400)); }

// The number one unit after a toward b, of bits that are ordered as sign and magnitude.
inline uint mj_next_bits(uint a, uint b, uint unit) {
    int from = int(a & 0x7fffffffu);
    int to = int(b & 0x7fffffffu);
    from = (a >> 31) != 0u ? -from : from;
    to = (b >> 31) != 0u ? -to : to;
    int next = from < to ? from + int(unit) : from - int(unit);
    uint sign = next < 0 ? 0x80000000u : (next > 0 ? 0u : a & 0x80000000u);
    uint moved = sign | uint(next < 0 ? -next : next);
    return from == to ? b : moved;
}

inline float mj_nextafter(float a, float b) {
    float next = as_type<float>(mj_next_bits(as_type<uint>(a), as_type<uint>(b), 1u));
    return mj_isnan(a) ? a : (mj_isnan(b) ? b : next);
}
inline half mj_nextafter(half a, half b) {
    uint u = uint(as_type<ushort>(a)) << 16;
    uint v = uint(as_type<ushort>(b)) << 16;
    half next = as_type<half>(ushort(mj_next_bits(u, v, 0x10000u) >> 16));
    return (u & 0x7fffffffu) > 0x7c000000u ? a : ((v & 0x7fffffffu) > 0x7c000000u ? b : next);
}

inline float mj_nextafter_bf16(float a, float b) {
    float next = as_type<float>(mj_next_bits(as_type<uint>(a), as_type<uint>(b), 0x10000u));
    return mj_isnan(a) ? a : (mj_isnan(b) ? b : next);
}

// ---- powers and logarithms ----

// C's pow. Whole numbers to a small whole power are exact; Metal's own pow only promises 16 units in the last place.
inline float mj_pow(float a, float b) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    uint n = as_type<uint>(b) & 0x7fffffffu;
    bool one = (n == 0u) | (as_type<uint>(a) == 0x3f800000u) | ((m == 0x3f800000u) & (n == 0x7f800000u));
    bool nan = (m > 0x7f800000u) | (n > 0x7f800000u);
    bool edge = (m == 0u) | (m == 0x7f800000u) | (n == 0x7f800000u);
    float x = nan | edge ? 1.0f : as_type<float>(m);
    float y = nan | edge ? 1.0f : b;
    bool whole = (n >= 0x4b000000u) | (metal::trunc(y) == y);
    bool odd = !edge & whole & (n < 0x4b800000u) & (metal::trunc(0.5f * y) != 0.5f * y);
    bool edge_odd = (n < 0x4b800000u) & (metal::trunc(b) == b) & (metal::trunc(0.5f * b) != 0.5f * b);
    float size = metal::precise::pow(x, y);
    bool small = whole & (n < 0x42000000u) & ((metal::trunc(x) == x) | (!mj_signbit(y) & (n <= 0x40400000u)));
    int k = int(small ? metal::fabs(y) : 0.0f);
    float product = 1.0f;
    float power = x;
    product = (k & 1) != 0 ? product * power : product;
    power = power * power;
    product = (k & 2) != 0 ? product * power : product;
    power = power * power;
    product = (k & 4) != 0 ? product * power : product;
    power = power * power;
    product = (k & 8) != 0 ? product * power : product;
    power = power * power;
    product = (k & 16) != 0 ? product * power : product;
    bool inverse = mj_signbit(y);
    size = small & !(inverse & mj_isinf(product)) ? (inverse ? 1.0f / product : product) : size;
    bool grows = (m > 0x3f800000u) != mj_signbit(b);
    size = edge ? (grows ? mj_inf() : 0.0f) : size;
    bool minus = mj_signbit(a) & (edge ? edge_odd : odd);
    float result = as_type<float>(as_type<uint>(size) | (minus ? 0x80000000u : 0u));
    bool undefined = nan | (mj_signbit(a) & !edge & !whole);
    return one ? 1.0f : (undefined ? mj_nan() : result);
}

// Scaled where squares would overflow or vanish.
inline float mj_hypot(float a, float b) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    uint n = as_type<uint>(b) & 0x7fffffffu;
    uint most = metal::max(m, n);
    bool large = most > 0x5d800000u;
    bool tiny = most < 0x21800000u;
    float scale = large ? 0x1p-80f : (tiny ? 0x1p100f : 1.0f);
    float back = large ? 0x1p80f : (tiny ? 0x1p-100f : 1.0f);
    float x = as_type<float>(most) * scale;
    float y = as_type<float>(metal::min(m, n)) * scale;
    float length = metal::precise::sqrt(metal::fma(x, x, y * y)) * back;
    bool infinite = (m == 0x7f800000u) | (n == 0x7f800000u);
    return infinite ? mj_inf() : (most > 0x7f800000u ? mj_nan() : length);
}

// A third of the exponent by integers, two steps of Halley, and a last correction of the exact residual.
inline float mj_cbrt(float a) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    bool large = m > 0x71800000u;
    bool tiny = m < 0x0d800000u;
    float x = as_type<float>(m) * (large ? 0x1p-24f : (tiny ? 0x1p48f : 1.0f));
    float back = large ? 0x1p8f : (tiny ? 0x1p-16f : 1.0f);
    float t = as_type<float>(as_type<uint>(x) / 3u + 0x2a5119f2u);
    float c = t * t * t;
    t = t * ((c + x + x) / (c + c + x));
    c = t * t * t;
    t = t * ((c + x + x) / (c + c + x));
    float square = t * t;
    float rest = metal::fma(t, t, -square);
    float residual = metal::fma(-rest, t, metal::fma(-square, t, x));
    t = metal::fma(residual, 1.0f / (3.0f * square), t) * back;
    float root = as_type<float>(as_type<uint>(t) | (as_type<uint>(a) & 0x80000000u));
    return (m == 0u) | (m >= 0x7f800000u) ? a : root;
}

// exp(x) - 1 = 2^k (exp(r) - 1) + (2^k - 1) for x = k log 2 + r; 2^(k - 1) is used, as 2^128 is no float.
inline float mj_expm1(float x) {
    float c = metal::precise::max(metal::precise::min(x, 89.0f), -20.0f);
    float k = metal::rint(c * 1.442695f);
    float r = metal::fma(k, -0.6931472f, c);
    r = metal::fma(k, 1.9046543e-9f, r);
    float p = metal::fma(r, 0.00019972197f, 0.0013930924f);
    p = metal::fma(r, p, 0.008333177f);
    p = metal::fma(r, p, 0.041666508f);
    p = metal::fma(r, p, 0.16666667f);
    p = metal::fma(r, p, 0.5f);
    p = metal::fma(r * r, p, r);
    float half_power = as_type<float>(uint(int(k) + 126) << 23);
    float result = 2.0f * metal::fma(half_power, p, half_power - 0.5f);
    bool tiny = (as_type<uint>(x) & 0x7fffffffu) < 0x33000000u;
    return tiny | mj_isnan(x) ? x : result;
}

// 1 + x = 2^k (1 + f), f computed from x itself; then log(1 + f) = f - f^2 / 2 + f^3 q(f).
inline float mj_log1p(float x) {
    uint m = as_type<uint>(x) & 0x7fffffffu;
    bool inside = (m < 0x7f800000u) & !(x <= -1.0f);
    float y = inside ? x : 0.0f;
    int k = int((as_type<uint>(1.0f + y) + (0x3f800000u - 0x3f3504f3u)) >> 23) - 127;
    float scale = as_type<float>(uint(129 - k) << 23);
    float f = metal::fma(0.25f * y, scale, 0.25f * scale - 1.0f);
    float q = metal::fma(f, 0.06937711f, -0.11809924f);
    q = metal::fma(f, q, 0.118732795f);
    q = metal::fma(f, q, -0.12381136f);
    q = metal::fma(f, q, 0.14218338f);
    q = metal::fma(f, q, -0.1666942f);
    q = metal::fma(f, q, 0.20002238f);
    q = metal::fma(f, q, -0.24999984f);
    q = metal::fma(f, q, 0.3333331f);
    q = metal::fma(f, q, -0.5f);
    float rest = metal::fma(f * f, q, float(k) * -1.9046543e-9f);
    float result = metal::fma(float(k), 0.6931472f, f + rest);
    result = m < 0x33000000u ? x : result;
    float outside = mj_isposinf(x) | mj_isnan(x) ? x : (as_type<uint>(x) == 0xbf800000u ? -mj_inf() : mj_nan());
    return inside ? result : outside;
}

inline float mj_logaddexp(float a, float b) {
    float most = mj_maximum(a, b);
    float apart = mj_minimum(metal::fabs(a - b), 200.0f);
    return mj_isfinite(most) ? most + mj_log1p(metal::precise::exp(-apart)) : most;
}

inline float mj_logaddexp2(float a, float b) {
    float most = mj_maximum(a, b);
    float apart = mj_minimum(metal::fabs(a - b), 200.0f);
    return mj_isfinite(most) ? most + 1.442695f * mj_log1p(metal::precise::exp2(-apart)) : most;
}

// Metal's fast tanh overflows to NaN beyond 44; from 10 on the result is 1 anyway.
inline float mj_fast_tanh(float x) { return metal::fast::tanh(metal::min(metal::max(x, -10.0f), 10.0f)); }

inline float mj_sinc(float x) {
    bool zero = (as_type<uint>(x) & 0x7fffffffu) == 0u;
    float y = zero ? 1.0f : x;
    return zero ? 1.0f : metal::precise::sinpi(y) / (3.1415927f * y);
}

// ---- special functions ----

// erfc(x) = exp(-x^2) g(t) / (1 + 2 x) for x >= 0, t = (x - 2) / (x + 2); the exponential is corrected by what x^2
// lost when it was rounded.
inline float mj_erfc(float a) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    float x = m < 0x41300000u ? as_type<float>(m) : 11.0f;
    float t = (x - 2.0f) / (x + 2.0f);
    float g = metal::fma(t, 2.621854e-5f, -0.0003703483f);
    g = metal::fma(t, g, -0.0012606771f);
    g = metal::fma(t, g, 0.0012783785f);
    g = metal::fma(t, g, 0.008646968f);
    g = metal::fma(t, g, -0.008045817f);
    g = metal::fma(t, g, -0.05420845f);
    g = metal::fma(t, g, 0.16405322f);
    g = metal::fma(t, g, -0.16603088f);
    g = metal::fma(t, g, -0.09276389f);
    g = metal::fma(t, g, 1.2769784f);
    float z = x * x;
    float e = metal::precise::exp(-z);
    e = metal::fma(-e, metal::fma(x, x, -z), e);
    float tail = e * (g / (1.0f + 2.0f * x));
    return mj_isnan(a) ? a : (mj_signbit(a) ? 2.0f - tail : tail);
}

// Odd polynomial below 1, 1 - exp(polynomial) above; from 4 on the result is 1.
inline float mj_erf(float a) {
    float x = as_type<float>(as_type<uint>(a) & 0x7fffffffu);
    float z = a * a;
    float p = metal::fma(z, 7.9241305e-5f, -0.0008031836f);
    p = metal::fma(z, p, 0.0051908446f);
    p = metal::fma(z, p, -0.026855174f);
    p = metal::fma(z, p, 0.11283619f);
    p = metal::fma(z, p, -0.3761263f);
    p = metal::fma(z, p, 0.12837917f);
    float inner = metal::fma(a, p, a);
    float y = mj_fmin(x, 4.0f);
    float q = metal::fma(y, -2.1684384e-5f, 0.0004413091f);
    q = metal::fma(y, q, -0.0042044404f);
    q = metal::fma(y, q, 0.025207976f);
    q = metal::fma(y, q, -0.10841822f);
    q = metal::fma(y, q, -0.63322014f);
    q = metal::fma(y, q, -1.1295784f);
    q = metal::fma(y, q, 0.00018803666f);
    float outer = 1.0f - metal::precise::exp(q);
    outer = mj_signbit(a) ? -outer : outer;
    return mj_isnan(a) ? a : (as_type<uint>(x) < 0x3f800000u ? inner : outer);
}

// x p(w), w = -log(1 - x^2): one polynomial in w below 5, one in its root above.
inline float mj_erfinv(float x) {
    uint m = as_type<uint>(x) & 0x7fffffffu;
    bool inside = m < 0x3f800000u;
    float y = inside ? x : 0.0f;
    float w = -metal::precise::log(metal::fma(-y, y, 1.0f));
    float c = w - 2.5f;
    float p = metal::fma(c, -8.687482e-9f, 2.4263933e-8f);
    p = metal::fma(c, p, 4.6465684e-7f);
    p = metal::fma(c, p, -3.4770667e-6f);
    p = metal::fma(c, p, -4.9557834e-6f);
    p = metal::fma(c, p, 0.00021841096f);
    p = metal::fma(c, p, -0.0012527566f);
    p = metal::fma(c, p, -0.0041775005f);
    p = metal::fma(c, p, 0.2466403f);
    p = metal::fma(c, p, 1.5014094f);
    float s = metal::precise::sqrt(w) - 3.0f;
    float q = metal::fma(s, 0.00011046356f, -0.0003013441f);
    q = metal::fma(s, q, -5.2321007e-5f);
    q = metal::fma(s, q, 0.001474714f);
    q = metal::fma(s, q, -0.003597872f);
    q = metal::fma(s, q, 0.005691192f);
    q = metal::fma(s, q, -0.007637576f);
    q = metal::fma(s, q, 0.009444702f);
    q = metal::fma(s, q, 1.001675f);
    q = metal::fma(s, q, 2.8329768f);
    float end = as_type<float>((as_type<uint>(x) & 0x80000000u) | (m == 0x3f800000u ? 0x7f800000u : 0x7fc00000u));
    return inside ? y * (w < 5.0f ? p : q) : end;
}

// log gamma(1 + y) / y for y in [-1/4, 3/4].
inline float mj_lgamma_near_1(float y) {
    float q = metal::fma(y, -0.012553435f, 0.050592735f);
    q = metal::fma(y, q, -0.09656487f);
    q = metal::fma(y, q, 0.12701552f);
    q = metal::fma(y, q, -0.14625765f);
    q = metal::fma(y, q, 0.16991808f);
    q = metal::fma(y, q, -0.20732227f);
    q = metal::fma(y, q, 0.27056262f);
    q = metal::fma(y, q, -0.40068567f);
    q = metal::fma(y, q, 0.8224672f);
    return metal::fma(y, q, -0.5772157f);
}

// log gamma(2 + y) / y for y in [-1/2, 1].
inline float mj_lgamma_near_2(float y) {
    float q = metal::fma(y, 4.7382684e-5f, -0.00021404056f);
    q = metal::fma(y, q, 0.0005347562f);
    q = metal::fma(y, q, -0.001204403f);
    q = metal::fma(y, q, 0.0028873577f);
    q = metal::fma(y, q, -0.007383889f);
    q = metal::fma(y, q, 0.020580942f);
    q = metal::fma(y, q, -0.06735228f);
    q = metal::fma(y, q, 0.32246703f);
    return metal::fma(y, q, 0.42278433f);
}

// Polynomials about the zeros at 1 and 2, Stirling's series from 3 on, the reflection formula below 0.
inline float mj_lgamma(float a) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    bool finite = m < 0x7f800000u;
    float z = finite & (m != 0u) ? as_type<float>(m) : 1.0f;
    float log_z = metal::precise::log(z);
    bool least = z < 0.75f;
    float y = least ? z : z - 1.0f;
    float first = y * mj_lgamma_near_1(y);
    first = least ? first - log_z : first;
    float second = (z - 2.0f) * mj_lgamma_near_2(z - 2.0f);
    float i = 1.0f / z;
    float j = i * i;
    float r = metal::fma(j, -0.00047710043f, 0.00078906235f);
    r = metal::fma(j, r, -0.002777822f);
    r = metal::fma(j, r, 0.083333336f);
    float series = metal::fma(z - 0.5f, log_z - 1.0f, metal::fma(i, r, 0.4189385f));
    float positive = z < 1.5f ? first : (z < 3.0f ? second : series);
    float above = least ? first + log_z : positive + log_z;
    float sine = metal::fabs(metal::precise::sinpi(z));
    bool pole = mj_signbit(a) & (metal::floor(z) == z);
    float negative = 1.1447299f - metal::precise::log(pole ? 1.0f : sine) - above;
    negative = z < 1e-9f ? -log_z : negative;  // the sine of what is nearly denormal has few bits
    float result = mj_signbit(a) ? negative : positive;
    result = (m == 0u) | (m == 0x7f800000u) | pole ? mj_inf() : result;
    return m > 0x7f800000u ? a : result;
}

// A polynomial in [1, 2] carried up to 10 by x gamma(x) = gamma(x + 1), Stirling's formula from there on, and the
// reflection formula below 0.
inline float mj_gamma(float a) {
    uint m = as_type<uint>(a) & 0x7fffffffu;
    bool finite = m < 0x7f800000u;
    float z = finite & (m != 0u) ? as_type<float>(m) : 1.0f;
    float y = z < 1.0f ? z + 1.0f : (z < 10.0f ? z : 1.0f);
    float product = 1.0f;
    for (int i = 0; i < 8; i++) {
        bool above = y >= 2.0f;
        y = above ? y - 1.0f : y;
        product = above ? product * y : product;
    }
    float f = z < 1.0f ? z : y - 1.0f;
    float p = metal::fma(f, 0.007902723f, -0.058643427f);
    p = metal::fma(f, p, 0.20256399f);
    p = metal::fma(f, p, -0.43982965f);
    p = metal::fma(f, p, 0.6914665f);
    p = metal::fma(f, p, -0.8701178f);
    p = metal::fma(f, p, 0.9558644f);
    p = metal::fma(f, p, -0.97434855f);
    p = metal::fma(f, p, 0.98070097f);
    p = metal::fma(f, p, -0.90739614f);
    p = metal::fma(f, p, 0.98905253f);
    p = metal::fma(f, p, -0.5772156f);
    p = metal::fma(f, p, 1.0f) * product;
    float large = z < 10.0f ? 10.0f : (z > 44.0f ? 44.0f : z);
    float i = 1.0f / large;
    float s = metal::fma(i, -0.0027060274f, 0.0034733806f);
    s = metal::fma(i, s, 0.08333331f);
    s = metal::fma(i, s, 1.0f);
    float w = metal::precise::pow(large, 0.5f * large - 0.25f);
    s = (w * metal::precise::exp(-large)) * (2.5066283f * s);
    float positive = z < 1.0f ? p / z : (z < 10.0f ? p : s * w);
    float next = z < 1.0f ? p : (z < 10.0f ? p : s) * z;
    bool pole = metal::floor(z) == z;
    float sine = metal::precise::sinpi(z);
    float negative = -3.1415927f / ((pole ? 1.0f : sine) * next);
    // Last, since gamma(z + 1) may be infinite where this is denormal.
    negative = z < 10.0f ? negative : negative / w;
    float result = mj_signbit(a) ? (pole ? mj_nan() : negative) : (z > 35.05f ? mj_inf() : positive);
    float end = mj_signbit(a) & (m != 0u) ? mj_nan() : as_type<float>((as_type<uint>(a) & 0x80000000u) | 0x7f800000u);
    return m > 0x7f800000u ? a : (finite & (m != 0u) ? result : end);
}

// ---- borders: any index, any extent; 0 for an empty extent ----

// i of 0 and up, modulo n. Most indices are less than two periods away, and a division is slow on every device.
inline uint mj_cycle(uint i, uint n) {
    if (i < n) { return i; }
    if (i - n < n) { return i - n; }
    uint divisor = metal::max(n, 1u);
    return i - (i / divisor) * divisor;
}

inline int mj_edge(int i, int n) { return metal::max(metal::min(i, n - 1), 0); }

// Indices 2 1 | 0 1 2 | 1 0.
inline int mj_reflect(int i, int n) {
    if (uint(i) < uint(n)) { return i; }
    uint period = 2u * uint(metal::max(n, 1)) - 2u;
    uint k = mj_cycle(i < 0 ? 0u - uint(i) : uint(i), period);
    return int(metal::min(k, period - k));
}

// Indices 1 0 | 0 1 2 | 2 1.
inline int mj_symmetric(int i, int n) {
    if (uint(i) < uint(n)) { return i; }
    uint period = 2u * uint(n);
    uint k = mj_cycle(i < 0 ? ~uint(i) : uint(i), period);
    return n == 0 ? 0 : int(metal::min(k, period - 1u - k));
}

// Indices 1 2 | 0 1 2 | 0 1.
inline int mj_wrap(int i, int n) {
    if (uint(i) < uint(n)) { return i; }
    uint k = mj_cycle(i < 0 ? ~uint(i) : uint(i), uint(n));
    return i < 0 ? metal::max(n, 1) - 1 - int(k) : int(k);
}

// Whether an antiperiodic array is negated at i: an odd number of periods away.
inline bool mj_antiperiodic(int i, int n) {
    uint periods = (i < 0 ? ~uint(i) : uint(i)) / metal::max(uint(n), 1u);
    return ((periods & 1u) != 0u) != (i < 0);
}

// The same for indices beyond int.
inline ulong mj_cycle64(ulong i, ulong n) {
    ulong divisor = metal::max(n, 1ul);
    return i - (i / divisor) * divisor;
}

inline int mj_reflect64(long i, int n) {
    ulong period = 2ul * ulong(metal::max(n, 1)) - 2ul;
    ulong k = mj_cycle64(i < 0l ? 0ul - ulong(i) : ulong(i), period);
    return int(metal::min(k, period - k));
}

inline int mj_symmetric64(long i, int n) {
    ulong period = 2ul * ulong(n);
    ulong k = mj_cycle64(i < 0l ? ~ulong(i) : ulong(i), period);
    return n == 0 ? 0 : int(metal::min(k, period - 1ul - k));
}

inline int mj_wrap64(long i, int n) {
    ulong k = mj_cycle64(i < 0l ? ~ulong(i) : ulong(i), ulong(n));
    return i < 0l ? metal::max(n, 1) - 1 - int(k) : int(k);
}

inline bool mj_antiperiodic64(long i, int n) {
    ulong periods = (i < 0l ? ~ulong(i) : ulong(i)) / metal::max(ulong(n), 1ul);
    return ((periods & 1ul) != 0ul) != (i < 0l);
}

// ---- atomics on words; P is a pointer to an atomic in device or threadgroup memory ----

template <typename P> inline float mj_atomic_add_float(P p, float value) {
    uint old = metal::atomic_load_explicit(p, metal::memory_order_relaxed);
    while (!metal::atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>(as_type<float>(old) + value),
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed)) {
    }
    return as_type<float>(old);
}

template <typename P> inline float mj_atomic_min_float(P p, float value) {
    uint old = metal::atomic_load_explicit(p, metal::memory_order_relaxed);
    while (!metal::atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>(mj_minimum(as_type<float>(old), value)),
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed)) {
    }
    return as_type<float>(old);
}

template <typename P> inline float mj_atomic_max_float(P p, float value) {
    uint old = metal::atomic_load_explicit(p, metal::memory_order_relaxed);
    while (!metal::atomic_compare_exchange_weak_explicit(p, &old, as_type<uint>(mj_maximum(as_type<float>(old), value)),
                                                         metal::memory_order_relaxed, metal::memory_order_relaxed)) {
    }
    return as_type<float>(old);
}

template <typename P> inline float mj_atomic_exchange_float(P p, float value) {
    return as_type<float>(metal::atomic_exchange_explicit(p, as_type<uint>(value), metal::memory_order_relaxed));
}

// Stores desired where the word is expected, and gives what was there; the weak exchange may fail for no reason.
template <typename P, typename T> inline T mj_atomic_cas(P p, T expected, T desired) {
    T old = expected;
    bool done = false;
    while (!done & (old == expected)) {
        done = metal::atomic_compare_exchange_weak_explicit(p, &old, desired, metal::memory_order_relaxed,
                                                            metal::memory_order_relaxed);
    }
    return old;
}

// The same for a float, by its bits: -0.0 is not 0.0, and a NaN is itself.
template <typename P> inline float mj_atomic_cas_float(P p, float expected, float desired) {
    return as_type<float>(mj_atomic_cas(p, as_type<uint>(expected), as_type<uint>(desired)));
}

// ---- what the 32 lanes of a simdgroup compute together: bools, 64-bit numbers by their halves, NaN ----

inline uint mj_simd_ballot(bool x) { return uint(ulong(metal::simd_ballot(x))); }

inline bool mj_simd_broadcast(bool x, ushort lane) { return metal::simd_broadcast(ushort(x), lane) != 0; }
inline long mj_simd_broadcast(long x, ushort lane) { return as_type<long>(metal::simd_broadcast(as_type<uint2>(x), lane)); }
inline ulong mj_simd_broadcast(ulong x, ushort lane) { return as_type<ulong>(metal::simd_broadcast(as_type<uint2>(x), lane)); }

inline bool mj_simd_shuffle(bool x, ushort lane) { return metal::simd_shuffle(ushort(x), lane) != 0; }
inline long mj_simd_shuffle(long x, ushort lane) { return as_type<long>(metal::simd_shuffle(as_type<uint2>(x), lane)); }
inline ulong mj_simd_shuffle(ulong x, ushort lane) { return as_type<ulong>(metal::simd_shuffle(as_type<uint2>(x), lane)); }

inline bool mj_simd_shuffle_xor(bool x, ushort mask) { return metal::simd_shuffle_xor(ushort(x), mask) != 0; }
inline long mj_simd_shuffle_xor(long x, ushort mask) { return as_type<long>(metal::simd_shuffle_xor(as_type<uint2>(x), mask)); }
inline ulong mj_simd_shuffle_xor(ulong x, ushort mask) { return as_type<ulong>(metal::simd_shuffle_xor(as_type<uint2>(x), mask)); }

inline bool mj_simd_shuffle_up(bool x, ushort by) { return metal::simd_shuffle_up(ushort(x), by) != 0; }
inline long mj_simd_shuffle_up(long x, ushort by) { return as_type<long>(metal::simd_shuffle_up(as_type<uint2>(x), by)); }
inline ulong mj_simd_shuffle_up(ulong x, ushort by) { return as_type<ulong>(metal::simd_shuffle_up(as_type<uint2>(x), by)); }

inline bool mj_simd_shuffle_down(bool x, ushort by) { return metal::simd_shuffle_down(ushort(x), by) != 0; }
inline long mj_simd_shuffle_down(long x, ushort by) { return as_type<long>(metal::simd_shuffle_down(as_type<uint2>(x), by)); }
inline ulong mj_simd_shuffle_down(ulong x, ushort by) { return as_type<ulong>(metal::simd_shuffle_down(as_type<uint2>(x), by)); }

// Sums of 64-bit numbers wrap, so that signed ones are summed as unsigned ones are. `index` is the thread's in its group.
template <typename T> inline T mj_simd_sum(T x, uint index) { return metal::simd_sum(x); }
inline ulong mj_simd_sum(ulong x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x += mj_simd_shuffle_xor(x, k);
    }
    return x;
}
inline long mj_simd_sum(long x, uint index) { return long(mj_simd_sum(ulong(x), index)); }

template <typename T> inline T mj_simd_prefix_inclusive_sum(T x, uint index) { return metal::simd_prefix_inclusive_sum(x); }
inline ulong mj_simd_prefix_inclusive_sum(ulong x, uint index) {
    for (ushort k = 1; k < 32; k *= 2) {
        const ulong before = mj_simd_shuffle_up(x, k);
        x += index % 32u >= k ? before : 0ul;
    }
    return x;
}
inline long mj_simd_prefix_inclusive_sum(long x, uint index) { return long(mj_simd_prefix_inclusive_sum(ulong(x), index)); }

template <typename T> inline T mj_simd_prefix_exclusive_sum(T x, uint index) { return metal::simd_prefix_exclusive_sum(x); }
inline ulong mj_simd_prefix_exclusive_sum(ulong x, uint index) { return mj_simd_prefix_inclusive_sum(x, index) - x; }
inline long mj_simd_prefix_exclusive_sum(long x, uint index) { return long(mj_simd_prefix_exclusive_sum(ulong(x), index)); }

// Metal's own pass over NaN.
template <typename T> inline T mj_simd_min(T x, uint index) { return metal::simd_min(x); }
inline float mj_simd_min(float x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = mj_minimum(x, metal::simd_shuffle_xor(x, k));
    }
    return x;
}
inline long mj_simd_min(long x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = metal::min(x, mj_simd_shuffle_xor(x, k));
    }
    return x;
}
inline ulong mj_simd_min(ulong x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = metal::min(x, mj_simd_shuffle_xor(x, k));
    }
    return x;
}

template <typename T> inline T mj_simd_max(T x, uint index) { return metal::simd_max(x); }
inline float mj_simd_max(float x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = mj_maximum(x, metal::simd_shuffle_xor(x, k));
    }
    return x;
}
inline long mj_simd_max(long x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = metal::max(x, mj_simd_shuffle_xor(x, k));
    }
    return x;
}
inline ulong mj_simd_max(ulong x, uint index) {
    for (ushort k = 16; k > 0; k /= 2) {
        x = metal::max(x, mj_simd_shuffle_xor(x, k));
    }
    return x;
}

// ---- what a whole threadgroup computes together: each simdgroup its part, then each all parts ----

// Lane k gets what simdgroup k gives for k < count, and `rest` else. The last barrier lets `scratch` be written again.
template <typename T> inline T mj_from_simds(T part, T rest, threadgroup T* scratch, uint index, uint count) {
    if (index % 32u == 31u) {
        *(scratch + index / 32u) = part;
    }
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    const T found = index % 32u < count ? *(scratch + index % 32u) : rest;
    metal::threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    return found;
}

template <typename T> inline T mj_group_sum(T x, threadgroup T* scratch, uint index, uint simds) {
    return mj_simd_sum(mj_from_simds(mj_simd_sum(x, index), T(0), scratch, index, simds), index);
}

template <typename T> inline T mj_group_min(T x, threadgroup T* scratch, uint index, uint simds, T largest) {
    return mj_simd_min(mj_from_simds(mj_simd_min(x, index), largest, scratch, index, simds), index);
}

template <typename T> inline T mj_group_max(T x, threadgroup T* scratch, uint index, uint simds, T smallest) {
    return mj_simd_max(mj_from_simds(mj_simd_max(x, index), smallest, scratch, index, simds), index);
}

template <typename T> inline T mj_group_prefix_inclusive_sum(T x, threadgroup T* scratch, uint index) {
    const T own = mj_simd_prefix_inclusive_sum(x, index);
    return mj_simd_sum(mj_from_simds(own, T(0), scratch, index, index / 32u), index) + own;
}

template <typename T> inline T mj_group_prefix_exclusive_sum(T x, threadgroup T* scratch, uint index) {
    const T own = mj_simd_prefix_exclusive_sum(x, index);
    return mj_simd_sum(mj_from_simds(T(own + x), T(0), scratch, index, index / 32u), index) + own;
}

// ---- the call: failures and counted loops ----

// The first failure of an assertion: its number, and the thread's flat index.
template <typename P> inline void mj_fail(P status, uint site, uint gid) {
    uint expected = 0u;
    if (metal::atomic_compare_exchange_weak_explicit(status + 1, &expected, site, metal::memory_order_relaxed,
                                                     metal::memory_order_relaxed)) {
        metal::atomic_store_explicit(status + 2, gid, metal::memory_order_relaxed);
        metal::atomic_store_explicit(status + 3, 0u, metal::memory_order_relaxed);
    } else if (expected == 0u) {  // the weak exchange failed for no reason
        metal::atomic_store_explicit(status + 1, site, metal::memory_order_relaxed);
        metal::atomic_store_explicit(status + 2, gid, metal::memory_order_relaxed);
    }
}

// How often a counted loop runs.
inline int mj_turns(int start, int stop, int step) {
    long span = step > 0 ? long(stop) - long(start) : long(start) - long(stop);
    long size = step > 0 ? long(step) : -long(step);
    return span <= 0l ? 0 : int((span + size - 1l) / size);
}
