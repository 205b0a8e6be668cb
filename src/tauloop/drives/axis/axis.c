/* Runs of one drive line from rest: a step of the reference, a load from some time on, criteria and events on the way.

   In front of this stand `hybrid.c` and `system.c`, and sizes: NC coordinates, of which OUT is judged, whose velocities
   come behind them; N states without derivatives; NE events, whose modes are the last ones, and REPORT numbers. */

#include <stdlib.h>

/* Places at which all states are noted, with derivatives among them: where the rise begins and ends, farthest beyond the
   reference, where the band is reached for good, and the end. */
enum { BEGIN, RISEN, PEAK, SETTLED, LAST, MARKS };
/* What a run comes to. */
enum { OK, DIVERGED, TOO_LONG, CHATTERING, ENDED = 5 };
/* The output has diverged when its error is this many steps of the reference, or a state beyond the second figure. */
#define FAR 1e3
#define HUGE_STATE 1e12
/* Share of the run after which the swing is measured. */
#define LATE 0.75

typedef struct {
    double factor, from, to, band, duration;
    double rise_start, rise_end, overshoot, settled_at, lowest, highest;
    int inside;
    double *marks;
} monitor;

/* Note all states at a share of the step, if anyone asks. */
static void mark(const monitor *m, const tl_run *r, int place, double x)
{
    for (int i = 0; m->marks && i < NY; ++i) m->marks[place * NY + i] = tl_along(&tl_system, &tl_steps, r, i, x);
}

/* Place in [a, b] where the judged position passes a level, noted: it is on one side at a and on the other at b. */
static double passing(const monitor *m, const tl_run *r, double a, double b, double level, int place)
{
    const int rises = m->factor * tl_along(&tl_system, &tl_steps, r, OUT, b) > level;
    for (int k = 0; k < 50; ++k) {
        const double x = 0.5 * (a + b);
        if ((m->factor * tl_along(&tl_system, &tl_steps, r, OUT, x) > level) == rises) b = x;
        else a = x;
    }
    mark(m, r, place, b);
    return b;
}

static void watch_piece(monitor *m, const tl_run *r, double a, double b)
{
    const double t = r->from, h = r->length;
    const double step = m->to - m->from, pa = m->factor * tl_along(&tl_system, &tl_steps, r, OUT, a), pb = m->factor * tl_along(&tl_system, &tl_steps, r, OUT, b);
    const double ten = m->from + 0.1 * step, ninety = m->from + 0.9 * step, way = step < 0.0 ? -1.0 : 1.0;
    if (m->rise_start < 0.0 && way * (pb - ten) >= 0.0 && step != 0.0)
        m->rise_start = t + h * passing(m, r, a, b, ten, BEGIN);
    if (m->rise_end < 0.0 && way * (pb - ninety) >= 0.0 && step != 0.0)
        m->rise_end = t + h * passing(m, r, a, b, ninety, RISEN);
    if (way * (pb - m->to) > m->overshoot) {
        m->overshoot = way * (pb - m->to);
        mark(m, r, PEAK, b);
    }
    const int was = fabs(pa - m->to) <= m->band, is = fabs(pb - m->to) <= m->band;
    if (is && !was) m->settled_at = t + h * passing(m, r, a, b, pa > m->to ? m->to + m->band : m->to - m->band, SETTLED);
    m->inside = is;
    if (t + h * b >= LATE * m->duration) {
        const double late = (LATE * m->duration - t) / h, pl = late > a ? m->factor * tl_along(&tl_system, &tl_steps, r, OUT, late) : pa;
        m->lowest = fmin(m->lowest, fmin(pl, pb));
        m->highest = fmax(m->highest, fmax(pl, pb));
    }
}

/* The judged position within a step, in two pieces where it turns. */
static void watch(monitor *m, const tl_run *r)
{
    const double first = r->start[NC + OUT], x = r->share;
    double turn = x;
    if (first * tl_along(&tl_system, &tl_steps, r, NC + OUT, x) < 0.0) {
        double a = 0.0, b = x;
        for (int k = 0; k < 50; ++k) {
            turn = 0.5 * (a + b);
            if (tl_along(&tl_system, &tl_steps, r, NC + OUT, turn) * first > 0.0) a = turn;
            else b = turn;
        }
        watch_piece(m, r, 0.0, turn);
        watch_piece(m, r, turn, x);
    } else watch_piece(m, r, 0.0, x);
}

static void run_line(const double *p, const double *fixed, double step, double rtol, double atol, double longest,
    double max_steps, double *report, size_t samples, const double *times, double *ys, double *ss, double *zs, size_t most,
    double *happened, double *marks)
{
    const double factor = fixed[0], band = fixed[1], period = fixed[2], from = fixed[3], to = fixed[4];
    const double load = fixed[5], load_time = fixed[6], duration = fixed[7];
    double y[NY] = {0.0}, s[NS + 1], z[NZ + 1] = {0.0}, before[NE + 1], slopes[TL_ALONG * (NS + 1) + 1], tick = 1.0;
    double in[NI] = {to, from, load_time <= 0.0 ? load : 0.0, atol};
#if TL_ALONG && TL_IMPLICIT
    /* Jacobians of states with derivatives would be too much for a stack */
    double *room = malloc(sizeof(double) * TL_ROOM(NY, NS, 0, 0, TL_STAGES, TL_DEGREE, TL_IMPLICIT));
    if (!room) return;
#else
    double room[TL_ROOM(NY, NS, 0, 0, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
#endif
    size_t noted = 0;
    int outcome = OK, pivots[TL_PIVOTS(NY, TL_IMPLICIT)];
    size_t sample = 0;
    tl_data l = {.in = in, .held = z, .z = z, .p = p, .slopes = slopes};
    tl_put(s, first_modes, NS);
    tl_run r = {.step = step, .rtol = rtol, .atol = atol, .longest = longest, .y = y, .s = s, .slopes = slopes,
        .data = &l};
    tl_prepare(&tl_system, &tl_steps, &r, room, pivots);
    monitor m = {factor, from, to, band, duration, -1.0, -1.0, 0.0, 0.0, HUGE_VAL, -HUGE_VAL, 0, marks};
    m.inside = fabs(from - to) <= band;
    if (period > 0.0) system_sample(&r, 0.0, y, 0, 0);
    for (;;) {
        double limit = duration;
        if (NE && !r.is_known) {
            /* behind an event, or where a force or the control jumps */
            tl_put(before, s + NS - NE, NE);
            tl_agree(&tl_system, &r);
            for (int i = 0; i < NE && r.steps > 0.0; ++i) {
                if ((s[NS - NE + i] - before[i]) * events[2 * i] <= 0.0) continue;
                if (events[2 * i + 1] != 0.0) outcome = ENDED;
                if (noted == most) continue;
                double *row = happened + noted++ * (NY + 2);
                row[0] = i, row[1] = r.time;
                memcpy(row + 2, y, sizeof y);
            }
        }
        if (outcome != OK || r.time >= duration) break;
        if (load_time > r.time && load_time < limit) limit = load_time;
        if (period > 0.0 && tick * period < limit) limit = tick * period;
        if (r.steps + r.rejected >= max_steps) {
            outcome = TOO_LONG;
            break;
        }
        const int code = tl_next(&tl_system, &tl_steps, &r, limit);
        if (code != TL_STEPPED) {
            outcome = code == TL_CROWDED ? CHATTERING : DIVERGED;
            break;
        }
        watch(&m, &r);
        for (; sample < samples && times[sample] <= r.time; ++sample) {
            const double at = r.length > 0.0 ? (times[sample] - r.from) / r.length : 0.0;
            for (int i = 0; i < NY; ++i) ys[sample * NY + i] = tl_along(&tl_system, &tl_steps, &r, i, at);
            tl_put(ss + sample * NS, s, NS);
            tl_put(zs + sample * NZ, z, NZ);
        }
        double largest = 0.0;
        for (int i = 0; i < N; ++i) largest = fabs(y[i]) > largest ? fabs(y[i]) : largest;
        if (largest > HUGE_STATE || fabs(factor * y[OUT] - to) > FAR * (from != to ? fabs(to - from) : 1.0)) {
            outcome = DIVERGED;
            break;
        }
        if (r.time >= load_time && in[2] != load) {
            in[2] = load;
            r.is_known = 0;
        }
        if (period > 0.0 && r.time >= tick * period) {
            system_sample(&r, r.time, y, 0, 0);
            ++tick;
            r.is_known = 0;
        }
    }
    const int settled = outcome == OK && m.inside, risen = m.rise_start >= 0.0 && m.rise_end >= 0.0;
    const double found[REPORT] = {risen ? m.rise_end - m.rise_start : from == to ? 0.0 : duration, m.overshoot,
        settled ? m.settled_at : duration, y[N - 1], fabs(factor * y[OUT] - to), m.lowest, m.highest, settled,
        outcome, r.time, r.steps + r.rejected, r.events, m.rise_start, (double)noted};
    memcpy(report, found, sizeof found);
    if (marks) memcpy(marks + LAST * NY, y, sizeof y);
#if TL_ALONG && TL_IMPLICIT
    free(room);
#endif
}

void drive_batch(size_t n, int threads, const double *p, const double *fixed, double step, double rtol, double atol,
    double longest, double max_steps, double *report, size_t samples, const double *times, double *ys, double *ss, double *zs,
    size_t most, double *happened, int is_marked, double *marks)
{
    (void)threads;
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && n > 1)
#endif
    for (size_t i = 0; i < n; ++i)
        run_line(p + i * NP, fixed + 8 * i, step, rtol, atol, longest, max_steps, report + i * REPORT, samples, times, ys,
            ss, zs, most, happened, is_marked ? marks + i * MARKS * NY : 0);
}
