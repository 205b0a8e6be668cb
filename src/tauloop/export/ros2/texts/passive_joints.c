/* See passive_joints.h. */
#include "passive_joints.h"

#include <math.h>
#include <string.h>

#include "machine.h"

void passive_joints_start(struct passive_joints *state)
{
    memcpy(state->q, machine_start, sizeof state->q);
    memset(state->driven, 0, sizeof state->driven);
    memset(state->is_known, 0, sizeof state->is_known);
}

int passive_joints_take(struct passive_joints *state, const char *name, double position)
{
    if (!isfinite(position)) return 0;
    for (int k = 0; k < MACHINE_DRIVEN; ++k) {
        if (strcmp(name, machine_joint_names[machine_driven[k]]) == 0) {
            state->driven[k] = position;
            state->is_known[k] = 1;
            return 1;
        }
    }
    return 0;
}

int passive_joints_compute(struct passive_joints *state, double position[MACHINE_JOINTS])
{
    double motor[MACHINE_MOTORS], rest[MACHINE_MOTORS] = {0}, q[MACHINE_COORDINATES], health[4];
    for (int k = 0; k < MACHINE_DRIVEN; ++k)
        if (!state->is_known[k]) return 1;
    for (int i = 0; i < MACHINE_MOTORS; ++i) {
        motor[i] = machine_motor_offsets[i];
        for (int k = 0; k < MACHINE_DRIVEN; ++k)
            motor[i] += machine_ratios[i][k] * (state->driven[k] - machine_joint_offsets[machine_driven[k]]);
    }
    machine_kinematics(motor, rest, rest, state->q, q, health);
    /* discriminants, pivots and residuals of Newton's loops: see machine.h */
    if (!(health[0] >= 0.0 && health[1] > MACHINE_PIVOT && health[2] <= MACHINE_RESIDUAL)) return 2;
    for (int k = 0; k < MACHINE_COORDINATES; ++k)
        if (!isfinite(q[k])) return 2;
    memcpy(state->q, q, sizeof q);
    for (int j = 0; j < MACHINE_JOINTS; ++j)
        position[j] = q[machine_joint_coordinates[j]] + machine_joint_offsets[j];
    return 0;
}

void passive_joints_floating(const struct passive_joints *state, int k, double pose[7])
{
    const double *q = state->q + machine_floating[k].first;
    const double length = sqrt(q[3] * q[3] + q[4] * q[4] + q[5] * q[5] + q[6] * q[6]);
    for (int i = 0; i < 7; ++i) pose[i] = i < 3 ? q[i] : q[i] / length;
}
