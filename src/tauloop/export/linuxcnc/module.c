/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions that LinuxCNC calls. The geometry is read from HAL pins at every call, so a calibration needs no compiler.
   Set the pins before homing: joint positions jump with the geometry. */

#include <rtapi.h>
#include <rtapi_app.h>
#include <rtapi_math.h>
#include <hal.h>
#include <kinematics.h>

MODULE_LICENSE("GPL");

/* Diagnostics of the last calls, on pins. */
static const char *const tauloop_evidence[4] = {"reach", "pivot", "residual", "iterations"};

static struct tauloop_hal {
    hal_float_t *pin[TAULOOP_PINS + 1], *load[TAULOOP_LOADS + 1];
    hal_float_t *inverse[4], *forward[4];
    hal_u32_t *refused, *geometry, *asked;
} *tauloop_hal;

static int tauloop_component;
static double tauloop_last[TAULOOP_Q];

/* Reads the values of all pins, those of the loads last, or those of the file before pins exist. Returns 0, or -1 if they are not the values that
   the geometry's HAL file was written for. */
static int tauloop_geometry(double *pins)
{
    static double seen[TAULOOP_PINS + 1];
    static unsigned hash, complained;
    int is_seen = hash != 0;
    for (int i = 0; i < TAULOOP_PINS; ++i) {
        pins[i] = tauloop_hal ? *tauloop_hal->pin[i] : tauloop_pins[i].value;
        is_seen &= pins[i] == seen[i];
        seen[i] = pins[i];
    }
    for (int i = 0; i < TAULOOP_LOADS; ++i) pins[TAULOOP_PINS + i] = tauloop_hal ? *tauloop_hal->load[i] : 0.0;
    if (!tauloop_hal) return 0;
    if (!is_seen) hash = tauloop_hash(pins);
    *tauloop_hal->geometry = hash;
    if (!*tauloop_hal->asked || *tauloop_hal->asked == hash) return 0;
    if (complained != hash)
        rtapi_print_msg(RTAPI_MSG_ERR, TAULOOP_MODULE ": the geometry on the pins is %u, and its file was written for %u: "
                        "load the whole file, or set geometry.asked to 0\n", hash, (unsigned)*tauloop_hal->asked);
    complained = hash;
    ++*tauloop_hal->refused;
    return -1;
}

static int tauloop_reported(int status, hal_float_t **pins, const double *health)
{
    for (int i = 0; i < 4; ++i) *pins[i] = health[i];
    if (status) ++*tauloop_hal->refused;
    return status;
}

KINEMATICS_TYPE kinematicsType(void)
{
    return KINEMATICS_BOTH;
}

int kinematicsSwitchable(void)
{
    return 0;
}

int kinematicsSwitch(int type)
{
    (void)type;
    return 0;
}

int kinematicsForward(const double *joint, EmcPose *world, const KINEMATICS_FORWARD_FLAGS *fflags,
                      KINEMATICS_INVERSE_FLAGS *iflags)
{
    double pins[TAULOOP_PINS + TAULOOP_LOADS + 1], place[6], health[4];
    (void)fflags;
    (void)iflags;
    if (tauloop_geometry(pins)) return -1;
    const int status = tauloop_forward(joint, pins, tauloop_last, place, health);
    if (!status) {
        world->tran.x = place[0];
        world->tran.y = place[1];
        world->tran.z = place[2];
        world->a = place[3];
        world->b = place[4];
        world->c = place[5];
        world->u = world->v = world->w = 0.0;
    }
    return tauloop_hal ? tauloop_reported(status, tauloop_hal->forward, health) : status;
}

int kinematicsInverse(const EmcPose *world, double *joint, const KINEMATICS_INVERSE_FLAGS *iflags,
                      KINEMATICS_FORWARD_FLAGS *fflags)
{
    double pins[TAULOOP_PINS + TAULOOP_LOADS + 1], health[4];
    const double place[6] = {world->tran.x, world->tran.y, world->tran.z, world->a, world->b, world->c};
    (void)iflags;
    (void)fflags;
    if (tauloop_geometry(pins)) return -1;
    const int status = tauloop_inverse(place, pins, joint, health);
    return tauloop_hal ? tauloop_reported(status, tauloop_hal->inverse, health) : status;
}

EXPORT_SYMBOL(kinematicsType);
EXPORT_SYMBOL(kinematicsSwitchable);
EXPORT_SYMBOL(kinematicsSwitch);
EXPORT_SYMBOL(kinematicsForward);
EXPORT_SYMBOL(kinematicsInverse);

/* Pins for the diagnostics of one direction. */
static int tauloop_watch(hal_float_t **pins, const char *direction)
{
    int failed = 0;
    for (int i = 0; i < 4; ++i)
        failed |= hal_pin_float_newf(HAL_OUT, &pins[i], tauloop_component, TAULOOP_MODULE ".%s.%s", direction,
                                     tauloop_evidence[i]);
    return failed;
}

static const char *const tauloop_loads[TAULOOP_LOADS + 1] = TAULOOP_LOAD_NAMES;

int rtapi_app_main(void)
{
    int failed = 0;
    struct tauloop_hal *made;
    tauloop_component = hal_init(TAULOOP_MODULE);
    if (tauloop_component < 0) return tauloop_component;
    made = hal_malloc(sizeof *made);
    if (!made) failed = -1;
    for (int i = 0; i < TAULOOP_PINS && !failed; ++i) {
        failed = hal_pin_float_newf(HAL_IN, &made->pin[i], tauloop_component, TAULOOP_MODULE ".%s", tauloop_pins[i].name);
        if (!failed) *made->pin[i] = tauloop_pins[i].value;
    }
    for (int i = 0; i < TAULOOP_LOADS && !failed; ++i) {
        failed = hal_pin_float_newf(HAL_IN, &made->load[i], tauloop_component, TAULOOP_MODULE ".%s", tauloop_loads[i]);
        if (!failed) *made->load[i] = 0.0;
    }
    if (!failed) failed = tauloop_watch(made->inverse, "inverse") | tauloop_watch(made->forward, "forward");
    if (!failed) failed = hal_pin_u32_newf(HAL_OUT, &made->refused, tauloop_component, TAULOOP_MODULE ".refused");
    if (!failed) failed = hal_pin_u32_newf(HAL_OUT, &made->geometry, tauloop_component, TAULOOP_MODULE ".geometry.is");
    if (!failed) failed = hal_pin_u32_newf(HAL_IN, &made->asked, tauloop_component, TAULOOP_MODULE ".geometry.asked");
    if (failed) {
        hal_exit(tauloop_component);
        return failed;
    }
    for (int i = 0; i < TAULOOP_Q; ++i) tauloop_last[i] = tauloop_reference[i];
    tauloop_hal = made;
    rtapi_print(TAULOOP_MODULE ": %s\n", TAULOOP_MADE);
    hal_ready(tauloop_component);
    return 0;
}

void rtapi_app_exit(void)
{
    tauloop_hal = 0;
    hal_exit(tauloop_component);
}
