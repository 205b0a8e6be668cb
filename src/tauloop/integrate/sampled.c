/* A system under a sampled control: what a sample finds is held until the next one, or acts later by a delay; the
   integrator goes in between.

   In front of this stand `hybrid.c` and `system.c`; behind it the system's routines. */

#include <stdlib.h>

/* Further outcomes: too many steps, and a terminal event. */
enum { TL_TOO_LONG = 20, TL_ENDED };

/* Samples `period` apart, n of them, or until the run ends. What a sample finds acts `whole` periods and `change` s behind
   it; before that of the first one does, `first` acts. States, modes and what was found are kept by sample; `z` and `s`
   hold what is found and the modes. Of each event (E, 2) its direction and whether it is terminal; of each that takes
   place its number, its time and what was known, up to `most`. Report: outcome, time, steps, events, events that took
   place. Returns the number of samples that were reached. */
size_t tl_sampled(size_t n, double period, long whole, double change, double step, double rtol, double atol,
    double longest, double max_steps, tl_own own, tl_own watch, size_t most, const double *events, const double *in,
    const double *p, const double *first, double *start, double *y, double *s, double *z, double *ys, double *ss,
    double *zs, double *happened, double *worst, double *report)
{
    enum { ROOM = TL_ROOM(NY, NS + TL_EVENTS, NQ, TL_KNOWN, TL_STAGES, TL_DEGREE, TL_IMPLICIT) };
#if TL_ALONG && TL_IMPLICIT
    /* Jacobians of states with derivatives would be too much for a stack */
    double *room = malloc(sizeof(double) * ROOM);
#else
    double room[ROOM];
#endif
    double known[TL_KNOWN + 1], before[TL_EVENTS + 1], slopes[TL_ALONG * (NS + 1) + 1];
    int code = TL_STEPPED, pivots[TL_PIVOTS(NY, TL_IMPLICIT)];
    size_t k = 0, found = 0;
    tl_data l = {.z = z, .p = p, .slopes = slopes, .worst = worst, .own = own, .watch = watch};
    tl_run r = {.step = step, .rtol = rtol, .atol = atol, .longest = longest, .y = y, .s = s, .guess = start,
        .known = known, .slopes = slopes, .data = &l};
#if TL_ALONG && TL_IMPLICIT
    if (!room) return 0;
#endif
    tl_prepare(&tl_system, &tl_steps, &r, room, pivots);
    while (k < n && code == TL_STEPPED) {
        const int begins = change > 0.0 ? 0 : 1;
        l.in = in + k * NI;
        int bad = !system_sample(&r, r.time, y, 0, 0);
        for (int i = 0; i < NZ; ++i) bad |= !(z[i] - z[i] == 0.0);
        if (bad) {
            code = TL_UNHEALTHY;
            break;
        }
        tl_put(ys + k * NY, y, NY);
        tl_put(zs + k * NZ, z, NZ);
        for (int part = begins; part < 2 && code == TL_STEPPED; ++part) {
            /* up to where what another sample has found acts, or to the next sample */
            const long acts = (long)k - whole - 1 + part;
            const double limit = part ? (double)(k + 1) * period : (double)k * period + change;
            l.held = acts < 0 ? first : zs + (size_t)acts * NZ;
            r.is_known = 0;
            if (NS + TL_EVENTS && !tl_agree(&tl_system, &r)) code = TL_UNHEALTHY;
            if (part == begins) tl_put(ss + k * NS, s, NS);
            while (k + 1 < n && code == TL_STEPPED && r.time < limit) {
                if (TL_EVENTS) tl_put(before, s + NS, TL_EVENTS);
                code = r.steps + r.rejected < max_steps ? tl_next(&tl_system, &tl_steps, &r, limit) : TL_TOO_LONG;
                if (!TL_EVENTS || code != TL_STEPPED || !r.is_event) continue;
                if (!tl_agree(&tl_system, &r)) code = TL_UNHEALTHY;
                for (int i = 0; i < TL_EVENTS && code == TL_STEPPED; ++i) {
                    double *row = happened + found * (2 + TL_KNOWN);
                    if (s[NS + i] == before[i] || events[2 * i] * (s[NS + i] - before[i]) < 0.0) continue;
                    if (found++ == most) code = TL_CROWDED;
                    else {
                        row[0] = i, row[1] = r.time;
                        tl_put(row + 2, known, TL_KNOWN);
                        if (events[2 * i + 1] != 0.0) code = TL_ENDED;
                    }
                }
            }
        }
        ++k;
    }
    report[0] = code, report[1] = r.time, report[2] = r.steps + r.rejected, report[3] = r.events;
    report[4] = found < most ? found : most;
#if TL_ALONG && TL_IMPLICIT
    free(room);
#endif
    return k;
}
