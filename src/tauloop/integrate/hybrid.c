/* One integrator for everything that Tauloop carries forward in time: machines on any route, control loops, drive
   lines, machines with drive lines.

   y' = f(t, y) under modes s that are constant within a step. A mode is 0 or 1; its guard must not be positive in the
   first case and not negative in the second. A step at whose middle or end a guard is violated is cut at the first
   violation, found on the dense output; there modes flip until all guards hold, and the state is reset as they say.
   Behind every step the problem may lead the state back to where it must be: unit quaternions, the loops' manifold.

   A state may carry derivatives of itself along directions (parameters, starts), with rates S' = f_y S + f_p of the
   problem's. An event's instant moves with them too, and so they jump there.

   Steps are explicit (any tableau with a dense output) or implicit (Radau IIA of order 5), and look the same to whoever
   asks for them: `tl_next` takes one and leaves its start, its length and its polynomials in the run. Samples, records,
   criteria and ends are the business of the loops around it: all of them are instants up to which it goes.

   Where a problem is a constant that the compiler sees, its functions are put in line and its sizes are known.

   Sources: Hairer, Norsett, Wanner 1993, Solving Ordinary Differential Equations I, I.14 (derivatives), II.4 to II.6
   (explicit steps, their lengths, their dense output); Hairer, Wanner 1996, II, IV.8 (Radau IIA); Aizerman, Gantmakher
   1958, Determination of stability by linear approximation of a periodic solution of a system of differential equations
   with discontinuous right-hand sides (derivatives at events). */

#include <math.h>
#include <stddef.h>
#include <string.h>

#ifdef __GNUC__
#define TL_INLINE static inline __attribute__((always_inline, unused))
#else
#define TL_INLINE static inline
#endif
/* Loops over stages, whose weights are known then. */
#ifdef __CUDACC__
#define TL_UNROLL _Pragma("unroll")
#elif defined __GNUC__
#define TL_UNROLL _Pragma("GCC unroll 8")
#else
#define TL_UNROLL
#endif

/* What a step comes to. */
enum { TL_STEPPED, TL_UNHEALTHY, TL_TOO_SMALL, TL_ASTRAY, TL_CROWDED };

/* Most terms of a dense output. */
#define TL_MOST_DEGREE 8

/* A step is shortened to a share of what its error allows, and changes by these factors at most. */
#define TL_SAFETY 0.9
#define TL_LEAST_FACTOR 0.2
#define TL_GREATEST_FACTOR 10.0
/* What the last error says of the next step, against lengths that swing at the border of stability; and the least last
   error that counts. */
#define TL_MEMORY 0.04
#define TL_LEAST_ERROR 1e-4
/* After a stage that could not be computed, or a way back that was too long, it is shortened by this. */
#define TL_RETREAT 0.25
/* A step that ends within this share of its length before an instant is stretched to it. */
#define TL_STRETCH 0.01
/* No step shorter than this is tried, s; one as short as the second that still leads where there are no rates is the
   last: where a motion creeps up to such a place a shorter one would not move it by a unit in the last place. */
#ifndef TL_SMALLEST_STEP /* in floats they are longer */
#define TL_SMALLEST_STEP 1e-13
#define TL_SMALLEST_RETREAT 1e-10
#endif
/* A step is given up where the way back is this many times as long as its error may be. On regular motions it is as
   short as the error itself (measured: below 0.4); near a pose where loops lose rank it is 1e4 and more. */
#define TL_FARTHEST_RETURN 10.0
/* An event is located no nearer to the last one than the first, s: guards that have just passed zero are rounding. So
   many events in a row within the second, s, are given up. */
#define TL_ADVANCE 1e-10
#define TL_CROWD 1e-9
#define TL_MOST_CROWDED 200
/* Rounds in which modes flip until they agree, and tries that locate an event. */
#define TL_ROUNDS 40
#define TL_TRIES 90
/* Of Newton's method in implicit steps: iterations, and the rate from which on the Jacobian is made anew. */
#define TL_NEWTON 7
#define TL_STALE 1e-3

typedef struct tl_run tl_run;

typedef struct {
    int states, modes;
    int guesses; /* numbers that rates iterate from; they are put back where a step is given up */
    int known;   /* numbers that rates leave in `run->known` */
    /* Rates, and guards where they are wanted; whether they can be relied on. */
    int (*rate)(tl_run *run, double time, const double *y, double *rate, double *guards);
    /* Puts the state where the modes prescribe it; null without modes. */
    void (*reset)(tl_run *run, double time, double *y);
    /* Leads the state back: 1 where it moved, 0 where not, -1 where there is no way. Null where it is nowhere bound. */
    int (*back)(tl_run *run, double time, double *y);
    /* Directions, whose derivatives lie one behind the other behind the state itself and count among the states; and the
       first modes, of whose guards rates leave derivatives in `run->slopes`. */
    int along, sloped;
} tl_problem;

/* An explicit method, whose last stage is the rate at the end of the step; Radau IIA where A is null. Without a dense
   output (degree 0, and no error) that last stage is left to the next step, which may begin under other forces. */
typedef struct {
    int stages, degree;
    double exponent;     /* one over the order by which the error steers the steps */
    const double *A;     /* (stages, stages) */
    const double *c;     /* (stages) */
    const double *error; /* (stages); null for steps of one length */
    const double *dense; /* (stages, degree) */
} tl_method;

struct tl_run {
    /* Given by the caller. */
    double time, step;          /* the step is the proposal for the next one */
    double rtol, atol, longest;
    double *y, *s, *guess, *known;
    double *slopes;             /* (along, sloped), and behind them (along) for what instants of events change by */
    void *data;                 /* the problem's own */
    /* Left by `tl_next` of the step that was taken. */
    double from, length, share; /* where it begins; its length; which share of it counts, 1 without an event */
    int is_event;
    double *start, *Q;          /* state at its beginning; y = start + Q_1 x + Q_2 x^2 + ..., (degree, states) */
    double *known_at_start;
    /* Counted. */
    double evaluations, rejected, steps, events;
    /* Its own. */
    int is_known, crowded, has_jacobian, has_factors, is_behind_event;
    double factored, last_length, last_error;
    double *K, *next, *guards, *guards_end, *found, *rates, *near, *known_end, *known_now, *work, *J, *real, *pair, *Z;
    int *pivots;
};

/* Doubles that a run needs beside what the caller gives, and integers where its steps are implicit. */
#define TL_ROOM(states, modes, guesses, known, stages, degree, is_implicit) \
    ((states) * ((stages) + (degree) + 4) + 3 * (modes) + (guesses) + 3 * (known) \
        + ((is_implicit) ? (states) * (6 * (states) + 10) : 0) + 1)
#define TL_PIVOTS(states, is_implicit) ((is_implicit) ? 3 * (states) : 1)

/* Shares the room out. The caller has set what is his; then `tl_next`, as often as wanted. */
TL_INLINE void tl_prepare(const tl_problem *p, const tl_method *m, tl_run *r, double *room, int *pivots)
{
    const size_t n = (size_t)p->states;
    r->K = room, room += n * (size_t)m->stages;
    r->Q = room, room += n * (size_t)m->degree;
    r->start = room, room += n;
    r->next = room, room += n;
    r->found = room, room += n;
    r->rates = room, room += n;
    r->guards = room, room += p->modes;
    r->guards_end = room, room += p->modes;
    r->work = room, room += p->modes;
    r->near = room, room += p->guesses;
    r->known_at_start = room, room += p->known;
    r->known_end = room, room += p->known;
    r->known_now = room, room += p->known;
    if (!m->A) {
        r->J = room, room += n * n;
        r->real = room, room += n * n;
        r->pair = room, room += 4 * n * n;
        r->Z = room;
    }
    r->pivots = pivots;
    r->is_known = r->crowded = r->has_jacobian = r->has_factors = r->is_event = r->is_behind_event = 0;
    r->evaluations = r->rejected = r->steps = r->events = 0.0;
    r->last_length = 0.0;
    r->last_error = TL_LEAST_ERROR;
}

/* n numbers from one place to another; memcpy of a device goes byte by byte. */
TL_INLINE void tl_put(double *to, const double *from, size_t n)
{
    for (size_t i = 0; i < n; ++i) to[i] = from[i];
}

TL_INLINE double tl_along(const tl_problem *p, const tl_method *m, const tl_run *r, int i, double x)
{
    double sum = 0.0;
    for (int k = m->degree - 1; k >= 0; --k) sum = x * (r->Q[k * p->states + i] + sum);
    return r->start[i] + sum;
}

TL_INLINE int tl_is_finite(const tl_problem *p, const double *values)
{
    double zero = 0.0;
    for (int i = 0; i < p->states; ++i) zero += values[i] - values[i];
    return zero == 0.0;
}

/* Rates; whether they can be relied on. Of stages within a step only the last is looked at: what is not finite stays so. */
TL_INLINE int tl_stage(const tl_problem *p, tl_run *r, double time, const double *y, double *rate, double *guards)
{
    r->evaluations += 1.0;
    return p->rate(r, time, y, rate, guards);
}

TL_INLINE int tl_rates(const tl_problem *p, tl_run *r, double time, const double *y, double *rate, double *guards)
{
    return tl_stage(p, r, time, y, rate, guards) && tl_is_finite(p, rate);
}

/* How far the modes are from being right: positive where one is violated. */
TL_INLINE double tl_violation(const tl_problem *p, const tl_run *r, const double *guards)
{
    double most = -HUGE_VAL;
    for (int i = 0; i < p->modes; ++i) {
        const double over = r->s[i] != 0.0 ? -guards[i] : guards[i];
        if (over > most) most = over;
    }
    return most;
}

/* How the instant of the event that has just been met changes along the directions, -(g_y S_j + g_p) / (g_y f); whether
   it does. By linearity g_y f is what the guard's derivative changes by where f is added to the first of them. */
TL_INLINE int tl_instant(const tl_problem *p, tl_run *r)
{
    const int n = p->states / (1 + p->along);
    double most = 0.0, *change = r->slopes + p->along * p->sloped;
    int met = 0;
    for (int i = 0; i < p->sloped; ++i) {
        const double over = r->s[i] != 0.0 ? -r->guards[i] : r->guards[i];
        if (over > most) most = over, met = i;
    }
    for (int j = 0; j < p->along; ++j) change[j] = r->slopes[j * p->sloped + met];
    tl_put(r->found, r->y, p->states);
    for (int i = 0; i < n; ++i) r->found[n + i] += r->K[i];
    if (!(most > 0.0) || !tl_rates(p, r, r->time, r->found, r->rates, r->work)) return 0;
    const double speed = r->slopes[met] - change[0];
    for (int j = 0; j < p->along; ++j) change[j] /= -speed;
    return speed != 0.0;
}

/* Derivatives at an instant that moves with the event, from those at one that does not (sign 1), and back (-1). */
TL_INLINE void tl_shift(const tl_problem *p, const tl_run *r, double sign)
{
    const int n = p->states / (1 + p->along);
    for (int j = 0; j < p->along; ++j)
        for (int i = 0; i < n; ++i) r->y[(1 + j) * n + i] += sign * r->slopes[p->along * p->sloped + j] * r->K[i];
}

/* Flips modes until all guards hold; the rates at the state are known then. */
TL_INLINE int tl_agree(const tl_problem *p, tl_run *r)
{
    int good = 1, flipped = 0, shifted = 0;
    for (int round = 0; round <= TL_ROUNDS; ++round) {
        int flips = 0;
        good = tl_rates(p, r, r->time, r->y, r->K, p->modes ? r->guards : 0);
        if (round == TL_ROUNDS) break;
        if (!round && good && p->along && r->is_behind_event && (shifted = tl_instant(p, r))) tl_shift(p, r, 1.0);
        for (int i = 0; i < p->modes; ++i)
            if (r->s[i] != 0.0 ? r->guards[i] < 0.0 : r->guards[i] > 0.0) {
                r->s[i] = 1.0 - r->s[i];
                ++flips;
            }
        if (!flips) break;
        flipped = 1;
        if (p->reset) p->reset(r, r->time, r->y);
    }
    if (shifted) {
        tl_shift(p, r, -1.0);
        good = good && tl_rates(p, r, r->time, r->y, r->K, r->guards);
    }
    if (p->known) tl_put(r->known_now, r->known, p->known);
    r->is_known = 1, r->is_behind_event = 0;
    if (flipped) r->has_jacobian = r->has_factors = 0;
    return good;
}

/* An error in shares of what is allowed, root mean square over the state. */
TL_INLINE double tl_norm(const tl_problem *p, const tl_run *r, const double *error, const double *to)
{
    double total = 0.0;
    for (int i = 0; i < p->states; ++i) {
        const double a = fabs(r->y[i]), b = fabs(to[i]);
        const double share = error[i] / (r->atol + r->rtol * (a > b ? a : b));
        total += share * share;
    }
    return sqrt(total / p->states);
}

/* Stages of an explicit step; whether all could be computed. `norm` becomes that of the error. */
TL_INLINE int tl_explicit(const tl_problem *p, const tl_method *m, tl_run *r, double h, double *norm)
{
    const int n = p->states, S = m->stages;
    TL_UNROLL
    for (int s = 1; s < S; ++s) {
        for (int i = 0; i < n; ++i) {
            double sum = 0.0;
            TL_UNROLL
            for (int j = 0; j < s; ++j)
                if (m->A[s * S + j] != 0.0) sum += m->A[s * S + j] * r->K[j * n + i];
            r->next[i] = r->y[i] + h * sum;
        }
        if (s + 1 == S && !m->degree) return tl_is_finite(p, r->next);
        double *guards = s + 1 == S && p->modes ? r->guards_end : 0;
        if (!tl_stage(p, r, r->time + m->c[s] * h, r->next, r->K + s * n, guards)) return 0;
    }
    if (!tl_is_finite(p, r->next) || !tl_is_finite(p, r->K + (S - 1) * n)) return 0;
    if (p->known) tl_put(r->known_end, r->known, p->known);
    *norm = 0.0;
    if (m->error) {
        for (int i = 0; i < n; ++i) {
            double sum = 0.0;
            TL_UNROLL
            for (int s = 0; s < S; ++s) sum += m->error[s] * r->K[s * n + i];
            r->found[i] = h * sum;
        }
        *norm = tl_norm(p, r, r->found, r->next);
    }
    return 1;
}

/* The polynomials of an explicit step. */
TL_INLINE void tl_dense(const tl_problem *p, const tl_method *m, tl_run *r, double h)
{
    const int n = p->states;
    for (int i = 0; i < n; ++i) {
        double sums[TL_MOST_DEGREE] = {0.0};
        TL_UNROLL
        for (int s = 0; s < m->stages; ++s) {
            const double rate = r->K[s * n + i];
            TL_UNROLL
            for (int k = 0; k < m->degree; ++k)
                if (m->dense[s * m->degree + k] != 0.0) sums[k] += h * m->dense[s * m->degree + k] * rate;
        }
        TL_UNROLL
        for (int k = 0; k < m->degree; ++k) r->Q[k * n + i] = sums[k];
    }
}

/* Radau IIA: places of the stages; M = inv(A) = T L inv(T) with L = diag(g, [[a, b], [-b, a]]); weights of the error;
   and the coefficients of the polynomial through the stages. */
static const double tl_c[3] = {0.1550510257216822, 0.6449489742783178, 1.0};
static const double tl_M[3][3] = {{3.2247448713915890, 1.1678400846904056, -0.2531972647421809},
    {-3.5678400846904056, 0.7752551286084110, 1.0531972647421809},
    {5.5319726474218082, -7.5319726474218082, 5.0}};
static const double tl_T[3][3] = {{0.09443876248897524, -0.1412552950209542, 0.030029194105147424},
    {0.2502131229653333, 0.20412935229379994, -0.3829421127572619}, {1.0, 1.0, 0.0}};
static const double tl_TI[3][3] = {{4.178718591551905, 0.32768282076106237, 0.5233764454994495},
    {-4.178718591551905, -0.32768282076106237, 0.47662355450055044},
    {0.5028726349457868, -2.571926949855605, 0.5960392048282249}};
static const double tl_L[3] = {3.637834252744496, 2.6810828736277523, 3.0504301992474105};
static const double tl_e[3] = {-10.048809399827416, 1.382142733160749, -0.3333333333333333};
static const double tl_P[3][3] = {{10.048809399827416, -1.382142733160749, 0.3333333333333333},
    {-25.62959144707664, 10.296258113743306, -2.6666666666666665},
    {15.580782047249224, -8.914115380582556, 3.3333333333333335}};

/* L U factors with row exchanges, in place; whether the matrix (n, n) is regular. */
static inline int tl_factor(double *A, int *pivots, int n)
{
    for (int c = 0; c < n; ++c) {
        int best = c;
        for (int i = c + 1; i < n; ++i) if (fabs(A[i * n + c]) > fabs(A[best * n + c])) best = i;
        if (!(fabs(A[best * n + c]) > 0.0)) return 0;
        pivots[c] = best;
        if (best != c)
            for (int k = 0; k < n; ++k) {
                const double t = A[c * n + k];
                A[c * n + k] = A[best * n + k], A[best * n + k] = t;
            }
        for (int i = c + 1; i < n; ++i) {
            const double f = A[i * n + c] /= A[c * n + c];
            if (f != 0.0)
                for (int k = c + 1; k < n; ++k) A[i * n + k] -= f * A[c * n + k];
        }
    }
    return 1;
}

static inline void tl_substitute(const double *A, const int *pivots, int n, double *b)
{
    for (int c = 0; c < n; ++c) {
        const double t = b[c];
        b[c] = b[pivots[c]], b[pivots[c]] = t;
    }
    for (int i = 1; i < n; ++i)
        for (int k = 0; k < i; ++k) b[i] -= A[i * n + k] * b[k];
    for (int i = n - 1; i >= 0; --i) {
        for (int k = i + 1; k < n; ++k) b[i] -= A[i * n + k] * b[k];
        b[i] /= A[i * n + i];
    }
}

/* Rates that iterate from where the step began, and not from where a trial has led. */
TL_INLINE int tl_rates_near(const tl_problem *p, tl_run *r, double time, const double *y, double *rate, double *guards)
{
    if (p->guesses) tl_put(r->guess, r->near, p->guesses);
    return tl_rates(p, r, time, y, rate, guards);
}

/* J = df/dy by differences at the beginning of the step, where the rates are K; whether they could be computed. */
TL_INLINE int tl_jacobian(const tl_problem *p, tl_run *r)
{
    const int n = p->states;
    tl_put(r->next, r->y, n);
    for (int j = 0; j < n; ++j) {
        const double size = fabs(r->y[j]) > 1e-5 ? fabs(r->y[j]) : 1e-5;
        volatile double moved = r->y[j] + (r->K[j] < 0.0 ? -1.5e-8 : 1.5e-8) * size;
        const double d = moved - r->y[j];
        r->next[j] = moved;
        if (!tl_rates_near(p, r, r->time, r->next, r->rates, 0)) return 0;
        for (int i = 0; i < n; ++i) r->J[i * n + j] = (r->rates[i] - r->K[i]) / d;
        r->next[j] = r->y[j];
    }
    r->has_jacobian = 2; /* of this step */
    r->has_factors = 0;
    return 1;
}

TL_INLINE int tl_factors(const tl_problem *p, tl_run *r, double h)
{
    const int n = p->states, N = 2 * n;
    if (r->has_factors && r->factored == h) return 1;
    for (int i = 0; i < n; ++i)
        for (int j = 0; j < n; ++j) {
            const double J = r->J[i * n + j], one = i == j ? 1.0 / h : 0.0;
            r->real[i * n + j] = tl_L[0] * one - J;
            r->pair[i * N + j] = r->pair[(i + n) * N + j + n] = tl_L[1] * one - J;
            r->pair[i * N + j + n] = tl_L[2] * one;
            r->pair[(i + n) * N + j] = -tl_L[2] * one;
        }
    r->has_factors = tl_factor(r->real, r->pivots, n) && tl_factor(r->pair, r->pivots + n, N);
    r->factored = h;
    return r->has_factors;
}

/* A step of Radau IIA; 1 with the norm of its error, 0 where rates could not be computed, -1 where Newton's method does
   not converge. `next` is its end; `factor` by how much the iterations let the next one grow. */
TL_INLINE int tl_implicit(const tl_problem *p, tl_run *r, double h, int after_rejection, double *norm, double *factor)
{
    const int n = p->states;
    double *Z = r->Z, *F = Z + 3 * n, *d = F + 3 * n, *error = d + 3 * n;
    double tolerance = sqrt(r->rtol) < 0.03 ? sqrt(r->rtol) : 0.03;
    if (tolerance < 2e-15 / r->rtol) tolerance = 2e-15 / r->rtol;
    if (!r->has_jacobian && !tl_jacobian(p, r)) return 0;
    for (;;) {
        if (!tl_factors(p, r, h)) return -1;
        for (int k = 0; k < 3; ++k) {
            /* from where the polynomials of the last step lead */
            const double x = r->last_length > 0.0 ? 1.0 + tl_c[k] * h / r->last_length : 0.0;
            for (int i = 0; i < n; ++i) {
                const double *Q = r->Q + i;
                const double ahead = x * (Q[0] + x * (Q[n] + x * Q[2 * n])) - (Q[0] + Q[n] + Q[2 * n]);
                Z[k * n + i] = x > 0.0 ? ahead : 0.0;
            }
        }
        double before = 0.0, rate = 0.0;
        int good = 1, converged = 0, tries = 0;
        while (tries < TL_NEWTON && good) {
            for (int k = 0; k < 3 && good; ++k) {
                for (int i = 0; i < n; ++i) r->next[i] = r->y[i] + Z[k * n + i];
                good = tl_rates_near(p, r, r->time + tl_c[k] * h, r->next, F + k * n, 0);
            }
            if (!good) break;
            for (int i = 0; i < n; ++i) {
                const double z0 = Z[i] / h, z1 = Z[n + i] / h, z2 = Z[2 * n + i] / h;
                const double a = F[i] - (tl_M[0][0] * z0 + tl_M[0][1] * z1 + tl_M[0][2] * z2);
                const double b = F[n + i] - (tl_M[1][0] * z0 + tl_M[1][1] * z1 + tl_M[1][2] * z2);
                const double c = F[2 * n + i] - (tl_M[2][0] * z0 + tl_M[2][1] * z1 + tl_M[2][2] * z2);
                for (int k = 0; k < 3; ++k) d[k * n + i] = tl_TI[k][0] * a + tl_TI[k][1] * b + tl_TI[k][2] * c;
            }
            tl_substitute(r->real, r->pivots, n, d);
            tl_substitute(r->pair, r->pivots + n, 2 * n, d + n);
            double total = 0.0;
            for (int i = 0; i < n; ++i) {
                const double scale = r->atol + r->rtol * fabs(r->y[i]), a = d[i], b = d[n + i], c = d[2 * n + i];
                for (int k = 0; k < 3; ++k) {
                    d[k * n + i] = tl_T[k][0] * a + tl_T[k][1] * b + tl_T[k][2] * c;
                    total += d[k * n + i] / scale * (d[k * n + i] / scale);
                }
            }
            const double moved = sqrt(total / (3 * n));
            if (moved - moved != 0.0) break;
            rate = tries ? moved / before : 0.0;
            if (tries && (rate >= 1.0 || pow(rate, TL_NEWTON - tries) / (1.0 - rate) * moved > tolerance)) break;
            for (int i = 0; i < 3 * n; ++i) Z[i] += d[i];
            ++tries;
            if (moved == 0.0 || (tries > 1 && rate / (1.0 - rate) * moved < tolerance)) {
                converged = 1;
                break;
            }
            before = moved;
        }
        if (!converged) {
            if (r->has_jacobian == 2) return good ? -1 : 0;
            if (!tl_jacobian(p, r)) return 0;
            continue;
        }
        for (int i = 0; i < n; ++i) {
            r->next[i] = r->y[i] + Z[2 * n + i];
            F[i] = (tl_e[0] * Z[i] + tl_e[1] * Z[n + i] + tl_e[2] * Z[2 * n + i]) / h;
            error[i] = r->K[i] + F[i];
        }
        tl_substitute(r->real, r->pivots, n, error);
        *norm = tl_norm(p, r, error, r->next);
        if (*norm > 1.0 && after_rejection) {
            for (int i = 0; i < n; ++i) r->found[i] = r->y[i] + error[i];
            if (!tl_rates_near(p, r, r->time, r->found, error, 0)) return 0;
            for (int i = 0; i < n; ++i) error[i] += F[i];
            tl_substitute(r->real, r->pivots, n, error);
            *norm = tl_norm(p, r, error, r->next);
        }
        const double worth = (2.0 * TL_NEWTON + 1.0) / (2.0 * TL_NEWTON + tries);
        *factor = *norm > 0.0 ? TL_SAFETY * worth * pow(*norm, -0.25) : TL_GREATEST_FACTOR;
        /* errors that have begun to grow go on to (Gustafsson 1994) */
        const double growth = r->last_length > 0.0 && *norm > 0.0 ? h / r->last_length * pow(r->last_error / *norm, 0.25) : 1.0;
        if (growth < 1.0) *factor *= growth;
        if (*norm < 1.0) {
            for (int k = 0; k < 3; ++k)
                for (int i = 0; i < n; ++i)
                    r->Q[k * n + i] = tl_P[k][0] * Z[i] + tl_P[k][1] * Z[n + i] + tl_P[k][2] * Z[2 * n + i];
            r->has_jacobian = tries > 2 && rate > TL_STALE ? 0 : 1;
        }
        return 1;
    }
}

/* Where in the step that is known by its polynomials a guard is violated first; 1 where none is. */
TL_INLINE double tl_event(const tl_problem *p, const tl_method *m, tl_run *r, double h)
{
    double lo = 0.0, hi = 1.0, v_lo = tl_violation(p, r, r->guards), v_hi = tl_violation(p, r, r->guards_end), v;
    double at = 0.5;
    const double least = TL_ADVANCE / h < 0.25 ? TL_ADVANCE / h : 0.25;
    int side = 0;
    for (int tries = -2; tries < TL_TRIES; ++tries) {
        if (tries == -1) {
            /* the bracket is half of the step; not so near to its beginning that only rounding is seen */
            if (v_hi <= 0.0) return 1.0;
            if (lo >= least) continue;
            at = least;
        } else if (tries >= 0) {
            if ((hi - lo) * h <= 1e-15 * (1.0 + r->time) || hi - lo <= 1e-16) break;
            at = tries % 3 != 2 && v_lo < 0.0 ? (lo * v_hi - hi * v_lo) / (v_hi - v_lo) : 0.5 * (lo + hi);
        }
        for (int i = 0; i < p->states; ++i) r->found[i] = tl_along(p, m, r, i, at);
        tl_rates(p, r, r->time + at * h, r->found, r->rates, r->work);
        v = tl_violation(p, r, r->work);
        if (tries == -2) {
            if (v > 0.0) hi = at, v_hi = v;
            else if (v_hi > 0.0) lo = at, v_lo = v;
        } else if (tries == -1) {
            if (v > 0.0) hi = at;
            lo = at, v_lo = v;
        } else if (v > 0.0) {
            hi = at, v_hi = v;
            if (side == 1) v_lo *= 0.5;
            side = 1;
        } else {
            lo = at, v_lo = v;
            if (side == -1) v_hi *= 0.5;
            side = -1;
        }
    }
    return hi;
}

/* One step that is good enough, up to an instant at most; what it comes to. Where it is taken, the run stands at its end
   and tells it; else at its beginning. Modes agree from the next step on; whoever changes what the rates depend on sets
   `is_known` to zero. */
TL_INLINE int tl_next(const tl_problem *p, const tl_method *m, tl_run *r, double limit)
{
    const int n = p->states;
    if (!r->is_known && !tl_agree(p, r)) return TL_UNHEALTHY;
    if (p->guesses) tl_put(r->near, r->guess, p->guesses);
    int after_rejection = 0;
    for (;;) {
        double h = r->step < r->longest ? r->step : r->longest;
        const int is_last = r->time + h * (1.0 + TL_STRETCH) >= limit;
        if (is_last) h = limit - r->time;
        double norm = 0.0, factor = TL_RETREAT, share = 1.0;
        int healthy, good, moved = 0;
        const int is_fixed = m->A && !m->error;
        if (m->A) {
            healthy = good = tl_explicit(p, m, r, h, &norm);
            if (good && !is_fixed)
                factor = norm > 0.0
                    ? TL_SAFETY * pow(norm, 0.75 * TL_MEMORY - m->exponent) * pow(r->last_error, TL_MEMORY)
                    : TL_GREATEST_FACTOR;
        } else {
            const int found = tl_implicit(p, r, h, after_rejection, &norm, &factor);
            healthy = found != 0, good = found > 0;
            if (found < 0) factor = 0.5;
        }
        if (good && !(norm < 1.0)) good = 0;
        factor = factor > TL_LEAST_FACTOR ? factor : TL_LEAST_FACTOR;
        factor = factor < TL_GREATEST_FACTOR ? factor : TL_GREATEST_FACTOR;
        if (after_rejection && factor > 1.0) factor = 1.0;
        if (good) {
            tl_put(r->start, r->y, n);
            if (m->A) tl_dense(p, m, r, h);
            else {
                /* the rates at the end, which the next step begins with */
                double *guards = p->modes ? r->guards_end : 0;
                healthy = good = tl_rates_near(p, r, r->time + h, r->next, r->Z, guards);
                if (p->known) tl_put(r->known_end, r->known, p->known);
            }
        }
        if (good) {
            const double *end = m->A ? r->K + (m->stages - 1) * n : r->Z; /* the rates there */
            if (p->modes) share = tl_event(p, m, r, h);
            const int is_event = share < 1.0 || (p->modes && tl_violation(p, r, r->guards_end) > 0.0);
            if (share < 1.0) for (int i = 0; i < n; ++i) r->next[i] = tl_along(p, m, r, i, share);
            tl_put(r->found, r->next, n);
            if (p->back) moved = p->back(r, r->time + share * h, r->next);
            if (moved && !is_fixed) {
                for (int i = 0; i < n; ++i) r->found[i] = r->next[i] - r->found[i];
                good = moved > 0 && tl_norm(p, r, r->found, r->next) < TL_FARTHEST_RETURN;
                if (!good) healthy = 0, factor = TL_RETREAT, r->last_length = 0.0;
            }
            if (good) {
                r->from = r->time, r->length = h, r->share = share, r->is_event = is_event;
                r->time = is_last && share == 1.0 ? limit : r->time + share * h;
                tl_put(r->y, r->next, n);
                if (p->known) {
                    tl_put(r->known_at_start, r->known_now, p->known);
                    tl_put(r->known_now, r->known_end, p->known);
                }
                tl_put(r->K, end, n);
                if (p->modes) tl_put(r->guards, r->guards_end, p->modes);
                r->steps += 1.0;
                r->is_known = !moved && m->degree;
                r->last_length = is_event ? 0.0 : h;
                if (!is_fixed && !is_event) {
                    if (!is_last || factor < 1.0) r->step = h * factor;
                    r->last_error = norm > TL_LEAST_ERROR ? norm : TL_LEAST_ERROR;
                }
                if (is_event) {
                    r->events += 1.0;
                    r->crowded = share * h < TL_CROWD ? r->crowded + 1 : 0;
                    r->is_known = 0, r->is_behind_event = 1;
                    r->step = h;
                    if (r->crowded > TL_MOST_CROWDED) return TL_CROWDED;
                }
                if (moved < 0) return TL_ASTRAY;
                return TL_STEPPED;
            }
        }
        r->rejected += 1.0;
        if (p->guesses) tl_put(r->guess, r->near, p->guesses);
        if (is_fixed) return moved < 0 ? TL_ASTRAY : TL_UNHEALTHY;
        if (h < (healthy ? TL_SMALLEST_STEP : TL_SMALLEST_RETREAT))
            return moved < 0 ? TL_ASTRAY : healthy ? TL_TOO_SMALL : TL_UNHEALTHY;
        after_rejection = 1;
        r->step = h * factor;
    }
}
