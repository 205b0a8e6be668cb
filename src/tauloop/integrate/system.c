/* A system of routines as a problem of the integrator's.

   In front of this stand `hybrid.c` and sizes: NY states, NS modes, NZ numbers that a sample finds and that act, behind
   which it may keep others in `z` for the next one, NI inputs, NQ coordinates, TL_EVENTS events, whose guards stand
   behind those of the system, TL_KNOWN numbers that are known beside rates, TL_ALONG directions of derivatives, which
   count among states and what is found, TL_RETURNS tries of the way back (none without one), which has arrived where it
   leaves less than TL_PROJECTION_TOLERANCE. Behind it stand the loop around the steps and the system's routines. */

/* A function of Python's: (time, what it sees, what it fills in). */
typedef void (*tl_own)(double time, const double *seen, double *made);

typedef struct {
    const double *in, *held, *p;
    double *z, *slopes, *worst, *acting;
    tl_own own, watch, law; /* within samples; of events; of what acts, at every evaluation of rates */
} tl_data;

#ifndef TL_CALLED /* see `kernels.h` */
#define TL_CALLED static
#endif
TL_CALLED int system_rate(tl_run *run, double time, double *y, double *rate, double *guards);
TL_CALLED int system_reset(tl_run *run, double time, double *y, double *rate, double *guards);
TL_CALLED int system_sample(tl_run *run, double time, double *y, double *rate, double *guards);
TL_CALLED int system_back(tl_run *run, double time, double *y, double *rate, double *guards);

/* Whether a program can be relied on. `worst`: least discriminant, least pivot and largest residual of those that can,
   and behind them those of the last one that cannot. */
TL_INLINE int tl_healthy(const double *health, double pivot, double *worst)
{
    if (!(health[0] >= 0.0 && health[1] > pivot && health[2] < TL_CONVERGED)) {
        tl_put(worst + 3, health, 3);
        return 0;
    }
    worst[0] = health[0] < worst[0] ? health[0] : worst[0];
    worst[1] = health[1] < worst[1] ? health[1] : worst[1];
    worst[2] = health[2] > worst[2] ? health[2] : worst[2];
    return 1;
}

static int routine_rate(tl_run *run, double time, const double *y, double *rate, double *guards)
{
    const tl_data *l = (const tl_data *)run->data;
    if (l->law) l->law(time, y, l->acting);
    if (!system_rate(run, time, (double *)y, rate, guards)) return 0;
    if (TL_EVENTS && guards) l->watch(time, run->known, guards + NS);
    return 1;
}

static void routine_reset(tl_run *run, double time, double *y)
{
    system_reset(run, time, y, 0, 0);
}

static int routine_back(tl_run *run, double time, double *y)
{
    for (int k = 0; k < TL_RETURNS; ++k) {
        double left = 0.0;
        system_back(run, time, y, &left, 0);
        if (left < TL_PROJECTION_TOLERANCE) return 1;
    }
    return -1;
}

#define TL_PROBLEM(constant) \
    constant tl_problem tl_system = {NY, NS + TL_EVENTS, NQ, TL_KNOWN, routine_rate, routine_reset, \
        TL_RETURNS ? routine_back : 0, TL_ALONG, NS}

/* A device's compiler sees what constants are only where they are a function's own. */
#ifdef __CUDACC__
#define TL_OWN_CONSTANTS TL_METHOD(const); TL_PROBLEM(const);
#else
#define TL_OWN_CONSTANTS
TL_METHOD(static const);
TL_PROBLEM(static const);
#endif
