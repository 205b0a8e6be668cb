/* What generated code calls. Each piece goes to where it is used, without its comment; the sizes are set in front:
   TL_LANES samples in a block; TL_MOST_CHANGES, TL_MISSED and TL_DEPENDENT as in `assembly/nearest.py`. */
#include <math.h>

/* piece: TL_APART */
/* Keeps a compiler from putting a function back into the one that calls it. */
#ifdef __GNUC__
#define TL_APART __attribute__((noinline))
#else
#define TL_APART
#endif

/* piece: TL_SHUFFLE */
/* Vectors of GNU C, of any processor: some rows compilers turn into lanes and back number by number, these helpers four
   samples at a time. */
#if defined __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define TL_SHUFFLE
typedef double tl_pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef double tl_four __attribute__((vector_size(32), aligned(8), may_alias));
#endif
#endif

/* piece: tl_reduced */
/* Sine, cosine and arctangent without branches or tables, so that loops over lanes stay loops of vector instructions.
   Reduction in three parts (Cody and Waite); polynomials of fdlibm's kernels and of Cephes. Largest errors measured, in
   units of the last place: sine and cosine 1.5 up to 100 rad and 2.3 up to 1e6 rad, arctangent 1.6. */
static inline double tl_reduced(double x, double *quadrant)
{
    const double k = floor(x * 0.63661977236758134308 + 0.5);
    *quadrant = k - 4.0 * floor(0.25 * k);
    return ((x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
}

static inline double tl_sin_kernel(double r)
{
    const double z = r * r;
    return r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03
        + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
}

static inline double tl_cos_kernel(double r)
{
    const double z = r * r;
    const double h = 0.5 * z;
    const double w = 1.0 - h;
    return w + (((1.0 - w) - h) + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
        + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07
        + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
}

/* piece: tl_sin */
static inline double tl_sin(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? c : s;
    return k >= 2.0 ? -y : y;
}

/* piece: tl_cos */
static inline double tl_cos(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? s : c;
    return (k == 1.0 || k == 2.0) ? -y : y;
}

/* piece: tl_atan2 */
static inline double tl_atan2(double y, double x)
{
    const double ax = fabs(x), ay = fabs(y);
    const double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    const double t = big == 0.0 ? 0.0 : small / big;
    const double is_far = t > 0.66 ? 1.0 : 0.0;
    const double u = is_far > 0.0 ? (t - 1.0) / (t + 1.0) : t;
    const double z = u * u;
    const double p = (((-8.750608600031904122785e-01 * z - 1.615753718733365076637e+01) * z
        - 7.500855792314704667340e+01) * z - 1.228866684490136173410e+02) * z - 6.485021904942025371773e+01;
    const double q = ((((z + 2.485846490142306297962e+01) * z + 1.650270098316988542046e+02) * z
        + 4.328810604912902668951e+02) * z + 4.853903996359136964868e+02) * z + 1.945506571482613964425e+02;
    const double near_zero = u + u * z * (p / q);
    const double first = is_far > 0.0 ? 0.78539816339744830962 + (near_zero + 3.061616997868383018e-17) : near_zero;
    const double octant = ay > ax ? (1.57079632679489661923 - first) + 6.123233995736765886e-17 : first;
    const double half = x < 0.0 ? (3.14159265358979323846 - octant) + 1.2246467991473531772e-16 : octant;
    return copysign(half, y);
}

/* piece: tl_exp */
/* e^x = 2^k e^r with k = x / ln 2 rounded: polynomial of e^r to degree 13 (Taylor, |r| < 0.347, next term 4e-18), and
   2^k by the bits of its exponent, without whole numbers of its own. Below -708 it is zero, above 709 infinite. */
static inline double tl_exp(double x)
{
    const double y = x < -708.0 ? -708.0 : (x > 709.0 ? 709.0 : x);
    const double k = floor(y * 1.44269504088896340736 + 0.5);
    const double r = (y - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10;
    const double p = 1.0 + r * (1.0 + r * (0.5 + r * (1.6666666666666666667e-01 + r * (4.1666666666666666667e-02
        + r * (8.3333333333333333333e-03 + r * (1.3888888888888888889e-03 + r * (1.9841269841269841270e-04
        + r * (2.4801587301587301587e-05 + r * (2.7557319223985890653e-06 + r * (2.7557319223985890653e-07
        + r * (2.5052108385441718775e-08 + r * (2.0876756987868098979e-09 + r * 1.6059043836821614599e-10))))))))))));
    union { double number; unsigned long long bits; } scale;
    scale.number = k + 1023.0 + 4503599627370496.0;
    scale.bits <<= 52;
    const double found = p * scale.number;
    return x < -708.0 ? 0.0 : (x > 709.0 ? HUGE_VAL : (x == x ? found : x));
}

/* piece: tl_all_below */
static inline int tl_all_below(const double *length, double last)
{
    int above = 0;
    for (int l = 0; l < TL_LANES; ++l) above += length[l] > last;
    return above == 0;
}

/* piece: tl_squares */
/* Sum of the squares of n >= 4 numbers, some of them counted twice: not-a-number or infinite where one of them is. */
static inline double tl_squares(const double *x, int n)
{
#ifdef TL_SHUFFLE
    tl_four sum = *(const tl_four *)(x + n - 4);
    sum *= sum;
    for (int i = 0; i + 4 < n; i += 4) {
        const tl_four four = *(const tl_four *)(x + i);
        sum += four * four;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
#else
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum;
#endif
}

/* piece: tl_turn */
/* Two neighboring columns of rows, into lanes. */
static inline void tl_turn(const double *restrict rows, int size, double *restrict first, double *restrict second)
{
#ifdef TL_SHUFFLE
    for (int l = 0; l < TL_LANES; l += 4) {
        const double *row = rows + l * size;
        const tl_pair a = *(const tl_pair *)row, b = *(const tl_pair *)(row + size);
        const tl_pair c = *(const tl_pair *)(row + 2 * size), d = *(const tl_pair *)(row + 3 * size);
        const tl_four even = __builtin_shufflevector(a, c, 0, 1, 2, 3), odd = __builtin_shufflevector(b, d, 0, 1, 2, 3);
        *(tl_four *)(first + l) = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
        *(tl_four *)(second + l) = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
    }
#else
    for (int l = 0; l < TL_LANES; ++l) {
        first[l] = rows[l * size];
        second[l] = rows[l * size + 1];
    }
#endif
}

/* piece: tl_back */
/* Columns of lanes, back into rows: four columns at a time, then a pair, then one. */
static inline void tl_back(const double (*restrict lanes)[TL_LANES], int size, double *restrict rows)
{
    int i = 0;
#ifdef TL_SHUFFLE
    for (; i + 4 <= size; i += 4)
        for (int l = 0; l < TL_LANES; l += 4) {
            double *row = rows + l * size + i;
            const tl_four a = *(const tl_four *)(lanes[i] + l), b = *(const tl_four *)(lanes[i + 1] + l);
            const tl_four c = *(const tl_four *)(lanes[i + 2] + l), d = *(const tl_four *)(lanes[i + 3] + l);
            const tl_four e = __builtin_shufflevector(a, b, 0, 4, 2, 6), f = __builtin_shufflevector(a, b, 1, 5, 3, 7);
            const tl_four g = __builtin_shufflevector(c, d, 0, 4, 2, 6), h = __builtin_shufflevector(c, d, 1, 5, 3, 7);
            *(tl_four *)row = __builtin_shufflevector(e, g, 0, 1, 4, 5);
            *(tl_four *)(row + size) = __builtin_shufflevector(f, h, 0, 1, 4, 5);
            *(tl_four *)(row + 2 * size) = __builtin_shufflevector(e, g, 2, 3, 6, 7);
            *(tl_four *)(row + 3 * size) = __builtin_shufflevector(f, h, 2, 3, 6, 7);
        }
    for (; i + 2 <= size; i += 2)
        for (int l = 0; l < TL_LANES; l += 4) {
            double *row = rows + l * size + i;
            const tl_four a = *(const tl_four *)(lanes[i] + l), b = *(const tl_four *)(lanes[i + 1] + l);
            const tl_four e = __builtin_shufflevector(a, b, 0, 4, 2, 6), f = __builtin_shufflevector(a, b, 1, 5, 3, 7);
            *(tl_pair *)row = __builtin_shufflevector(e, e, 0, 1);
            *(tl_pair *)(row + size) = __builtin_shufflevector(f, f, 0, 1);
            *(tl_pair *)(row + 2 * size) = __builtin_shufflevector(e, e, 2, 3);
            *(tl_pair *)(row + 3 * size) = __builtin_shufflevector(f, f, 2, 3);
        }
#endif
    for (; i < size; ++i)
        for (int l = 0; l < TL_LANES; ++l) rows[l * size + i] = lanes[i][l];
}

/* piece: tl_nearest */
/* Rows at work are made orthogonal anew at every change, by Gram and Schmidt twice over. */
static double tl_dot(int r, const double *a, const double *b)
{
    double sum = 0.0;
    for (int i = 0; i < r; ++i) sum += a[i] * b[i];
    return sum;
}

/* y (r) nearest to the origin with G y >= h (n), after Goldfarb and Idnani; returns what is missed, of the largest h */
static double tl_nearest(int n, int r, const double *G, const double *h, double *y, double *room, int *working)
{
    double *mu = room, *share = mu + r, *part = share + r, *rest = part + r, *Q = rest + r, *T = Q + r * r;
    double scale = 0.0, longest = 0.0, partial = 0.0, missed = 0.0, total = 0.0;
    int k = 0, added = -1;
    for (int j = 0; j < n; ++j) {
        const double square = tl_dot(r, G + j * r, G + j * r);
        scale = fabs(h[j]) > scale ? fabs(h[j]) : scale;
        longest = square > longest ? square : longest;
    }
    for (int a = 0; a < r; ++a) y[a] = 0.0;
    for (int change = 0; change < TL_MOST_CHANGES; ++change) {
        if (added < 0) {
            double worst = TL_MISSED * scale;
            for (int j = 0; j < n; ++j) {
                const double miss = h[j] - tl_dot(r, G + j * r, y);
                int at_work = 0;
                for (int b = 0; b < k; ++b) at_work |= working[b] == j;
                if (!at_work && miss > worst) {
                    worst = miss;
                    added = j;
                }
            }
            if (added < 0) break;
            partial = 0.0;
        }
        for (int b = 0; b <= k; ++b) {
            const double *g = G + (b < k ? working[b] : added) * r;
            double *q = b < k ? Q + b * r : rest, *t = b < k ? T + b * r : part;
            for (int i = 0; i < r; ++i) q[i] = g[i];
            for (int a = 0; a < b; ++a) t[a] = 0.0;
            for (int twice = 0; twice < 2; ++twice)
                for (int a = 0; a < b; ++a) {
                    const double along = tl_dot(r, Q + a * r, q);
                    t[a] += along;
                    for (int i = 0; i < r; ++i) q[i] -= along * Q[a * r + i];
                }
            if (b < k) {
                t[b] = sqrt(tl_dot(r, q, q));
                for (int i = 0; i < r; ++i) q[i] /= t[b];
            }
        }
        int drop = -1;
        double step = 1e300;
        for (int b = k - 1; b >= 0; --b) {
            double sum = part[b];
            for (int a = b + 1; a < k; ++a) sum -= T[a * r + b] * share[a];
            share[b] = sum / T[b * r + b];
        }
        for (int b = 0; b < k; ++b)
            if (share[b] > TL_DEPENDENT && mu[b] < step * share[b]) {
                step = mu[b] / share[b];
                drop = b;
            }
        const double square = tl_dot(r, rest, rest);
        const int moves = square > TL_DEPENDENT * TL_DEPENDENT * longest;
        const double full = moves ? (h[added] - tl_dot(r, G + added * r, y)) / square : 1e300;
        const int is_full = moves && full <= step;
        if (is_full) step = full;
        else if (drop < 0) break;
        for (int b = 0; b < k; ++b) mu[b] -= step * share[b];
        partial += step;
        for (int i = 0; moves && i < r; ++i) y[i] += step * rest[i];
        if (is_full) {
            working[k] = added;
            mu[k++] = partial;
            added = -1;
        } else {
            for (int b = drop + 1; b < k; ++b) {
                working[b - 1] = working[b];
                mu[b - 1] = mu[b];
            }
            --k;
        }
    }
    for (int i = 0; i < r; ++i) y[i] = added < 0 ? 0.0 : partial * G[added * r + i];
    for (int b = 0; b < k; ++b)
        for (int i = 0; i < r; ++i) y[i] += mu[b] * G[working[b] * r + i];
    for (int j = 0; j < n; ++j) {
        const double miss = h[j] - tl_dot(r, G + j * r, y);
        missed = miss > missed ? miss : missed;
        total += miss;
    }
    missed = scale > 0.0 ? missed / scale : missed;
    return total == total ? missed : total;
}
