/* A real-time component for tests: calls the kinematics that are loaded, whichever they are, with all rows of a file.
   A row has 6 numbers of the world; out come 9 joints, the status of the inverse, the world that the forward gives of
   them from near by, its status, and ns for a call of each. loadrt tl_probe in=PATH out=PATH joints=N */

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <rtapi.h>
#include <rtapi_app.h>
#include <hal.h>
#include <kinematics.h>

MODULE_LICENSE("GPL");

#define ROUNDS 200

static char *in = "world.bin", *out = "probed.bin";
RTAPI_MP_STRING(in, "rows of 6 doubles");
RTAPI_MP_STRING(out, "rows of 19 doubles");

static int component;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static EmcPose pose_of(const double *row)
{
    EmcPose pose = {{row[0], row[1], row[2]}, row[3], row[4], row[5], 0.0, 0.0, 0.0};
    return pose;
}

static void probe(const double *row, double *answer)
{
    KINEMATICS_FORWARD_FLAGS forward = 0;
    KINEMATICS_INVERSE_FLAGS inverse = 0;
    double joint[16] = {0.0}, best[2] = {1e300, 1e300};
    EmcPose world = pose_of(row), place = world;
    answer[9] = kinematicsInverse(&world, joint, &inverse, &forward);
    for (int i = 0; i < 9; ++i) answer[i] = joint[i];
    place.tran.x += 0.3;
    place.tran.y -= 0.2;
    place.a += row[3] != 0.0 ? 0.1 : 0.0;
    answer[16] = answer[9] ? -1 : kinematicsForward(joint, &place, &forward, &inverse);
    answer[10] = place.tran.x;
    answer[11] = place.tran.y;
    answer[12] = place.tran.z;
    answer[13] = place.a;
    answer[14] = place.b;
    answer[15] = place.c;
    for (int round = 0; round < ROUNDS; ++round) {
        double start = now(), taken;
        kinematicsInverse(&world, joint, &inverse, &forward);
        taken = now() - start;
        if (taken < best[0]) best[0] = taken;
        place = pose_of(row);
        place.tran.x += 0.3;
        start = now();
        if (!answer[9]) kinematicsForward(joint, &place, &forward, &inverse);
        taken = now() - start;
        if (taken < best[1]) best[1] = taken;
    }
    answer[17] = best[0];
    answer[18] = best[1];
}

int rtapi_app_main(void)
{
    FILE *rows, *answers;
    double row[6], answer[19];
    component = hal_init("tl_probe");
    if (component < 0) return component;
    rows = fopen(in, "rb");
    answers = fopen(out, "wb");
    if (!rows || !answers) {
        hal_exit(component);
        return -1;
    }
    while (fread(row, sizeof(double), 6, rows) == 6) {
        probe(row, answer);
        fwrite(answer, sizeof(double), 19, answers);
    }
    fclose(rows);
    fclose(answers);
    hal_ready(component);
    return 0;
}

void rtapi_app_exit(void)
{
    hal_exit(component);
}
