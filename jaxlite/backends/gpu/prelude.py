"""The CUDA C++ that every generated source starts with: operations whose meaning C++ leaves open.

Integer arithmetic wraps, division never traps, shifts and conversions saturate, max and min keep
NaN, 16-bit floats are converted in integer arithmetic. Plain functions, so that kernels read as
formulas.
"""

from __future__ import annotations

PRELUDE = r"""
typedef long long i64;
typedef unsigned long long u64;

template <class To, class From> __device__ inline To jl_bitcast(From x) {
    static_assert(sizeof(To) == sizeof(From), "sizes differ");
    To result;
    memcpy(&result, &x, sizeof(To));
    return result;
}

// integers: arithmetic in 64 unsigned bits, then cut: wraps for every type
template <class T> __device__ inline T jl_add(T x, T y) { return (T)((u64)x + (u64)y); }
template <class T> __device__ inline T jl_sub(T x, T y) { return (T)((u64)x - (u64)y); }
template <class T> __device__ inline T jl_mul(T x, T y) { return (T)((u64)x * (u64)y); }
template <class T> __device__ inline T jl_div(T x, T y) {
    if (y == T(0)) return T(-1);
    if (T(-1) < T(0) && y == T(-1)) return jl_sub(T(0), x);
    return T(x / y);
}
template <class T> __device__ inline T jl_rem(T x, T y) {
    return jl_sub(x, jl_mul(jl_div(x, y), y));
}
template <class T> __device__ inline T jl_integer_abs(T x) {
    return x < T(0) ? jl_sub(T(0), x) : x;
}
template <class T> __device__ inline T jl_shift_left(T x, T y) {
    return (u64)y < 8 * sizeof(T) ? T((u64)x << (u64)y) : T(0);
}
template <class U, class T> __device__ inline T jl_shift_right_logical(T x, T y) {
    return (u64)y < 8 * sizeof(T) ? T(U(x) >> (u64)y) : T(0);
}
template <class S, class T> __device__ inline T jl_shift_right_arithmetic(T x, T y) {
    u64 last = 8 * sizeof(T) - 1;
    return T(S(x) >> ((u64)y < last ? (u64)y : last));
}
template <class U, class T> __device__ inline T jl_population_count(T x) {
    return T(__popcll(U(x)));
}
template <class U, class T> __device__ inline T jl_count_leading_zeros(T x) {
    return T(__clzll(U(x)) - (64 - 8 * (int)sizeof(T)));
}
template <class U, class T> __device__ inline T jl_mul_high(T x, T y) {
    if (sizeof(T) == 8) return T(__umul64hi((u64)x, (u64)y));
    return T(((u64)U(x) * (u64)U(y)) >> (4 * sizeof(T)) >> (4 * sizeof(T)));
}

// any number
template <class T> __device__ inline T jl_max(T x, T y) { return x != x ? x : (x > y ? x : y); }
template <class T> __device__ inline T jl_min(T x, T y) { return x != x ? x : (x < y ? x : y); }
template <class T> __device__ inline T jl_sign(T x) {
    return x > T(0) ? T(1) : (x < T(0) ? T(-1) : x);
}
template <class T, class F> __device__ inline T jl_saturate(F x, T lowest, T highest) {
    if (x != x) return T(0);
    if (x <= F(lowest)) return lowest;
    if (x >= F(highest)) return highest;
    return T(x);
}

// 16-bit floats: in registers a float of the same value
__device__ inline float jl_from_bfloat16(unsigned short x) {
    return jl_bitcast<float>((unsigned)x << 16);
}
__device__ inline unsigned short jl_to_bfloat16(float x) {
    unsigned bits = jl_bitcast<unsigned>(x);
    if (x != x) return (unsigned short)((bits >> 16) | 0x40);
    return (unsigned short)((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
__device__ inline float jl_from_float16(unsigned short x) {
    unsigned magnitude = x & 0x7FFF, sign = (unsigned)(x & 0x8000) << 16;
    unsigned bits = (magnitude << 13) + ((magnitude >= 0x7C00 ? 224u : 112u) << 23);
    if (magnitude < 0x400) bits = jl_bitcast<unsigned>((float)magnitude * 5.9604644775390625e-08f);
    return jl_bitcast<float>(bits | sign);
}
__device__ inline unsigned short jl_to_float16(float x) {
    unsigned bits = jl_bitcast<unsigned>(x), magnitude = bits & 0x7FFFFFFF, result;
    if (magnitude > 0x7F800000) {
        result = 0x7E00;
    } else if (magnitude >= 0x477FF000) {
        result = 0x7C00;
    } else if (magnitude < 0x38800000) {  // subnormal: adding 0.5 rounds to multiples of 2^-24
        result = jl_bitcast<unsigned>(jl_bitcast<float>(magnitude) + 0.5f) & 0x7FF;
    } else {
        result = (magnitude - (112u << 23) + 0xFFF + ((magnitude >> 13) & 1)) >> 13;
    }
    return (unsigned short)(result | ((bits >> 16) & 0x8000));
}
__device__ inline float jl_round_bfloat16(float x) { return jl_from_bfloat16(jl_to_bfloat16(x)); }
__device__ inline float jl_round_float16(float x) { return jl_from_float16(jl_to_float16(x)); }
// A double on its way to 16 bits: a float rounded to odd, so that the next rounding counts alone.
__device__ inline float jl_round_to_odd(double x) {
    float nearest = (float)x;
    unsigned bits = jl_bitcast<unsigned>(nearest);
    bool exact = (double)nearest == x || x != x;
    if (exact || (bits & 1) || (bits & 0x7FFFFFFF) >= 0x7F800000) return nearest;
    return jl_bitcast<float>(fabs((double)nearest) < fabs(x) ? bits + 1 : bits - 1);
}
__device__ inline unsigned short jl_next16(unsigned short x, unsigned short y, float a, float b) {
    if (a != a) return x;
    if (b != b || a == b) return y;
    if (a == 0) return (unsigned short)((y & 0x8000) | 1);
    return (unsigned short)((a < b) == (a > 0) ? x + 1 : x - 1);
}

// the logarithmic derivative of gamma: recurrence up to 8, then the asymptotic series
__device__ inline double jl_digamma(double x) {
    if (x == 0) return jl_bitcast<double>(0xFFF0000000000000ULL);
    if (x < 0 && x == rint(x)) return jl_bitcast<double>(0x7FF8000000000000ULL);
    double reflected = 0;
    if (x < 0.5) {
        reflected = 3.141592653589793 / tan(3.141592653589793 * (x - rint(x)));
        x = 1 - x;
    }
    double shift = 0;
    for (; x < 8; x += 1) shift += 1 / x;
    double w = 1 / (x * x);
    double tail = w * (1. / 12 - w * (1. / 120 - w * (1. / 252 - w * (1. / 240 - w * (1. / 132 -
                  w * (691. / 32760 - w * (1. / 12)))))));
    return log(x) - 0.5 / x - tail - shift - reflected;
}
__device__ inline float jl_digamma(float x) { return (float)jl_digamma((double)x); }
"""
