/* Positions of all joints of a machine with closed loops from those of its driven ones. C99; no ROS, no heap. */
#ifndef PASSIVE_JOINTS_H
#define PASSIVE_JOINTS_H

#include "machine_joints.h"

#ifdef __cplusplus
extern "C" {
#endif

struct passive_joints {
    double q[MACHINE_COORDINATES];  /* the last pose, where the search for the next starts */
    double driven[MACHINE_DRIVEN];  /* the last measured positions */
    int is_known[MACHINE_DRIVEN];
};

/* Start at the machine's reference pose, with no joint measured. */
void passive_joints_start(struct passive_joints *state);

/* Take a measured joint by its name; 1 if it is a driven one and its position a number, else 0. */
int passive_joints_take(struct passive_joints *state, const char *name, double position);

/* Positions of all joints, as in machine_joint_names. 0: done. 1: some driven joint was never measured. 2: the loops
   cannot be closed there (out of reach, or singular): nothing is written, and the last pose stays. */
int passive_joints_compute(struct passive_joints *state, double position[MACHINE_JOINTS]);

/* Pose of a floating link of machine_floating in its parent's frame, at the last pose: x, y, z, qw, qx, qy, qz. */
void passive_joints_floating(const struct passive_joints *state, int k, double pose[7]);

#ifdef __cplusplus
}
#endif

#endif
