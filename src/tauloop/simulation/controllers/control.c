/* A machine under a sampled controller: measurement, law, limits and delay at each sample, the integrator in between.

   In front of this stand `hybrid.c`; the machine as plant_rate and plant_back; `measure` and `law`, which are made from
   the machine and from the controller's model of it; and their sizes: NP positions and NV velocities of the platform, NQ
   coordinates, NU actuators, NR numbers of a reference position. */

static const tl_problem plant = {NP + NV, 0, NQ, 0, plant_rate, 0, plant_back};

/* What a controller makes in Python of the forces of one sample, in place; `measured` holds positions and speeds. */
typedef void (*tl_correction)(double time, const double *measured, double *u);

/* Numbers by sample (n, ...): p_ref, v_ref, a_ref, forward (forces to add); position, velocity, force are found. The first
   forces act until the first sample's do, `delay` steps behind it. Returns the number of samples that were reached;
   `code` is what the last step came to. */
size_t tl_control(size_t n, long substeps, long delay, double period, double step, double rtol, double atol,
    double longest, double max_steps, int differences, tl_correction correction,
    const double *p0, const double *v0, const double *q0, const double *p_ref, const double *v_ref,
    const double *a_ref, const double *forward, const double *first, const double *kp, const double *kd,
    const double *limit, const double *resolution, const double *theta, const double *model_theta,
    double *position, double *velocity, double *force, double *worst, double *code)
{
    double y[NP + NV], start[NQ], estimate[NQ], past[3][NQ], measured[2 * NU], *speed = measured + NU, last[NU];
    double room[TL_ROOM(NP + NV, 0, NQ, 0, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
    int pivots[TL_PIVOTS(NP + NV, TL_IMPLICIT)];
    const long whole = delay / substeps;
    const double change = (double)(delay % substeps) * (period / (double)substeps);
    acts what = {.u = 0, .theta = theta, .worst = worst};
    tl_run r = {.step = step, .rtol = rtol, .atol = atol, .longest = longest, .y = y, .guess = start, .data = &what};
    memcpy(y, p0, sizeof(double) * NP);
    memcpy(y + NP, v0, sizeof(double) * NV);
    for (int i = 0; i < NQ; ++i) start[i] = estimate[i] = past[0][i] = past[1][i] = past[2][i] = q0[i];
    tl_prepare(&plant, &tl_steps, &r, room, pivots);
    for (size_t k = 0; k < n; ++k) {
        double *u = force + k * NU;
        memcpy(position + k * NP, y, sizeof(double) * NP);
        memcpy(velocity + k * NV, y + NP, sizeof(double) * NV);
        measure(y, y + NP, start, theta, measured, speed, worst);
        for (int i = 0; i < NU; ++i) {
            if (resolution[i] > 0.0) measured[i] = resolution[i] * floor(measured[i] / resolution[i] + 0.5);
            if (differences) {
                speed[i] = k ? (measured[i] - last[i]) / period : 0.0;
                last[i] = measured[i];
            }
        }
        /* the controller's Newton method starts from where its last four poses lead */
        for (int i = 0; i < NQ; ++i) {
            const double ahead = 4.0 * estimate[i] - 6.0 * past[0][i] + 4.0 * past[1][i] - past[2][i];
            past[2][i] = past[1][i];
            past[1][i] = past[0][i];
            past[0][i] = estimate[i];
            estimate[i] = ahead;
        }
        law(measured, speed, p_ref + k * NR, v_ref + k * NV, a_ref + k * NV, kp, kd, estimate, model_theta, u, worst);
        if (correction) correction((double)k * period, measured, u);
        int finite = 1;
        for (int i = 0; i < NU; ++i) {
            u[i] += forward[k * NU + i];
            u[i] = u[i] > limit[i] ? limit[i] : u[i] < -limit[i] ? -limit[i] : u[i];
            finite = finite && u[i] - u[i] == 0.0;
        }
        if (!finite || !healthy(worst)) return k;
        if (k + 1 == n) break;
        for (int part = change > 0.0 ? 0 : 1; part < 2; ++part) {
            /* up to where other forces act, or to the next sample */
            const long sample = (long)k - whole - 1 + part;
            what.u = sample < 0 ? first : force + (size_t)sample * NU;
            r.is_known = 0;
            const double limit = part ? (double)(k + 1) * period : (double)k * period + change;
            while (r.time < limit) {
                const int came = r.steps + r.rejected < max_steps ? tl_next(&plant, &tl_steps, &r, limit) : TL_TOO_LONG;
                if (came != TL_STEPPED) {
                    *code = came;
                    return k + 1;
                }
            }
        }
    }
    return n;
}
