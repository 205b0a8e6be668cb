/* Reports why the equations have no solution: the leg that is out of reach, and its distance in millimeters.

   The TL_FORMS closed forms have the names tl_form. `machine_diagnosis` returns for each the least and the greatest psi
   over its unknown, and the rod's length or zero. A rod closes if psi can be zero (see `tauloop.model.positions.diagnosis`). */

static void tl_explain(tl_instance *of, double time)
{
    tl_memory *at = &of->at;
    const double *worst = at->worst + 3;
    char text[400];
    int most = -1;
    double gap = 0.0, margin = HUGE_VAL;
#if TL_FORMS
    double extremes[3 * TL_FORMS];
    int nearest = -1;
    memcpy(at->guess, at->base, sizeof(double) * NQ);
    system_diagnosis(&at->run, time, at->run.y, extremes, 0);
    for (int i = 0; i < TL_FORMS; ++i) {
        const double least = extremes[3 * i], greatest = extremes[3 * i + 1], length = extremes[3 * i + 2];
        double beyond = least, within = greatest;
        if (length > 0.0) {
            const double nearby = length * length + 2.0 * least, far = length * length + 2.0 * greatest;
            beyond = sqrt(nearby > 0.0 ? nearby : 0.0) - length;
            within = sqrt(far > 0.0 ? far : 0.0) - length;
        }
        if (!(beyond - beyond == 0.0 && within - within == 0.0)) continue;
        if (beyond > 0.0 && beyond > fabs(gap)) gap = beyond, most = i;
        if (within < 0.0 && -within > fabs(gap)) gap = within, most = i;
        if (-beyond < margin) margin = -beyond, nearest = i;
        if (within < margin) margin = within, nearest = i;
    }
    if (most >= 0 && fabs(gap) > 1e-7 * TL_LENGTH) {
        snprintf(text, sizeof text, "at %.9g s: %s: out of reach by %.4g mm (too %s)", time, tl_form[most],
            1e3 * fabs(gap), gap > 0.0 ? "far away" : "near");
        tl_say(of, text);
        return;
    }
    if (most < 0) most = nearest;
    if (most >= 0 && worst[2] < TL_CONVERGED) {
        const int is_singular = worst[0] >= 0.0 && worst[1] < 1e-3;
        snprintf(text, sizeof text, "at %.9g s: %s: %s, %.4g mm from the end of its reach (smallest pivot %.3g of its "
            "usual size)", time, tl_form[most], is_singular ? "singular pose" : "no motion goes on", 1e3 * fabs(margin),
            worst[1]);
        tl_say(of, text);
        return;
    }
#endif
    (void)most, (void)gap, (void)margin;
    if (worst[2] >= TL_CONVERGED)
        snprintf(text, sizeof text, "at %.9g s: %s: the loops do not close: they miss by %.4g of the machine's "
            "characteristic length", time, TL_LOOPS, worst[2]);
    else
        snprintf(text, sizeof text, "at %.9g s: %s: singular pose: smallest pivot %.3g of its usual size", time, TL_LOOPS,
            worst[1]);
    tl_say(of, text);
}
