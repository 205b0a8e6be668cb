/* @stem@_tracker: payload and friction while the machine moves; made by Tauloop, do not edit
 *
 * Call @stem@_tracker_begin once, and @stem@_tracker_step with each sample. No memory is allocated, and every loop has
 * a fixed length. An estimate describes the state @delay@ s before it. SI units, angles in radians.
 *
@parameters@
 */
#ifndef @STEM@_TRACKER_H
#define @STEM@_TRACKER_H

#ifdef __cplusplus
extern "C" {
#endif

#define @STEM@_TRACKER_MOTORS @motors@
#define @STEM@_TRACKER_FORCES @forces@
#define @STEM@_TRACKER_COORDINATES @coordinates@
#define @STEM@_TRACKER_PARAMETERS @n@
#define @STEM@_TRACKER_TRACKED @tracked@
/* Samples from one update to the next, and the time between two samples, s. */
#define @STEM@_TRACKER_INTERVAL @interval@
#define @STEM@_TRACKER_PERIOD @period@

typedef struct {
    double position_lag[3][@motors@];
    double force_lag[3][@forces@];
    double row_lag[2][@forces@ * (@n@ + 1)];
    double moving_lag[2][@forces@];
    double position_before[2][@motors@];
    double force_before[@forces@];
    double q[@coordinates@];
    /* R and z with R x = z and the parameters x, tracked parameters first */
    double triangle[@n@][@n@ + 1];
    double deviation[@tracked@];
    int frozen[@tracked@];
    int begun;
    int until_update;
} @stem@_tracker;

/* Start from the saved fit, at rest at the first sample. */
void @stem@_tracker_begin(@stem@_tracker *tracker);

/* Take one sample: positions and forces of the motors. Returns 1 after an update of the fit, 0 without one, and -1 if the
   sample is ignored: a number is not finite, or the pose is out of reach. */
int @stem@_tracker_step(@stem@_tracker *tracker, const double position[@motors@], const double force[@forces@]);

/* Estimates of all parameters, in the order above. */
void @stem@_tracker_values(const @stem@_tracker *tracker, double value[@n@]);

#ifdef __cplusplus
}
#endif
#endif
