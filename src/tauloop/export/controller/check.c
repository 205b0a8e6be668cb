/* Defined before this file: inputs at rest at the reference pose, and the forces that hold the machine there. */

#include <math.h>
#include <stdio.h>
#include <string.h>

static int failed = 0;

static void expect(int good, const char *what)
{
    if (!good) printf("FAILED: %s\n", what), failed = 1;
}

static unsigned sample(@NAME@_controller *controller, @NAME@_input *input, double *force)
{
    const unsigned flags = @NAME@_step(controller, input, force);
    int finite = 1;
    input->time += @UP@_PERIOD, input->stamp += 1.0;
    for (int i = 0; i < @UP@_FORCES; ++i) finite &= force[i] - force[i] == 0.0;
    expect(finite, "forces are numbers");
    return flags;
}

int main(void)
{
    static @NAME@_controller controller;
    @NAME@_input input;
    double force[@UP@_FORCES], most = 1.0, off = 0.0;
    unsigned flags = 0;
    unsigned stopped = 0;
    expect(@NAME@_begin(&controller, @UP@_PARAMETER_HASH + 1) != 0, "other parameters are refused");
    expect(@NAME@_begin(&controller, @UP@_PARAMETER_HASH) == 0, "the parameters are those of the code");
    memcpy(&input, at_rest, sizeof input);
    for (int k = 0; k < 5; ++k) expect(sample(&controller, &input, force) == 0, "all is well at rest");
    for (int i = 0; i < @UP@_FORCES; ++i) {
        most = fabs(holding[i]) > most ? fabs(holding[i]) : most;
        off = fabs(force[i] - holding[i]) > off ? fabs(force[i] - holding[i]) : off;
    }
    expect(!KNOWN || off < 1e-6 * most, "forces are those that hold the machine");
    for (int i = 0; i < (int)(sizeof input.position / sizeof(double)); ++i)
        ((double *)&input)[offsetof(@NAME@_input, position) / sizeof(double) + (size_t)i] = nan("");
    for (int k = 0; k < 1000000 && !(flags & @UP@_BRAKES); ++k) {
        flags = sample(&controller, &input, force);
        expect(flags & @UP@_NOT_A_NUMBER, "what is no number is seen");
        stopped |= flags & (@UP@_STOPS | @UP@_BRAKES);
    }
    expect(stopped != 0 && flags & @UP@_BRAKES, "without a measurement it stops and brakes");
    for (int i = 0; i < @UP@_FORCES; ++i) expect(force[i] == 0.0, "brakes hold alone");
    expect(@NAME@_expired(&controller, input.time + 1000.0), "the watchdog runs out");
    printf("%s\n", failed ? "FAILED" : "all is well");
    return failed;
}
