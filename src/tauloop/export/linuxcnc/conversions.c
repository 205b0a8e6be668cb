/* Forward and inverse kinematics in LinuxCNC's units; the machine's tables and calls are defined above. Lengths are in mm,
   angles in degrees; the world is x, y, z, a, b, c with rotation Rz(c) Ry(b) Rx(a), as in LinuxCNC's own modules.
   No heap and no static state; every loop has a fixed number of iterations. */

#define TAULOOP_MM 1e-3
#define TAULOOP_DEG 0.017453292519943295
/* Largest difference of a found pose's joints from the requested joints, mm or degrees; it is rounding. */
#define TAULOOP_ROUND_TRIP 1e-6

static int tauloop_is_healthy(const double *health)
{
    return health[0] >= 0.0 && health[1] > TAULOOP_SMALLEST_PIVOT && health[2] < TAULOOP_CONVERGED;
}

static void tauloop_theta(const double *pins, double *theta)
{
    for (int i = 0; i < TAULOOP_THETA; ++i) theta[i] = tauloop_nominal[i];
    for (int i = 0; i < TAULOOP_FREE; ++i) theta[tauloop_free[i]] = pins[i] * tauloop_pins[i].si;
}

/* Position of the tool in base directions, mm, at a rotation R. */
static void tauloop_tool(const double *pins, double R[3][3], double *offset)
{
    for (int i = 0; i < 3; ++i) {
        offset[i] = 0.0;
#if TAULOOP_HAS_TOOL
        for (int j = 0; j < 3; ++j) offset[i] += R[i][j] * pins[TAULOOP_FREE + j];
#else
        (void)pins;
        (void)R;
#endif
    }
}

static void tauloop_rotation(const double *world, double R[3][3])
{
#if TAULOOP_TURNS == 0
    const double sa = 0.0, ca = 1.0, sb = 0.0, cb = 1.0, sc = 0.0, cc = 1.0;
    (void)world;
#elif TAULOOP_TURNS == 1
    const double sa = 0.0, ca = 1.0, sb = 0.0, cb = 1.0;
    const double sc = sin(TAULOOP_DEG * world[5]), cc = cos(TAULOOP_DEG * world[5]);
#else
    const double sa = sin(TAULOOP_DEG * world[3]), ca = cos(TAULOOP_DEG * world[3]);
    const double sb = sin(TAULOOP_DEG * world[4]), cb = cos(TAULOOP_DEG * world[4]);
    const double sc = sin(TAULOOP_DEG * world[5]), cc = cos(TAULOOP_DEG * world[5]);
#endif
    R[0][0] = cc * cb;
    R[0][1] = cc * sb * sa - sc * ca;
    R[0][2] = cc * sb * ca + sc * sa;
    R[1][0] = sc * cb;
    R[1][1] = sc * sb * sa + cc * ca;
    R[1][2] = sc * sb * ca - cc * sa;
    R[2][0] = -sb;
    R[2][1] = cb * sa;
    R[2][2] = cb * ca;
}

/* Platform position, SI, for a pose of the tool in the world. */
static void tauloop_position(const double *world, const double *pins, double *position)
{
    double R[3][3], offset[3];
    tauloop_rotation(world, R);
    tauloop_tool(pins, R, offset);
    for (int i = 0; i < TAULOOP_POSITION; ++i) {
        const int axis = tauloop_axes[i];
        if (axis < 3) position[i] = TAULOOP_MM * (world[axis] - offset[axis]);
        else if (TAULOOP_TURNS == 1) position[i] = TAULOOP_DEG * world[axis];
    }
#if TAULOOP_TURNS == 2
    const double ha = 0.5 * TAULOOP_DEG * world[3], hb = 0.5 * TAULOOP_DEG * world[4], hc = 0.5 * TAULOOP_DEG * world[5];
    const double sa = sin(ha), ca = cos(ha), sb = sin(hb), cb = cos(hb), sc = sin(hc), cc = cos(hc);
    double *turn = position + TAULOOP_POSITION - 4;
    turn[0] = cc * cb * ca + sc * sb * sa;
    turn[1] = cc * cb * sa - sc * sb * ca;
    turn[2] = cc * sb * ca + sc * cb * sa;
    turn[3] = sc * cb * ca - cc * sb * sa;
#endif
}

/* Pose of the tool in the world at the machine's coordinates, SI. */
static void tauloop_world(const double *q, const double *pins, double *world)
{
    double R[3][3], offset[3];
    for (int i = 0; i < 6; ++i) world[i] = 0.0;
#if TAULOOP_TURNS == 1
    for (int i = 0; i < TAULOOP_POSITION; ++i)
        if (tauloop_axes[i] == 5) world[5] = q[tauloop_columns[i]] / TAULOOP_DEG;
#elif TAULOOP_TURNS == 2
    double turn[4], square = 0.0;
    for (int i = 0; i < 4; ++i) {
        turn[i] = q[tauloop_columns[TAULOOP_POSITION - 4 + i]];
        square += turn[i] * turn[i];
    }
    const double w = turn[0], x = turn[1], y = turn[2], z = turn[3];
    const double r00 = w * w + x * x - y * y - z * z, r10 = 2.0 * (x * y + w * z);
    const double r20 = 2.0 * (x * z - w * y), r21 = 2.0 * (y * z + w * x), r22 = w * w - x * x - y * y + z * z;
    world[3] = atan2(r21, r22) / TAULOOP_DEG;
    world[4] = atan2(-r20, sqrt(r00 * r00 + r10 * r10)) / TAULOOP_DEG;
    world[5] = atan2(r10, r00) / TAULOOP_DEG;
    (void)square;
#endif
    tauloop_rotation(world, R);
    tauloop_tool(pins, R, offset);
    for (int i = 0; i < TAULOOP_POSITION; ++i)
        if (tauloop_axes[i] < 3) world[tauloop_axes[i]] = q[tauloop_columns[i]] / TAULOOP_MM + offset[tauloop_axes[i]];
}

#if TAULOOP_LOADS
/* Passes of the search for the commanded pose of a loaded machine; each leaves a small fraction of the deflection. */
#define TAULOOP_PASSES 5

static void tauloop_normalized(double *position)
{
#if TAULOOP_TURNS == 2
    double square = 0.0, *turn = position + TAULOOP_POSITION - 4;
    for (int i = 0; i < 4; ++i) square += turn[i] * turn[i];
    for (int i = 0; i < 4; ++i) turn[i] /= sqrt(square);
#else
    (void)position;
#endif
}

/* Commanded position, SI, of a loaded machine whose rigid position is given: its correction is that position. */
static int tauloop_commanded(const double *rigid, const double *loads, double *position)
{
    double corrected[TAULOOP_POSITION], health[4];
    for (int i = 0; i < TAULOOP_POSITION; ++i) position[i] = rigid[i];
    for (int pass = 0; pass < TAULOOP_PASSES; ++pass) {
        tauloop_correction_solved(position, loads, tauloop_reference, corrected, health);
        if (!tauloop_is_healthy(health)) return -1;
        for (int i = 0; i < TAULOOP_POSITION; ++i) position[i] += rigid[i] - corrected[i];
        tauloop_normalized(position);
    }
    return 0;
}
#endif

/* Joints (mm, degrees) of a pose in the world, on the branch of the reference pose, independent of earlier calls.
   Returns 0, or -1 out of reach, at a singularity, and for input that is not a number; the joints then do not change. */
static int tauloop_inverse(const double *world, const double *pins, double *joint, double *health)
{
    double theta[TAULOOP_THETA + 1], position[TAULOOP_POSITION], q[TAULOOP_Q], command[TAULOOP_JOINTS];
    tauloop_theta(pins, theta);
    tauloop_position(world, pins, position);
#if TAULOOP_LOADS
    double commanded[TAULOOP_POSITION];
    for (int i = 0; i < TAULOOP_POSITION; ++i) commanded[i] = position[i];
    tauloop_correction_solved(commanded, pins + TAULOOP_PINS, tauloop_reference, position, health);
    if (!tauloop_is_healthy(health)) return -1;
#endif
    tauloop_inverse_solved(position, theta, tauloop_reference, q, command, health);
    if (!tauloop_is_healthy(health)) return -1;
    for (int i = 0; i < TAULOOP_JOINTS; ++i) joint[i] = command[i] / tauloop_units[i];
    return 0;
}

static int tauloop_reached(const double *joint, const double *pins, const double *start, double *q, double *world,
                         double *health)
{
    double theta[TAULOOP_THETA + 1], command[TAULOOP_JOINTS], position[TAULOOP_JOINTS], back[TAULOOP_JOINTS], unused[4];
    tauloop_theta(pins, theta);
    for (int i = 0; i < TAULOOP_JOINTS; ++i) command[i] = joint[i] * tauloop_units[i];
    tauloop_drive_solved(command, theta, start, position, unused);
    tauloop_forward_solved(position, theta, start, q, health);
    if (!tauloop_is_healthy(health)) return -1;
#if TAULOOP_LOADS
    double rigid[TAULOOP_POSITION], commanded[TAULOOP_POSITION], loaded[TAULOOP_Q];
    for (int i = 0; i < TAULOOP_POSITION; ++i) rigid[i] = q[tauloop_columns[i]];
    if (tauloop_commanded(rigid, pins + TAULOOP_PINS, commanded)) return -1;
    for (int i = 0; i < TAULOOP_Q; ++i) loaded[i] = q[i];
    for (int i = 0; i < TAULOOP_POSITION; ++i) loaded[tauloop_columns[i]] = commanded[i];
    tauloop_world(loaded, pins, world);
#else
    tauloop_world(q, pins, world);
#endif
    if (tauloop_inverse(world, pins, back, unused)) return -1;
    for (int i = 0; i < TAULOOP_JOINTS; ++i)
        if (!(fabs(back[i] - joint[i]) <= TAULOOP_ROUND_TRIP * (1.0 + 1e-3 * fabs(joint[i])))) return -1;
    return 0;
}

/* Pose in the world of joints (mm, degrees). The search starts at the last pose, then at the reference pose. The inverse
   of the result must give the same joints: with a pose on another branch, the joints would jump as soon as LinuxCNC moves
   in the world. Returns 0, or -1 like the inverse; `last` and `world` then do not change. */
static int tauloop_forward(const double *joint, const double *pins, double *last, double *world, double *health)
{
    double q[TAULOOP_Q], place[6];
    if (tauloop_reached(joint, pins, last, q, place, health) && tauloop_reached(joint, pins, tauloop_reference, q, place, health))
        return -1;
    for (int i = 0; i < TAULOOP_Q; ++i) last[i] = q[i];
    for (int i = 0; i < 6; ++i) world[i] = place[i];
    return 0;
}

/* Hash of the values on the pins (FNV-1a of their bytes, never 0); a geometry's HAL file contains its hash. */
static unsigned tauloop_hash(const double *pins)
{
    const unsigned char *bytes = (const unsigned char *)pins;
    unsigned hash = 2166136261u;
    for (unsigned k = 0; k < TAULOOP_PINS * sizeof *pins; ++k) hash = (hash ^ bytes[k]) * 16777619u;
    return hash ? hash : 1u;
}
