/* Paths of a polynomial system F(x, y(t)) + e(t) = 0 in the complex numbers, one thread a path: `homotopy.py` in C.

   In front of this stand TL_M equations and unknowns, TL_K known variables, TL_WAYS linear terms (whose factors are the
   last known variables), and the routines of the system itself, `tl_values` and `tl_rates`, that its text calls behind.
   Of a complex number the real part comes first. Arrays over paths are structures of arrays.
   Source: Sommese and Wampler 2005, The Numerical Solution of Systems of Polynomials, section 2.3. */
typedef struct { double re, im; } tl_complex;

/* Numbers of a tracker's options, in order, and how paths end. */
enum { TL_TOLERANCE, TL_CORRECTIONS, TL_END_TOLERANCE, TL_END_CORRECTIONS, TL_REGULAR_RATIO, TL_FIRST, TL_LONGEST,
    TL_SMALLEST, TL_INFINITY, TL_STEPS };
enum { TL_SUCCESS, TL_MAX_STEPS, TL_DIVERGED, TL_STEP_TOO_SMALL };

static inline tl_complex tl_of(double re, double im) { const tl_complex z = {re, im}; return z; }
static inline tl_complex tl_plus(tl_complex a, tl_complex b) { return tl_of(a.re + b.re, a.im + b.im); }
static inline tl_complex tl_less(tl_complex a, tl_complex b) { return tl_of(a.re - b.re, a.im - b.im); }
static inline tl_complex tl_scaled(double s, tl_complex a) { return tl_of(s * a.re, s * a.im); }
static inline tl_complex tl_times(tl_complex a, tl_complex b)
{
    return tl_of(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re);
}
static inline tl_complex tl_inverse(tl_complex a)
{
    const double s = 1.0 / (a.re * a.re + a.im * a.im);
    return tl_of(s * a.re, -s * a.im);
}
static inline double tl_size(tl_complex a) { return sqrt(a.re * a.re + a.im * a.im); }

static void tl_values(const tl_complex *x, const tl_complex *y, tl_complex *F, tl_complex *J);
static void tl_rates(const tl_complex *x, const tl_complex *y, const tl_complex *rate, tl_complex *J, tl_complex *r);

/* J z = b by elimination, the largest entry of a column first; b becomes z, and no number where J is singular. */
static void tl_solved(tl_complex *J, tl_complex *b)
{
    for (int k = 0; k < TL_M; ++k) {
        int best = k;
        double most = -1.0;
        for (int i = k; i < TL_M; ++i) {
            const double size = fabs(J[k * TL_M + i].re) + fabs(J[k * TL_M + i].im);
            if (size > most) most = size, best = i;
        }
        if (best != k) {
            for (int j = k; j < TL_M; ++j) {
                const tl_complex kept = J[j * TL_M + k];
                J[j * TL_M + k] = J[j * TL_M + best], J[j * TL_M + best] = kept;
            }
            const tl_complex kept = b[k];
            b[k] = b[best], b[best] = kept;
        }
        const tl_complex inverse = tl_inverse(J[k * TL_M + k]);
        J[k * TL_M + k] = inverse;
        for (int i = k + 1; i < TL_M; ++i) {
            const tl_complex factor = tl_times(J[k * TL_M + i], inverse);
            for (int j = k + 1; j < TL_M; ++j)
                J[j * TL_M + i] = tl_less(J[j * TL_M + i], tl_times(factor, J[j * TL_M + k]));
            b[i] = tl_less(b[i], tl_times(factor, b[k]));
        }
    }
    for (int k = TL_M - 1; k >= 0; --k) {
        b[k] = tl_times(b[k], J[k * TL_M + k]);
        for (int i = 0; i < k; ++i) b[i] = tl_less(b[i], tl_times(J[k * TL_M + i], b[k]));
    }
}

/* A path on its way: where its parameters begin, and how they change. */
typedef struct { tl_complex y[TL_K + 1], y_rate[TL_K + 1], e[TL_M], e_rate[TL_M]; const double *terms; } tl_line;

static tl_complex tl_term(const tl_line *l, int k, int i, int j)
{
    const double *term = l->terms + 2 * ((k * TL_M + i) * TL_M + j);
    return tl_of(term[0], term[1]);
}

/* Adds linear terms to values, or to rates, and to the Jacobian. */
static void tl_widened(const tl_line *l, const tl_complex *x, const tl_complex *s, const tl_complex *factor,
    tl_complex *value, tl_complex *J)
{
    for (int k = 0; k < TL_WAYS; ++k)
        for (int i = 0; i < TL_M; ++i)
            for (int j = 0; j < TL_M; ++j) {
                const tl_complex term = tl_term(l, k, i, j);
                value[i] = tl_plus(value[i], tl_times(factor[k], tl_times(term, x[j])));
                J[j * TL_M + i] = tl_plus(J[j * TL_M + i], tl_times(s[k], term));
            }
}

static void tl_known(const tl_line *l, double t, tl_complex *y)
{
    for (int k = 0; k < TL_K; ++k) y[k] = tl_plus(l->y[k], tl_scaled(t, l->y_rate[k]));
}

/* dx/dt = -F_x^-1 (F_y y' + e') at a point of a path, times minus one. */
TL_CALLED void tl_tangent(const tl_line *l, const tl_complex *x, double t, tl_complex *dx)
{
    tl_complex y[TL_K + 1], J[TL_M * TL_M];
    tl_known(l, t, y);
    tl_rates(x, y, l->y_rate, J, dx);
    tl_widened(l, x, y + TL_K - TL_WAYS, l->y_rate + TL_K - TL_WAYS, dx, J);
    for (int i = 0; i < TL_M; ++i) dx[i] = tl_plus(dx[i], l->e_rate[i]);
    tl_solved(J, dx);
}

static double tl_largest(const tl_complex *x)
{
    double most = 0.0;
    for (int i = 0; i < TL_M; ++i) {
        const double size = tl_size(x[i]);
        most = size <= most ? most : size; /* what is no number stays */
    }
    return most;
}

/* How Newton's method went: whether the last step was short and none longer than half the one before; the last step
   over the one before it; and the largest step. Steps are relative to the size of the point. */
typedef struct { int good; double ratio, largest; } tl_convergence;

/* The step from one point to another, relative to the size of the second. */
static double tl_move(const tl_complex *from, const tl_complex *to)
{
    tl_complex move[TL_M];
    for (int i = 0; i < TL_M; ++i) move[i] = tl_less(to[i], from[i]);
    return tl_largest(move) / (1.0 + tl_largest(to));
}

/* Newton's method at a t, after a step of a size. */
TL_CALLED tl_convergence tl_newton(const tl_line *l, tl_complex *x, double t, double tolerance, int most, double move)
{
    tl_complex y[TL_K + 1], J[TL_M * TL_M], dx[TL_M];
    tl_convergence way = {1, 1.0, 0.0};
    double last = HUGE_VAL;
    tl_known(l, t, y);
    for (int k = 0; k < most && !(last < tolerance); ++k) {
        tl_values(x, y, dx, J);
        tl_widened(l, x, y + TL_K - TL_WAYS, y + TL_K - TL_WAYS, dx, J);
        for (int i = 0; i < TL_M; ++i) dx[i] = tl_plus(dx[i], tl_plus(l->e[i], tl_scaled(t, l->e_rate[i])));
        tl_solved(J, dx);
        for (int i = 0; i < TL_M; ++i) x[i] = tl_less(x[i], dx[i]);
        const double size = tl_largest(dx) / (1.0 + tl_largest(x));
        way.good = way.good && (size <= 0.5 * last || size < tolerance);
        way.ratio = size / (k == 0 ? move : last);
        way.largest = size <= way.largest ? way.largest : size; /* what is no number stays */
        last = size;
    }
    way.good = way.good && last < tolerance;
    return way;
}

/* A step of Runge and Kutta's, of fourth order. */
static void tl_predicted(const tl_line *l, const tl_complex *x, double t, double h, tl_complex *trial)
{
    const double shares[4] = {0.0, 0.5, 0.5, 1.0}, weights[4] = {1.0, 2.0, 2.0, 1.0};
    tl_complex k[TL_M], at[TL_M];
    for (int i = 0; i < TL_M; ++i) trial[i] = x[i], k[i] = tl_of(0.0, 0.0);
    for (int stage = 0; stage < 4; ++stage) {
        for (int i = 0; i < TL_M; ++i) at[i] = tl_less(x[i], tl_scaled(shares[stage] * h, k[i]));
        tl_tangent(l, at, t + shares[stage] * h, k);
        for (int i = 0; i < TL_M; ++i) trial[i] = tl_less(trial[i], tl_scaled(weights[stage] * h / 6.0, k[i]));
    }
}

static tl_complex tl_read(const double *array, int k, size_t n, size_t s)
{
    return tl_of(array[2 * (size_t)k * n + s], array[(2 * (size_t)k + 1) * n + s]);
}

TL_KERNEL tl_paths(size_t n, size_t from, size_t to, const double *restrict start, const double *restrict y0,
    const double *restrict y1, const double *restrict e0, const double *restrict e1, const double *restrict options,
    const double *restrict terms, double *restrict ends, double *restrict report)
{
    TL_PART(s, from, to) {
        tl_complex x[TL_M], trial[TL_M];
        tl_line l;
        double t = 0.0, h = options[TL_FIRST];
        int ending = TL_MAX_STEPS, done = 0, steps = 0, successes = 0;
        l.terms = terms;
        for (int k = 0; k < TL_K; ++k) l.y[k] = tl_read(y0, k, n, s), l.y_rate[k] = tl_less(tl_read(y1, k, n, s), l.y[k]);
        for (int i = 0; i < TL_M; ++i) {
            x[i] = tl_read(start, i, n, s);
            l.e[i] = tl_read(e0, i, n, s), l.e_rate[i] = tl_less(tl_read(e1, i, n, s), l.e[i]);
        }
        while (!done && (double)steps < options[TL_STEPS]) {
            const double remaining = 1.0 - t, step = h < remaining ? h : remaining;
            const int is_last = step >= remaining;
            const double ahead = is_last ? 1.0 : t + step;
            tl_predicted(&l, x, t, step, trial);
            const tl_convergence near = tl_newton(&l, trial, ahead, options[TL_TOLERANCE], (int)options[TL_CORRECTIONS],
                tl_move(x, trial));
            int good = near.good;
            if (good && is_last) {
                const tl_convergence end = tl_newton(&l, trial, ahead, options[TL_END_TOLERANCE],
                    (int)options[TL_END_CORRECTIONS], HUGE_VAL);
                /* rounding may limit the last step; at a multiple solution no step falls so far */
                good = end.good || (near.ratio < options[TL_REGULAR_RATIO] && end.largest < options[TL_TOLERANCE]);
            }
            if (good) {
                for (int i = 0; i < TL_M; ++i) x[i] = trial[i];
                t = ahead;
                if (++successes >= 3) {
                    h = 2.0 * h < options[TL_LONGEST] ? 2.0 * h : options[TL_LONGEST];
                    successes = 0;
                }
            } else {
                successes = 0;
                h = 0.5 * step;
            }
            if (good && is_last) ending = TL_SUCCESS;
            else if (tl_largest(x) > options[TL_INFINITY]) ending = TL_DIVERGED;
            else if (h < options[TL_SMALLEST]) ending = TL_STEP_TOO_SMALL;
            done = ending != TL_MAX_STEPS;
            ++steps;
        }
        for (int i = 0; i < TL_M; ++i)
            ends[2 * (size_t)i * n + s] = x[i].re, ends[(2 * (size_t)i + 1) * n + s] = x[i].im;
        report[s] = t, report[n + s] = (double)ending, report[2 * n + s] = (double)steps;
    }
}
