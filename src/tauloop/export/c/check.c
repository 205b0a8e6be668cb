/* Functions of the test programs; TOLERANCE, ZERO_LEVEL, SMALLEST_PIVOT and CONVERGED are defined before. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

/* Largest deviation from the repeated expected numbers, relative to the largest; not-a-number is a failure. */
static double deviation(const double *found, size_t count, const double *expected, size_t expected_count)
{
    double largest = 0.0, worst = 0.0;
    for (size_t i = 0; i < expected_count; ++i) largest = fabs(expected[i]) > largest ? fabs(expected[i]) : largest;
    if (largest < ZERO_LEVEL) largest = 1.0;
    for (size_t i = 0; i < count; ++i) {
        const double error = fabs(found[i] - expected[i % expected_count]) / largest;
        if (!(error <= worst)) worst = error >= 0.0 ? error : HUGE_VAL;
    }
    return worst;
}

static int report(const char *what, const char *port, double worst)
{
    const int failed = !(worst <= TOLERANCE);
    printf("%s %s: deviation %.2e (tolerance %.0e)%s\n", what, port, (PRINTED)worst, (PRINTED)TOLERANCE, failed ? ": FAILED" : "");
    return failed;
}

static int unhealthy(const char *what, const double *health, size_t samples)
{
    int failed = 0;
    for (size_t s = 0; s < samples; ++s) {
        const double *h = health + 4 * s;
        if (!(h[0] >= 0.0 && h[1] > SMALLEST_PIVOT && h[2] < CONVERGED)) failed = 1;
    }
    if (failed) printf("%s health: FAILED\n", what);
    return failed;
}
