/* What generated code of single precision calls, in float alone: no table, no branch, no memory, and of the library only
   sqrtf and fabsf, which are instructions where there is a floating-point unit. Rounding to nearest, which every
   processor starts with, is assumed; so is that a sum of two floats is a float (FLT_EVAL_METHOD 0). Each piece goes to
   where it is used, without its comment. Largest errors, in units of the last place against double precision: on the
   page on microcontrollers. */
#include <math.h>
#include <stdint.h>

/* piece: tl_wholef */
/* The nearest whole number, below 2^22: that sum has no digits behind the point. */
static inline float tl_wholef(float x)
{
    return (x + 12582912.0f) - 12582912.0f;
}

/* piece: tl_floorf */
/* Numbers from 2^22 on come back as they are. */
static inline float tl_floorf(float x)
{
    const float k = fabsf(x) < 4194304.0f ? tl_wholef(x) : x;
    return k > x ? k - 1.0f : k;
}

/* piece: tl_reducedf */
/* Sine and cosine: reduction to an eighth of a turn in three parts (Cody and Waite), whose first two have so few digits
   that their products are exact up to 8192 rad; polynomials of Cephes. */
static inline float tl_reducedf(float x, float *quadrant)
{
    const float k = tl_wholef(x * 0.63661977236758134308f);
    const float rest = k - 4.0f * tl_wholef(0.25f * k);
    *quadrant = rest < 0.0f ? rest + 4.0f : rest;
    return ((x - k * 1.5703125f) - k * 4.837512969970703125e-4f) - k * 7.54978995489188216e-8f;
}

static inline float tl_sin_kernelf(float r)
{
    const float z = r * r;
    return r + r * z * (-1.6666654611e-1f + z * (8.3321608736e-3f + z * -1.9515295891e-4f));
}

static inline float tl_cos_kernelf(float r)
{
    const float z = r * r;
    return (1.0f - 0.5f * z) + z * z * (4.166664568298827e-2f + z * (-1.388731625493765e-3f
        + z * 2.443315711809948e-5f));
}

/* piece: tl_sinf */
static inline float tl_sinf(float x)
{
    float k;
    const float r = tl_reducedf(x, &k);
    const float y = (k == 1.0f || k == 3.0f) ? tl_cos_kernelf(r) : tl_sin_kernelf(r);
    return k >= 2.0f ? -y : y;
}

/* piece: tl_cosf */
static inline float tl_cosf(float x)
{
    float k;
    const float r = tl_reducedf(x, &k);
    const float y = (k == 1.0f || k == 3.0f) ? tl_sin_kernelf(r) : tl_cos_kernelf(r);
    return (k == 1.0f || k == 2.0f) ? -y : y;
}

/* piece: tl_atan2f */
/* The arctangent of a quotient of at most one, its upper part less 45 degrees: polynomial of Cephes. */
static inline float tl_atan2f(float y, float x)
{
    const float ax = fabsf(x), ay = fabsf(y);
    const float big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    const float t = big == 0.0f ? 0.0f : small / big;
    const int is_far = t > 0.4142135623730950f;
    const float u = is_far ? (t - 1.0f) / (t + 1.0f) : t;
    const float z = u * u;
    const float near_zero = u + u * z * (-3.33329491539e-1f + z * (1.99777106478e-1f + z * (-1.38776856032e-1f
        + z * 8.05374449538e-2f)));
    const float first = is_far ? 0.785398185f + (near_zero - 2.18556941e-8f) : near_zero;
    const float octant = ay > ax ? (1.57079637f - first) - 4.37113883e-8f : first;
    const float half = x < 0.0f ? (3.14159274f - octant) - 8.74227766e-8f : octant;
    return y < 0.0f ? -half : half;
}

/* piece: tl_expf */
/* e^x = 2^k e^r with k = x / ln 2 rounded: polynomial of Cephes, and 2^k by the bits of its exponent. Below -87 it is
   zero, above 88 infinite. */
static inline float tl_expf(float x)
{
    const float y = x < -87.0f ? -87.0f : (x > 88.0f ? 88.0f : x);
    const float k = tl_wholef(y * 1.44269504088896341f);
    const float r = (y - k * 0.693359375f) + k * 2.12194440e-4f;
    const float p = 1.0f + (r + r * r * (5.0000001201e-1f + r * (1.6666665459e-1f + r * (4.1665795894e-2f
        + r * (8.3334519073e-3f + r * (1.3981999507e-3f + r * 1.9875691500e-4f))))));
    union { float number; uint32_t bits; } scale;
    scale.number = k + 127.0f + 8388608.0f;
    scale.bits <<= 23;
    return x < -87.0f ? 0.0f : (x > 88.0f ? HUGE_VALF : (x == x ? p * scale.number : x));
}

/* piece: tl_fminf */
static inline float tl_fminf(float a, float b)
{
    return (a < b || b != b) ? a : b;
}

/* piece: tl_fmaxf */
static inline float tl_fmaxf(float a, float b)
{
    return (a > b || b != b) ? a : b;
}

/* piece: tl_squaresf */
/* Sum of the squares of n numbers: not-a-number or infinite where one of them is. */
static inline float tl_squaresf(const float *x, int n)
{
    float sum = 0.0f;
    for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum;
}
