/* A controller that is safe by construction: its forces are finite and within their limits for any input.

   Defined before this file: sizes (NI inputs, NF forces, NU actuators, NQ coordinates, NR numbers of the reference, NP
   parameters, NW of the work array, NL states of loops), offsets of inputs (IN_...), of parameters (P_...) and of the
   work array (W_...), CTL_PERIOD s, CTL_DIFFERENCES, CTL_MODEL (whether the law has forces without a measurement),
   CTL_PIVOT and TL_CONVERGED. The routines follow after it. */

enum { RUNS, STOPS, BRAKES };

/* Numbers only, so that the state can be copied and compared. */
typedef struct {
    double p[NP + 1];
    double mode, wrong, begun;                   /* whether parameters are wrong; whether there was a sample */
    double bad, late, since, stop;               /* bad and late samples in a row; samples and s of the stop */
    double time, stamp, elapsed, poses;          /* of the last sample; samples since the last good one; good ones */
    double reading[NU], still[NU], moved[NU], commanded[NU];
    double position[NU], followed[2 * NU], force[NF], from[2 * NU], loop[NL + 1];
    double q[NQ], before[NQ], start[NQ], reference[NQ];
    double worst[6];
} ctl_memory;

typedef char ctl_size[sizeof(ctl_memory) == sizeof(@NAME@_controller) ? 1 : -1];

static const double ctl_defaults[NP + 1] = {CTL_DEFAULTS};
static const double ctl_q[NQ] = {CTL_Q};

static int ctl_is_finite(const double *x, int n)
{
    int good = 1;
    for (int i = 0; i < n; ++i) good &= x[i] > -1e100 && x[i] < 1e100;
    return good;
}

/* Runs a routine that iterates from `start`. Returns whether its results are valid. */
static int ctl_run(int (*routine)(tl_run *, double, double *, double *, double *), ctl_memory *c, const double *in,
    double *start, double *work)
{
    tl_data data = {in, 0, c->p, 0, c->worst, 0};
    tl_run run = {0, 0, 0, 0};
    run.guess = start, run.data = &data;
    c->worst[0] = 1.0, c->worst[1] = 1e300, c->worst[2] = 0.0;
    return routine(&run, 0.0, work, 0, 0) && ctl_is_finite(work, NW);
}

/* Limits forces; a force that is not a number becomes zero. */
static unsigned ctl_limited(const ctl_memory *c, const double *force, double *made)
{
    unsigned flags = 0;
    for (int i = 0; i < NF; ++i) {
        const double most = c->p[P_LIMIT + i] > 0.0 && c->p[P_LIMIT + i] < 1e100 ? c->p[P_LIMIT + i] : 0.0;
        made[i] = force[i] > -1e100 && force[i] < 1e100 ? force[i] : 0.0;
        if (made[i] > most) made[i] = most, flags = @UP@_SATURATED;
        if (made[i] < -most) made[i] = -most, flags = @UP@_SATURATED;
    }
    return flags;
}

/* Returns the whole periods since the last sample, at least 1, and whether the sample is late or the clock wrong. */
static double ctl_elapsed(const ctl_memory *c, double time, int *is_late)
{
    const double periods = (time - c->time) / CTL_PERIOD;
    *is_late = 0;
    if (c->begun == 0.0) return 1.0;
    if (!(periods > 0.0 && periods < 1e6)) return *is_late = 1, 1.0;
    *is_late = periods > 1.0 + c->p[P_LATE];
    return periods < 1.5 ? 1.0 : floor(periods + 0.5);
}

/* Whether an encoder has not changed for some samples although it should have moved. */
static int ctl_is_stuck(ctl_memory *c, const double *position, const double *commanded)
{
    int stuck = 0;
    for (int i = 0; i < NU; ++i) {
        if (c->begun == 0.0 || position[i] != c->reading[i]) c->still[i] = 0.0, c->moved[i] = 0.0;
        else c->still[i] += 1.0, c->moved[i] += fabs(commanded[i] - c->commanded[i]);
        c->reading[i] = position[i], c->commanded[i] = commanded[i];
        stuck |= c->still[i] >= c->p[P_STUCK] && c->moved[i] > c->p[P_STUCK_MOTION];
    }
    return stuck;
}

/* Computes the pose from the measurement. Returns whether it is where the last poses predict it. */
static int ctl_pose(ctl_memory *c, const double *in, double *work)
{
    double start[NQ];
    int near = 1;
    for (int i = 0; i < NQ; ++i) {
        start[i] = c->poses > 0.0 ? c->q[i] : c->reference[i];
        if (c->poses > 1.0) start[i] += c->elapsed * (c->q[i] - c->before[i]);
    }
    if (!ctl_run(system_pose, c, in, start, work)) return 0;
    for (int i = 0; i < NQ && c->poses > 0.0; ++i)
        near &= fabs(work[W_Q + i] - start[i]) <= c->p[P_MAX_POSE_JUMP] * c->elapsed;
    return near;
}

/* Keeps a good pose and its rate per period, which predict the next pose. */
static void ctl_keep_pose(ctl_memory *c, const double *work)
{
    for (int i = 0; i < NQ; ++i) {
        const double step = (work[W_Q + i] - c->q[i]) / c->elapsed;
        c->before[i] = c->poses > 0.0 ? work[W_Q + i] - step : work[W_Q + i];
        c->q[i] = work[W_Q + i];
    }
    memcpy(c->position, work + W_MEASURED, sizeof c->position);
    c->poses += 1.0, c->elapsed = 0.0;
}

/* Starts the stop at the state that the last good reference predicts. */
static void ctl_begin_stop(ctl_memory *c)
{
    const double away = c->bad * CTL_PERIOD;
    c->mode = c->poses > 0.0 ? STOPS : BRAKES, c->since = 0.0, c->stop = 0.0;
    for (int i = 0; i < NU; ++i) {
        const double speed = c->followed[NU + i], time = fabs(speed) / c->p[P_DECELERATION + i];
        c->from[i] = c->followed[i] + away * speed, c->from[NU + i] = speed;
        if (!(time <= c->stop)) c->stop = time;
    }
    if (!(c->stop < 1e6)) c->mode = BRAKES;
}

/* One sample of the stop: all actuators come to rest at the same time, on a straight line in joint space. */
static int ctl_stop(ctl_memory *c, const double *in, int is_measured, double *work)
{
    const double time = c->since * CTL_PERIOD, t = time < c->stop ? time : c->stop;
    const double left = c->stop > 0.0 ? 1.0 - t / c->stop : 0.0;
    c->since += 1.0;
    if (time > c->stop + c->p[P_SETTLING] || !(CTL_MODEL || is_measured)) return 0;
    for (int i = 0; i < NU; ++i) {
        const double speed = c->from[NU + i];
        work[W_RAMP + i] = c->from[i] + speed * t * (1.0 + left) / 2.0;
        work[W_RAMP + NU + i] = speed * left;
        work[W_RAMP + 2 * NU + i] = time < c->stop ? -speed / c->stop : 0.0;
    }
    if (!ctl_run(system_ramp, c, in, c->start, work)) return 0;
    memcpy(c->start, work + W_TARGET_Q, sizeof c->start);
    if (!is_measured) ctl_run(system_open_loop_state, c, in, c->start, work);
    return ctl_run(system_law, c, in, c->start, work);
}

unsigned @NAME@_begin(@NAME@_controller *controller, unsigned long long hash)
{
    ctl_memory *c = (ctl_memory *)controller;
    memset(c, 0, sizeof *c);
    memcpy(c->p, ctl_defaults, sizeof c->p);
    memcpy(c->reference, ctl_q, sizeof c->reference);
    if (!@NAME@_check_parameters(hash)) return 0;
    c->mode = BRAKES, c->wrong = @UP@_PARAMETERS;
    return @UP@_PARAMETERS | @UP@_BRAKES;
}

unsigned @NAME@_step(@NAME@_controller *controller, const @NAME@_input *input, double *force)
{
    ctl_memory *c = (ctl_memory *)controller;
    const double *in = (const double *)input;
    double work[NW] = {0.0}, start[NQ];
    unsigned flags = (unsigned)c->wrong;
    int is_late, is_measured, has_reference, is_good;
    const double elapsed = ctl_elapsed(c, in[IN_TIME], &is_late);

    c->elapsed += elapsed;
    c->late = is_late ? c->late + 1.0 : 0.0;
    if (is_late) flags |= @UP@_LATE;

    /* reference */
    memcpy(start, c->reference, sizeof start);
    has_reference = ctl_is_finite(in + IN_REFERENCE, NR) && ctl_run(system_reference_motion, c, in, start, work)
        && ctl_run(system_reference_actuators, c, in, start, work);
    if (!has_reference) flags |= @UP@_REFERENCE, memset(work, 0, sizeof work);
    else memcpy(c->reference, work + W_TARGET_Q, sizeof c->reference);

    /* measurement */
    is_measured = ctl_is_finite(in + IN_POSITION, NU) && ctl_is_finite(in + IN_STAMP, 1);
#if !CTL_DIFFERENCES
    is_measured = is_measured && ctl_is_finite(in + IN_SPEED, NU);
#endif
    if (!is_measured) flags |= @UP@_NOT_A_NUMBER;
    else if ((c->begun != 0.0 && in[IN_STAMP] == c->stamp)
             || (has_reference && ctl_is_stuck(c, in + IN_POSITION, work + W_REFERENCE_ACTUATORS))) {
        flags |= @UP@_STALE, is_measured = 0;
    } else {
        for (int i = 0; i < NU; ++i) {
            const double x = in[IN_POSITION + i];
            work[W_MEASURED + i] = x;
#if CTL_DIFFERENCES
            work[W_MEASURED + NU + i] = c->poses > 0.0 ? (x - c->position[i]) / (c->elapsed * CTL_PERIOD) : 0.0;
#else
            work[W_MEASURED + NU + i] = in[IN_SPEED + i];
#endif
        }
        const int is_led = has_reference || c->poses > 0.0;
        is_measured = is_led && ctl_run(system_measured, c, in, start, work) && ctl_pose(c, in, work);
        if (is_measured) ctl_keep_pose(c, work);
        else if (is_led) flags |= @UP@_LOST;
    }
    if (ctl_is_finite(in + IN_STAMP, 1)) c->stamp = in[IN_STAMP];
    if (in[IN_TIME] > -1e100 && in[IN_TIME] < 1e100) c->time = in[IN_TIME];
    c->begun = 1.0;

    /* reaction */
    memcpy(work + W_LOOP, c->loop, sizeof(double) * NL);
    is_good = is_measured && has_reference && c->late <= c->p[P_HOLD] && elapsed <= c->p[P_HOLD] + 1.0;
    if (c->mode == RUNS && is_good && !ctl_run(system_law, c, in, c->q, work))
        flags |= @UP@_LOST, is_good = 0;
    if (c->mode == RUNS && is_good) {
        c->bad = 0.0;
        flags |= ctl_limited(c, work + W_FORCE, c->force);
        memcpy(c->followed, work + W_REFERENCE_ACTUATORS, sizeof c->followed);
        memcpy(c->start, work + W_TARGET_Q, sizeof c->start);
        memcpy(c->loop, work + W_LOOP, sizeof(double) * NL);
    } else if (c->mode == RUNS) {
        c->bad += elapsed;
        flags |= @UP@_HOLDS;
        if (!(c->bad <= c->p[P_HOLD] && c->late <= c->p[P_HOLD])) ctl_begin_stop(c), flags &= ~(unsigned)@UP@_HOLDS;
    }
    if (c->mode == STOPS) {
        flags |= @UP@_STOPS;
        if (ctl_stop(c, in, is_measured, work)) {
            flags |= ctl_limited(c, work + W_FORCE, c->force);
            memcpy(c->loop, work + W_LOOP, sizeof(double) * NL);
        } else c->mode = BRAKES, flags &= ~(unsigned)@UP@_STOPS;
    }
    if (c->mode == BRAKES) {
        flags |= @UP@_BRAKES;
        memset(c->force, 0, sizeof c->force);
    }
    flags |= ctl_limited(c, c->force, force) & @UP@_SATURATED;
    return flags;
}

int @NAME@_expired(const @NAME@_controller *controller, double time)
{
    const ctl_memory *c = (const ctl_memory *)controller;
    return !(c->begun != 0.0 && time - c->time <= (c->p[P_HOLD] + 1.0 + c->p[P_LATE]) * CTL_PERIOD);
}
