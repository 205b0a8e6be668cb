/* A machine with its drive lines and their sampled controls, from sample to sample.

   In front of this stand `hybrid.c`, the functions of machine and lines, which are made from their equations, and what
   ties them together: machine_rate, machine_reset, machine_hold and machine_back. */

/* What a run comes to. */
enum { OK, UNHEALTHY, TOO_SMALL, TOO_LONG, CHATTERING };

static const tl_problem machine = {NY, NS, NQ, 0, machine_rate, machine_reset, machine_back};

/* The reference (n, NU, 4) holds position, position before its step, speed and torque to feed forward. Returns the number
   of samples that were reached; report: outcome, time, steps, events. */
size_t drive_machine(size_t n, double period, double step, double rtol, double atol, double longest, double max_steps,
    const double *reference, const double *p, double *start, double *y, double *z, double *ys, double *ss, double *zs, double *worst,
    double *report)
{
    double s[NSA], room[TL_ROOM(NY, NS, NQ, 0, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
    int outcome = OK, pivots[TL_PIVOTS(NY, TL_IMPLICIT)];
    lines l = {.z = z, .p = p, .worst = worst};
    size_t k = 0;
    memcpy(s, first_modes, sizeof s);
    tl_run r = {.step = step, .rtol = rtol, .atol = atol, .longest = longest, .y = y, .s = s, .guess = start,
        .data = &l};
    tl_prepare(&machine, &tl_steps, &r, room, pivots);
    while (k < n && outcome == OK) {
        for (int i = 0; i < NU; ++i) {
            const double *now = reference + (k * NU + i) * 4;
            const double in[NI] = {now[0], now[1], 0.0, atol, now[2], now[3]};
            memcpy(l.in + i * NI, in, sizeof in);
        }
        machine_hold(&r);
        if (!tl_agree(&machine, &r)) outcome = UNHEALTHY;
        memcpy(ys + k * NY, y, sizeof(double) * NY);
        memcpy(ss + k * NS, s, sizeof(double) * NS);
        memcpy(zs + k * NZ, z, sizeof(double) * NZ);
        if (++k == n) break;
        while (r.time < (double)k * period && outcome == OK) {
            const int code = tl_next(&machine, &tl_steps, &r, (double)k * period);
            if (code == TL_TOO_SMALL) outcome = TOO_SMALL;
            else if (code == TL_CROWDED) outcome = CHATTERING;
            else if (code != TL_STEPPED) outcome = UNHEALTHY;
            else if (r.steps + r.rejected >= max_steps) outcome = TOO_LONG;
        }
    }
    report[0] = outcome, report[1] = r.time, report[2] = r.steps + r.rejected, report[3] = r.events;
    return k;
}
