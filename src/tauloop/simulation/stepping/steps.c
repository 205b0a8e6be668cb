/* Integrations of one machine: step by step with what happens on the way, or many at once with states at given times.

   In front of this stand `kernels.h`, `hybrid.c` and `system.c`; behind it the machine's routines. What acts are their inputs. */

/* Where an integration stands, in memory of the caller's. */
typedef struct {
    tl_run run;
    tl_data data;
    double sample, worst[6], known[TL_KNOWN], room[TL_ROOM(NY, 0, NQ, TL_KNOWN, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
    int pivots[TL_PIVOTS(NY, TL_IMPLICIT)];
} integration;

/* Further outcomes: the end, and no room for more steps. */
enum { TL_DONE = 10, TL_FULL };

/* The arrays for state, what acts, Newton's start and constants stay in use. */
void tl_begin(integration *at, double *y, double *acting, double *guess, const double *p, double step, double rtol,
    double atol, double longest)
{
    TL_OWN_CONSTANTS
    const tl_data data = {0};
    const tl_run run = {0};
    tl_run *r = &at->run;
    at->run = run, at->data = data;
    at->data.in = at->data.acting = acting, at->data.p = p, at->data.worst = at->worst;
    r->step = step, r->rtol = rtol, r->atol = atol, r->longest = longest;
    r->y = y, r->guess = guess, r->known = at->known, r->data = &at->data;
    at->worst[0] = 1.0, at->worst[1] = 1e300, at->worst[2] = 0.0;
    at->sample = 0.0;
    tl_prepare(&tl_system, &tl_steps, &at->run, at->room, at->pivots);
}

#ifndef __CUDACC__
size_t tl_size(void)
{
    return sizeof(integration);
}

/* Steps to the end, or until there is no room; of each its beginning: time, state, what is known there, polynomials.
   What acts is by a law of time and state, and held between samples of another one, where these are. `counted`:
   evaluations and rejections so far. */
int tl_advance(integration *at, double end, tl_own law, tl_own sampled, double period, size_t capacity, size_t *count, double *times,
    double *states, double *known, double *polynomials, double *counted, double *time)
{
    tl_run *r = &at->run;
    int code = TL_STEPPED;
    at->data.law = law;
    while (code == TL_STEPPED) {
        double limit = end;
        if (r->time >= end) code = TL_DONE;
        else if (*count == capacity) code = TL_FULL;
        if (code != TL_STEPPED) break;
        if (sampled) {
            if (r->time >= at->sample * period) {
                sampled(r->time, r->y, at->data.acting);
                at->sample += 1.0;
                r->is_known = 0;
            }
            if (at->sample * period < limit) limit = at->sample * period;
        }
        const double steps = r->steps;
        code = tl_next(&tl_system, &tl_steps, r, limit);
        if (r->steps > steps) {
            times[*count] = r->from;
            tl_put(states + *count * NY, r->start, NY);
            tl_put(known + *count * TL_KNOWN, r->known_at_start, TL_KNOWN);
            tl_put(polynomials + *count * TL_DEGREE * NY, r->Q, TL_DEGREE * NY);
            *count += 1;
        }
    }
    counted[0] = r->evaluations, counted[1] = r->rejected;
    *time = r->time;
    return code;
}
#endif

/* n starts with constant forces, one a thread, and of each the states and nearby coordinates at the wanted times, rising.
   Arrays over starts are structures of arrays. `figures`: the duration, and what `tl_begin` takes last. */
TL_KERNEL tl_many(size_t n, size_t from, size_t to, size_t n_times, size_t max_steps, const double *restrict wanted,
    const double *restrict figures, const double *restrict p, const double *restrict starts,
    const double *restrict near, const double *restrict held, double *restrict states, double *restrict known_q,
    double *restrict report)
{
    TL_OWN_CONSTANTS
    TL_PART(i, from, to) {
        integration at;
        tl_run *r = &at.run;
        double y[NY], guess[NQ + 1], acting[NI + 1];
        const double duration = figures[0];
        size_t next = 0;
        int ended = TL_STEPPED;
        for (size_t k = 0; k < NY; ++k) y[k] = starts[k * n + i];
        for (size_t k = 0; k < NQ; ++k) guess[k] = near[k * n + i];
        for (size_t k = 0; k < NI; ++k) acting[k] = held[k * n + i];
        tl_begin(&at, y, acting, guess, p, figures[1], figures[2], figures[3], figures[4]);
        while (ended == TL_STEPPED && r->time < duration && r->steps < (double)max_steps) {
            const double steps = r->steps;
            ended = tl_next(&tl_system, &tl_steps, r, duration);
            if (r->steps == steps) break;
            for (; next < n_times && wanted[next] <= r->time; ++next) {
                const double x = (wanted[next] - r->from) / r->length;
                for (int k = 0; k < NY; ++k)
                    states[(next * NY + (size_t)k) * n + i] = tl_along(&tl_system, &tl_steps, r, k, x);
                for (size_t k = 0; k < NQ; ++k) known_q[(next * NQ + k) * n + i] = r->known_at_start[k];
            }
        }
        for (; next < n_times; ++next) {
            for (size_t k = 0; k < NY; ++k) states[(next * NY + k) * n + i] = HUGE_VAL - HUGE_VAL;
            for (size_t k = 0; k < NQ; ++k) known_q[(next * NQ + k) * n + i] = HUGE_VAL - HUGE_VAL;
        }
        report[i] = r->time, report[2 * n + i] = r->steps;
        report[n + i] = (double)(ended != TL_STEPPED ? ended : r->time < duration ? TL_FULL : TL_DONE);
    }
}
