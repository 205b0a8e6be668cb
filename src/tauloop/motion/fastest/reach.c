/* Reachable squared speeds along a path under rows of limits, and the largest of them: two sweeps of small linear programs.
 *
 * Pham and Pham 2018, A new approach to time-optimal path parameterization based on reachability analysis; here every
 * interval has an acceleration at each of its ends (x_{k+1} = x_k + d (a_l + a_r)), which is second order accurate, or one
 * for both where the sweep says so. A row is (p, q, r): p x + q a <= r. */
#include <stddef.h>

#define HUGE_SPEED 1e9
#define ROUNDING 1e-11

typedef struct { double p, q, r; } Row;
typedef struct { Row *row; size_t n; } Rows; /* row has memory for the rows of both ends and 8 more */

static void add(Rows *rows, double p, double q, double r)
{
    Row *row = &rows->row[rows->n++];
    row->p = p; row->q = q; row->r = r;
}

/* Maximize p x + q a under all rows; 0 where nothing keeps them. Seidel's increments, rows that bound moved to the front. */
static int largest(Rows *rows, double p, double q, double *x, double *a)
{
    *x = p > 0 ? HUGE_SPEED : p < 0 ? -HUGE_SPEED : 0.0;
    *a = q > 0 ? HUGE_SPEED : q < 0 ? -HUGE_SPEED : 0.0;
    for (size_t i = 0; i < rows->n; ++i) {
        Row at = rows->row[i];
        double size = (at.p < 0 ? -at.p : at.p) + (at.q < 0 ? -at.q : at.q);
        if (at.p * *x + at.q * *a <= at.r + ROUNDING * (1.0 + (at.r < 0 ? -at.r : at.r))) continue;
        if (size < 1e-14) return 0;
        /* on the line p x + q a = r: start + s (-q, p), as far as x and a may be however small the row is */
        double norm = at.p * at.p + at.q * at.q, x0 = at.p * at.r / norm, a0 = at.q * at.r / norm;
        double low = -HUGE_SPEED / size, high = HUGE_SPEED / size;
        for (size_t j = 0; j < i; ++j) {
            Row other = rows->row[j];
            double slope = other.q * at.p - other.p * at.q, room = other.r - other.p * x0 - other.q * a0;
            double width = ((other.p < 0 ? -other.p : other.p) + (other.q < 0 ? -other.q : other.q)) * size;
            if (slope > 1e-13 * width) { double s = room / slope; if (s < high) high = s; }
            else if (slope < -1e-13 * width) { double s = room / slope; if (s > low) low = s; }
            else if (room < -1e-9 * (1.0 + (other.r < 0 ? -other.r : other.r))) return 0;
        }
        if (low > high) {
            double gap = low - high, scale = 1.0 + (low < 0 ? -low : low);
            if (gap > 1e-9 * scale) return 0;
            low = high = 0.5 * (low + high);
        }
        double along = q * at.p - p * at.q, s = along > 0 ? high : along < 0 ? low : low > 0 ? low : high < 0 ? high : 0.0;
        *x = x0 - s * at.q;
        *a = a0 + s * at.p;
        for (size_t j = i; j > 0; --j) rows->row[j] = rows->row[j - 1];
        rows->row[0] = at;
    }
    return 1;
}

static void add_all(Rows *rows, size_t m, const double *three, double from_a)
{
    for (size_t i = 0; i < m; ++i) add(rows, three[3 * i], three[3 * i + 1] + from_a * three[3 * i], three[3 * i + 2]);
}

/* Accelerations that rows allow at a squared speed. */
static int between(size_t m, const double *three, double x, double *low, double *high)
{
    *low = -HUGE_SPEED; *high = HUGE_SPEED;
    for (size_t i = 0; i < m; ++i) {
        double p = three[3 * i], q = three[3 * i + 1], room = three[3 * i + 2] - p * x;
        if (q > 1e-14) { if (room / q < *high) *high = room / q; }
        else if (q < -1e-14) { if (room / q > *low) *low = room / q; }
    }
    if (*low <= *high) return 1;
    double gap = *low - *high, scale = 1.0 + (*low < 0 ? -*low : *low);
    *low = *high = 0.5 * (*low + *high);
    return gap <= 1e-6 * scale;
}

static double clipped(double value, double low, double high) { return value < low ? low : value > high ? high : value; }

/* One step back: the squared speeds from which [low, high] behind interval k can be reached. */
static int back(size_t m, double d, const double *left, const double *right, double top, int is_constant, double *low, double *high,
    Row *memory)
{
    Rows rows = {.row = memory, .n = 0};
    double x, a, most, least;
    if (is_constant) {
        add_all(&rows, m, left, 0.0);
        add_all(&rows, m, right, 2.0 * d);
        add(&rows, 1.0, 2.0 * d, *high);
        add(&rows, -1.0, -2.0 * d, -*low);
    } else {
        add_all(&rows, m, right, 0.0);
        add(&rows, 1.0, 0.0, *high);
        add(&rows, -1.0, 0.0, -*low);
        if (!largest(&rows, 1.0, -d, &x, &a)) return 0;
        most = x - d * a;
        if (!largest(&rows, -1.0, d, &x, &a)) return 0;
        least = x - d * a;
        rows.n = 0;
        add_all(&rows, m, left, 0.0);
        add(&rows, 1.0, d, most);
        add(&rows, -1.0, -d, -least);
    }
    add(&rows, 1.0, 0.0, top);
    add(&rows, -1.0, 0.0, 0.0);
    if (!largest(&rows, 1.0, 0.0, &x, &a)) return 0;
    *high = x;
    if (!largest(&rows, -1.0, 0.0, &x, &a)) return 0;
    *low = x > 0.0 ? x : 0.0;
    if (*low > *high) *low = *high;
    return 1;
}

/* One step ahead: the largest squared speed within [low, high], and the accelerations at both ends that lead there. */
static int ahead(size_t m, double d, const double *left, const double *right, int is_constant, double low, double high,
    double x, double *next, double *first, double *second, Row *memory)
{
    Rows rows = {.row = memory, .n = 0};
    double l, h, a, reached;
    if (!between(m, left, x, &l, &h)) return 0;
    if (is_constant) {
        for (size_t i = 0; i < m; ++i) add(&rows, 0.0, right[3 * i + 1] + 2.0 * d * right[3 * i], right[3 * i + 2] - right[3 * i] * x);
        double al = (low - x) / (2.0 * d), ah = (high - x) / (2.0 * d);
        for (size_t i = 0; i < rows.n; ++i) {
            double q = rows.row[i].q, r = rows.row[i].r;
            if (q > 1e-14) { if (r / q < ah) ah = r / q; }
            else if (q < -1e-14) { if (r / q > al) al = r / q; }
        }
        if (l > al) al = l;
        if (h < ah) ah = h;
        if (al > ah + 1e-6 * (1.0 + (al < 0 ? -al : al))) return 0;
        *first = *second = ah;
        *next = clipped(x + 2.0 * d * ah, low, high);
        return 1;
    }
    add_all(&rows, m, right, 0.0);
    add(&rows, 1.0, -d, x + d * h);
    add(&rows, -1.0, d, -x - d * l);
    add(&rows, 1.0, 0.0, high);
    add(&rows, -1.0, 0.0, -low);
    if (!largest(&rows, 1.0, 0.0, &reached, &a)) return 0;
    reached = clipped(reached, low, high);
    double sum = (reached - x) / d, rl, rh;
    if (!between(m, right, reached, &rl, &rh)) return 0;
    double least = l > sum - rh ? l : sum - rh, most = h < sum - rl ? h : sum - rl;
    *first = least > most ? 0.5 * (least + most) : clipped(0.5 * sum, least, most);
    *second = sum - *first;
    *next = reached;
    return 1;
}

/* left, right (n, m, 3): rows at the ends of each interval; top (n + 1): largest squared speeds; ends: those at start and
 * end. memory (6 m + 24) is overwritten. Fills in low, high and x (n + 1), first and second (n). Gives -1, or the interval where nothing keeps all rows;
 * n + that one in the sweep ahead. */
long reach(size_t n, size_t m, const double *u, const double *left, const double *right, const double *top,
    const double *is_constant, const double *ends, double *low, double *high, double *x, double *first, double *second, double *memory);
long reach(size_t n, size_t m, const double *u, const double *left, const double *right, const double *top,
    const double *is_constant, const double *ends, double *low, double *high, double *x, double *first, double *second, double *memory)
{
    Row *row = (Row *)memory;
    double l = ends[1], h = ends[1];
    low[n] = l; high[n] = h;
    for (size_t k = n; k-- > 0;) {
        if (!back(m, u[k + 1] - u[k], left + 3 * m * k, right + 3 * m * k, top[k], is_constant[k] > 0.5, &l, &h, row)) return (long)k;
        low[k] = l; high[k] = h;
    }
    x[0] = ends[0];
    if (ends[0] < low[0] - 1e-9 || ends[0] > high[0] + 1e-9) return 0;
    for (size_t k = 0; k < n; ++k)
        if (!ahead(m, u[k + 1] - u[k], left + 3 * m * k, right + 3 * m * k, is_constant[k] > 0.5, low[k + 1], high[k + 1],
                x[k], x + k + 1, first + k, second + k, row)) return (long)(n + k);
    return -1;
}
