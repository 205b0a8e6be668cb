/* Integrations of one machine: step by step with what happens on the way, or many at once with states at given times.

   In front of this stand `hybrid.c`, and sizes: TL_N states, TL_Q coordinates and TL_V velocities, TL_ACTING forces;
   behind it the machine's equations. */

/* A law fills in what acts. */
typedef void (*tl_law)(double time, const double *state, double *acting);

typedef struct {
    tl_law law;
    double *acting;
} acts;

static int machine_rate(tl_run *run, double time, const double *y, double *rate, double *guards);
static int machine_back(tl_run *run, double time, double *y);

#define TL_KNOWN (TL_Q + TL_V + TL_ACTING)

static const tl_problem machine = {TL_N, 0, TL_Q, TL_KNOWN, machine_rate, 0, machine_back};

/* Where an integration stands, in memory of the caller's. */
typedef struct {
    tl_run run;
    acts what;
    double sample, known[TL_KNOWN], room[TL_ROOM(TL_N, 0, TL_Q, TL_KNOWN, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
    int pivots[TL_PIVOTS(TL_N, TL_IMPLICIT)];
} integration;

/* Further outcomes: the end, and no room for more steps. */
enum { TL_DONE = 10, TL_FULL };

size_t tl_size(void)
{
    return sizeof(integration);
}

/* The arrays for state, forces and Newton's start stay in use. */
void tl_begin(integration *at, double *y, double *acting, double *guess, double step, double rtol, double atol,
    double longest)
{
    const tl_run run = {.step = step, .rtol = rtol, .atol = atol, .longest = longest, .y = y, .guess = guess,
        .known = at->known, .data = &at->what};
    at->run = run;
    at->what.law = 0, at->what.acting = acting;
    at->sample = 0.0;
    tl_prepare(&machine, &tl_steps, &at->run, at->room, at->pivots);
}

/* Steps to the end, or until there is no room; of each its beginning: time, state, what is known there, polynomials.
   A law with a period holds what acts between its samples. `counted`: evaluations and rejections so far. */
int tl_advance(integration *at, double end, tl_law law, double period, size_t capacity, size_t *count, double *times,
    double *states, double *known, double *polynomials, double *counted, double *time)
{
    tl_run *r = &at->run;
    int code = TL_STEPPED;
    at->what.law = period > 0.0 ? 0 : law;
    while (code == TL_STEPPED) {
        double limit = end;
        if (r->time >= end) code = TL_DONE;
        else if (*count == capacity) code = TL_FULL;
        if (code != TL_STEPPED) break;
        if (law && period > 0.0) {
            if (r->time >= at->sample * period) {
                law(r->time, r->y, at->what.acting);
                at->sample += 1.0;
                r->is_known = 0;
            }
            if (at->sample * period < limit) limit = at->sample * period;
        }
        const double steps = r->steps;
        code = tl_next(&machine, &tl_steps, r, limit);
        if (r->steps > steps) {
            times[*count] = r->from;
            memcpy(states + *count * TL_N, r->start, sizeof(double) * TL_N);
            memcpy(known + *count * TL_KNOWN, r->known_at_start, sizeof(double) * TL_KNOWN);
            memcpy(polynomials + *count * TL_DEGREE * TL_N, r->Q, sizeof(double) * TL_DEGREE * TL_N);
            *count += 1;
        }
    }
    counted[0] = r->evaluations, counted[1] = r->rejected;
    *time = r->time;
    return code;
}

/* n starts with constant forces, and of each the states and nearby coordinates at the wanted times, rising. */
void tl_many(size_t n, size_t n_times, const double *wanted, double duration, double step, double rtol, double atol,
    double longest, size_t max_steps, const double *starts, const double *near, const double *held, double *found,
    double *known_q, double *reached, long *code, long *taken)
{
#ifdef _OPENMP
#pragma omp parallel for schedule(dynamic)
#endif
    for (size_t i = 0; i < n; ++i) {
        integration at;
        tl_run *r = &at.run;
        double y[TL_N], guess[TL_Q], acting[TL_ACTING];
        size_t next = 0;
        int ended = TL_STEPPED;
        memcpy(y, starts + i * TL_N, sizeof y);
        memcpy(guess, near + i * TL_Q, sizeof guess);
        memcpy(acting, held + i * TL_ACTING, sizeof acting);
        tl_begin(&at, y, acting, guess, step, rtol, atol, longest);
        while (ended == TL_STEPPED && r->time < duration && r->steps < (double)max_steps) {
            const double steps = r->steps;
            ended = tl_next(&machine, &tl_steps, r, duration);
            if (r->steps == steps) break;
            for (; next < n_times && wanted[next] <= r->time; ++next) {
                const double x = (wanted[next] - r->from) / r->length;
                for (int k = 0; k < TL_N; ++k)
                    found[(i * n_times + next) * TL_N + k] = tl_along(&machine, &tl_steps, r, k, x);
                memcpy(known_q + (i * n_times + next) * TL_Q, r->known_at_start, sizeof(double) * TL_Q);
            }
        }
        reached[i] = r->time;
        code[i] = ended != TL_STEPPED ? ended : r->time < duration ? TL_FULL : TL_DONE;
        taken[i] = (long)r->steps;
    }
}
