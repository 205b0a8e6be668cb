/* Problems with known solutions for `hybrid.c`, in C alone. Every line that is printed: name, outcome, time, state (two
   numbers), steps, evaluations, events. Exits with the number of the first check that fails. */

#include "hybrid.c"

#include <stdio.h>
#include <stdlib.h>

static const double A[49] = {0, 0, 0, 0, 0, 0, 0, 1. / 5, 0, 0, 0, 0, 0, 0, 3. / 40, 9. / 40, 0, 0, 0, 0, 0, 44. / 45,
    -56. / 15, 32. / 9, 0, 0, 0, 0, 19372. / 6561, -25360. / 2187, 64448. / 6561, -212. / 729, 0, 0, 0, 9017. / 3168,
    -355. / 33, 46732. / 5247, 49. / 176, -5103. / 18656, 0, 0, 35. / 384, 0, 500. / 1113, 125. / 192, -2187. / 6784,
    11. / 84, 0};
static const double c[7] = {0, 1. / 5, 3. / 10, 4. / 5, 8. / 9, 1, 1};
static const double error[7] = {-71. / 57600, 0, 71. / 16695, -71. / 1920, 17253. / 339200, -22. / 525, 1. / 40};
static const double dense[28] = {1, -8048581381. / 2820520608, 8663915743. / 2820520608, -12715105075. / 11282082432, 0,
    0, 0, 0, 0, 131558114200. / 32700410799, -68118460800. / 10900136933, 87487479700. / 32700410799, 0,
    -1754552775. / 470086768, 14199869525. / 1410260304, -10690763975. / 1880347072, 0, 127303824393. / 49829197408,
    -318862633887. / 49829197408, 701980252875. / 199316789632, 0, -282668133. / 205662961, 2019193451. / 616988883,
    -1453857185. / 822651844, 0, 40617522. / 29380423, -110615467. / 29380423, 69997945. / 29380423};
static const tl_method explicit_ = {7, 4, 0.2, A, c, error, dense};
static const tl_method implicit = {1, 3, 0.25, 0, 0, 0, 0};

static int swing(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)run, (void)time, (void)guards;
    rate[0] = y[1], rate[1] = -y[0];
    return 1;
}

/* Van der Pol's oscillator, stiff. */
static int van_der_pol(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)run, (void)time, (void)guards;
    rate[0] = y[1], rate[1] = ((1.0 - y[0] * y[0]) * y[1] - y[0]) * 1e6;
    return 1;
}

/* A ball under gravity: the mode is "has touched the ground", and ends at once, for then it goes up. */
static int fall(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)time;
    rate[0] = y[1], rate[1] = -9.81;
    if (guards) guards[0] = run->s[0] != 0.0 ? (y[1] > 0.0 ? -1.0 : 1.0) : y[1] < 0.0 ? -y[0] : -1.0;
    return 1;
}

static void bounce(tl_run *run, double time, double *y)
{
    (void)time;
    if (run->s[0] != 0.0) y[0] = 0.0, y[1] = -*(const double *)run->data * y[1];
}

/* A pendulum of length 1 in the plane, x'' = -l x, y'' = -l y - g, led back onto its circle behind every step. */
static int pendulum(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)run, (void)time, (void)guards;
    const double l = (y[2] * y[2] + y[3] * y[3] - 9.81 * y[1]) / (y[0] * y[0] + y[1] * y[1]);
    rate[0] = y[2], rate[1] = y[3], rate[2] = -l * y[0], rate[3] = -l * y[1] - 9.81;
    return 1;
}

static int onto_circle(tl_run *run, double time, double *y)
{
    (void)run, (void)time;
    const double length = sqrt(y[0] * y[0] + y[1] * y[1]);
    y[0] /= length, y[1] /= length;
    const double out = y[0] * y[2] + y[1] * y[3];
    y[2] -= out * y[0], y[3] -= out * y[1];
    return 1;
}

static int nowhere(tl_run *run, double time, double *y)
{
    (void)run, (void)time;
    return y[0] < 0.5 ? -1 : 0;
}

/* y' = -1 where y is positive, nothing elsewhere: the end of the world at t = 1. */
static int ends(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)run, (void)time, (void)guards;
    rate[0] = -1.0, rate[1] = 0.0;
    return y[0] > 0.0;
}

/* A held number drives; a guess follows the state; the rate leaves what it has seen. */
static int held(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    (void)time, (void)guards;
    rate[0] = *(const double *)run->data, rate[1] = 2.0 * run->guess[0] - 2.0 * run->guess[0];
    run->guess[0] = run->known[0] = y[0];
    return 1;
}

static int failed = 0, count = 0;

static void check(int holds)
{
    ++count;
    if (!holds && !failed) failed = count;
}

static int go(const char *name, const tl_problem *p, const tl_method *m, double *y, double end, double rtol, void *data,
    double *known, tl_run *r)
{
    static double room[1000], s[2], guess[2], unused[2];
    static int pivots[20];
    const tl_run begin = {.step = 1e-6, .rtol = rtol, .atol = 1e-3 * rtol, .longest = 1e9, .y = y, .s = s,
        .guess = guess, .known = known ? known : unused, .data = data};
    s[0] = s[1] = guess[0] = guess[1] = 0.0;
    *r = begin;
    tl_prepare(p, m, r, room, pivots);
    int code = TL_STEPPED;
    double from = 0.0;
    while (r->time < end && code == TL_STEPPED) {
        code = tl_next(p, m, r, end);
        /* the polynomials lead from the beginning to the end that was reached, unless that was moved */
        for (int i = 0; i < p->states && code == TL_STEPPED && !p->back; ++i)
            check(fabs(tl_along(p, m, r, i, r->share) - r->y[i]) <= 1e-12 * (1.0 + fabs(r->y[i])));
        if (code == TL_STEPPED) check(r->from == from);
        from = r->time;
    }
    printf("%s %d %.17g %.17g %.17g %.0f %.0f %.0f\n", name, code, r->time, y[0], y[1], r->steps, r->evaluations,
        r->events);
    return code;
}

int main(void)
{
    const tl_problem oscillator = {2, 0, 0, 0, swing, 0, 0, 0, 0}, stiff = {2, 0, 0, 0, van_der_pol, 0, 0, 0, 0};
    const tl_problem ball = {2, 1, 0, 0, fall, bounce, 0, 0, 0}, circle = {4, 0, 0, 0, pendulum, 0, onto_circle, 0, 0};
    const tl_problem border = {2, 0, 0, 0, ends, 0, 0, 0, 0}, lost = {2, 0, 0, 0, swing, 0, nowhere, 0, 0};
    const tl_problem sampled = {2, 0, 1, 1, held, 0, 0, 0, 0};
    const tl_method *methods[2] = {&explicit_, &implicit};
    const char *names[2][7] = {
        {"swing_explicit", "ball_explicit", "zeno_explicit", "circle_explicit", "border_explicit", "lost_explicit", "held"},
        {"swing_implicit", "ball_implicit", "zeno_implicit", "circle_implicit", "border_implicit", "lost_implicit", "held"}};
    tl_run r;
    for (int k = 0; k < 2; ++k) {
        double y[2] = {1.0, 0.0}, b[2] = {1.0, 0.0}, z[2] = {1.0, 0.0}, o[4] = {1.0, 0.0, 0.0, 0.0};
        double e[2] = {1.0, 0.0}, l[2] = {1.0, 0.0}, h[2] = {0.0, 0.0}, restitution = 0.9, half = 0.5, drive = 1.0, seen = 0.0;
        check(go(names[k][0], &oscillator, methods[k], y, 20.0, 1e-10, 0, 0, &r) == TL_STEPPED);
        check(fabs(y[0] - cos(20.0)) < 2e-9 && fabs(y[1] + sin(20.0)) < 2e-9);
        check(go(names[k][1], &ball, methods[k], b, 1.5, 1e-9, &restitution, 0, &r) == TL_STEPPED);
        /* it touches at sqrt(2 / g), and 2 e sqrt(2 / g) later */
        const double first = sqrt(2.0 / 9.81), since = 1.5 - 2.8 * first, up = 0.81 * 9.81 * first;
        check(r.events == 2.0 && fabs(b[0] - (up * since - 0.5 * 9.81 * since * since)) < 1e-12);
        /* with e = 1/2 it comes to rest at 3 sqrt(2 / g), after infinitely many */
        check(go(names[k][2], &ball, methods[k], z, 5.0, 1e-9, &half, 0, &r) == TL_CROWDED);
        check(fabs(r.time - 3.0 * first) < 1e-6);
        check(go(names[k][3], &circle, methods[k], o, 10.0, 1e-9, 0, 0, &r) == TL_STEPPED);
        check(fabs(o[0] * o[0] + o[1] * o[1] - 1.0) < 1e-14);
        check(fabs(0.5 * (o[2] * o[2] + o[3] * o[3]) + 9.81 * o[1]) < 1e-6);
        check(go(names[k][4], &border, methods[k], e, 2.0, 1e-9, 0, 0, &r) == TL_UNHEALTHY);
        check(fabs(r.time - 1.0) < 1e-9 && r.time <= 1.0);
        check(go(names[k][5], &lost, methods[k], l, 9.0, 1e-9, 0, 0, &r) == TL_ASTRAY);
        check(r.time < 1.1 && r.y == l);
        check(go(names[k][6], &sampled, methods[k], h, 1.0, 1e-9, &drive, &seen, &r) == TL_STEPPED);
        check(fabs(h[0] - 1.0) < 1e-14 && fabs(r.known_at_start[0] - r.start[0]) < 1e-12);
    }
    double v[2] = {2.0, -0.66};
    check(go("van_der_pol", &stiff, &implicit, v, 2.0, 1e-6, 0, 0, &r) == TL_STEPPED);
    check(r.steps < 1000.0);
    if (failed) printf("check %d fails\n", failed);
    return failed != 0;
}
