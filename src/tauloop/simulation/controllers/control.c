/* Many starts of one machine under a sampled control, one thread each; forces act from sample to sample, without delay.

   In front of this stand `kernels.h`, `hybrid.c` and `system.c`, and TL_FOUND numbers that a sample finds, of which the
   first NZ act; behind it the system's routines. Arrays over starts are structures of arrays. Of every `every`-th sample
   the state and what acts are kept. `figures`: the period, the method's four numbers, and the most steps. Report: outcome,
   samples, steps, and the least discriminant and pivot and the largest residual. */

/* Further outcomes: too many steps. */
enum { TL_TOO_LONG = 20 };

TL_KERNEL tl_control(size_t n, size_t from, size_t to, size_t samples, size_t every, const double *restrict figures,
    const double *restrict in, const double *restrict p, const double *restrict first, const double *restrict q,
    const double *restrict state, double *restrict states, double *restrict forces, double *restrict report)
{
    TL_OWN_CONSTANTS
    TL_PART(i, from, to) {
        const double period = figures[0], most = figures[5];
        double room[TL_ROOM(NY, NS, NQ, TL_KNOWN, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
        double known[TL_KNOWN + 1], y[NY], s[NS + 1], z[TL_FOUND], held[NZ], start[NQ];
        double worst[6] = {1.0, 1e300, 0.0, 0.0, 0.0, 0.0};
        int pivots[TL_PIVOTS(NY, TL_IMPLICIT)], code = TL_STEPPED;
        size_t k = 0;
        tl_data l = {0};
        tl_run r = {0};
        for (int j = 0; j < NY; ++j) y[j] = state[(size_t)j * n + i];
        for (int j = 0; j < NQ; ++j) start[j] = q[(size_t)j * n + i];
        for (int j = 0; j < TL_FOUND; ++j) z[j] = first[(size_t)j * n + i];
        l.z = z, l.p = p, l.held = held, l.worst = worst;
        r.step = figures[1], r.rtol = figures[2], r.atol = figures[3], r.longest = figures[4];
        r.y = y, r.s = s, r.guess = start, r.known = known, r.data = &l;
        tl_prepare(&tl_system, &tl_steps, &r, room, pivots);
        for (; k < samples && code == TL_STEPPED; ++k) {
            double zero = 0.0;
            l.in = in + k * NI;
            if (!system_sample(&r, r.time, y, 0, 0)) zero = 1.0;
            for (int j = 0; j < NZ; ++j) held[j] = z[j], zero += z[j] - z[j];
            if (zero != 0.0) {
                code = TL_UNHEALTHY;
                break;
            }
            if (k % every == 0) {
                const size_t row = k / every;
                for (int j = 0; j < NY; ++j) states[(row * NY + (size_t)j) * n + i] = y[j];
                for (int j = 0; j < NZ; ++j) forces[(row * NZ + (size_t)j) * n + i] = z[j];
            }
            r.is_known = 0;
            while (k + 1 < samples && code == TL_STEPPED && r.time < (double)(k + 1) * period)
                code = r.steps + r.rejected < most
                    ? tl_next(&tl_system, &tl_steps, &r, (double)(k + 1) * period) : TL_TOO_LONG;
        }
        for (size_t row = (k + every - 1) / every; row * every < samples; ++row) {
            for (size_t j = 0; j < NY; ++j) states[(row * NY + j) * n + i] = HUGE_VAL - HUGE_VAL;
            for (size_t j = 0; j < NZ; ++j) forces[(row * NZ + j) * n + i] = HUGE_VAL - HUGE_VAL;
        }
        report[i] = (double)code, report[n + i] = (double)k, report[2 * n + i] = r.steps + r.rejected;
        for (size_t j = 0; j < 3; ++j) report[(3 + j) * n + i] = worst[j];
    }
}
