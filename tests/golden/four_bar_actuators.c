/* four_bar, actuators */
#include <math.h>
#include <stddef.h>

#define TL_LANES 16

static inline double tl_reduced(double x, double *quadrant)
{
    const double k = floor(x * 0.63661977236758134308 + 0.5);
    *quadrant = k - 4.0 * floor(0.25 * k);
    return ((x - k * 1.57079632673412561417e+00) - k * 6.07710050630396597660e-11) - k * 2.02226624879595063154e-21;
}

static inline double tl_sin_kernel(double r)
{
    const double z = r * r;
    return r + r * z * (-1.66666666666666324348e-01 + z * (8.33333333332248946124e-03
        + z * (-1.98412698298579493134e-04 + z * (2.75573137070700676789e-06
        + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
}

static inline double tl_cos_kernel(double r)
{
    const double z = r * r;
    const double h = 0.5 * z;
    const double w = 1.0 - h;
    return w + (((1.0 - w) - h) + z * z * (4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03
        + z * (2.48015872894767294178e-05 + z * (-2.75573143513906633035e-07
        + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
}

static inline double tl_sin(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? c : s;
    return k >= 2.0 ? -y : y;
}

static inline double tl_cos(double x)
{
    double k;
    const double r = tl_reduced(x, &k);
    const double s = tl_sin_kernel(r), c = tl_cos_kernel(r);
    const double y = (k == 1.0 || k == 3.0) ? s : c;
    return (k == 1.0 || k == 2.0) ? -y : y;
}

static inline int tl_all_below(const double *length, double last)
{
    int above = 0;
    for (int l = 0; l < TL_LANES; ++l) above += length[l] > last;
    return above == 0;
}

void actuators_inverse_dynamics(const double *restrict position, const double *restrict start, const double *restrict velocity, const double *restrict acceleration, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double start_1[2];
    double fixed_2[4];
    double solution_3[2];
    double pivots[6];
    double step_length[1] = {0.0};
    double residual[1] = {0.0};
    int iterations = 0;
    (void)position;
    (void)start;
    (void)velocity;
    (void)acceleration;
    {
        const double t0 = start[1];
        start_1[0] = t0;
        const double t2 = start[2];
        start_1[1] = t2;
        const double t4 = position[0];
        const double t5 = tl_cos(t4);
        fixed_2[0] = t5;
        const double t7 = tl_sin(t4);
        fixed_2[1] = t7;
        const double t10 = 0.1 * t5;
        fixed_2[2] = t10;
        const double t12 = 0.1 * t7;
        fixed_2[3] = t12;
    }
    {
        solution_3[0] = start_1[0];
        solution_3[1] = start_1[1];
    }
    for (int iteration = 1; iteration <= 60; ++iteration) {
        {
            double dx_0;
            double dx_1;
            const double t2 = solution_3[0];
            const double t3 = tl_cos(t2);
            const double t4 = 0.22 * t3;
            const double t5 = 0.3 + t4;
            const double t6 = fixed_2[2];
            const double t8 = fixed_2[0];
            const double t9 = solution_3[1];
            const double t10 = tl_cos(t9);
            const double t11 = t8 * t10;
            const double t12 = fixed_2[1];
            const double t13 = tl_sin(t9);
            const double t14 = t12 * t13;
            const double t15 = t11 - t14;
            const double t16 = 0.28 * t15;
            const double t17 = t6 + t16;
            const double t18 = t5 - t17;
            const double t20 = tl_sin(t2);
            const double t21 = 0.22 * t20;
            const double t22 = fixed_2[3];
            const double t23 = t12 * t10;
            const double t24 = t8 * t13;
            const double t25 = t23 + t24;
            const double t26 = 0.28 * t25;
            const double t27 = t22 + t26;
            const double t28 = t21 - t27;
            const double t30 = t24 + t23;
            const double t31 = 0.28 * t30;
            const double t32 = t4 / t21;
            const double t33 = t32 * t18;
            const double t34 = t28 + t33;
            const double t35 = t32 * t31;
            const double t36 = t35 - t16;
            const double t37 = t34 / t36;
            const double t38 = t31 * t37;
            const double t39 = t38 - t18;
            const double t40 = t39 / t21;
            const double t41 = -t40;
            dx_0 = t41;
            const double t43 = -t37;
            dx_1 = t43;
            double longest = 0.0, limit;
            longest = fabs(dx_0) > longest ? fabs(dx_0) : longest;
            longest = fabs(dx_1) > longest ? fabs(dx_1) : longest;
            limit = longest > 0.5 ? 0.5 / longest : 1.0;
            solution_3[0] += limit * dx_0;
            solution_3[1] += limit * dx_1;
            step_length[0] = longest;
        }
        iterations = iteration > iterations ? iteration : iterations;
        if (!(step_length[0] > 1e-11)) break;
    }
    {
        double phi_0;
        double phi_1;
        const double t2 = solution_3[0];
        const double t3 = tl_cos(t2);
        const double t4 = 0.22 * t3;
        const double t5 = 0.3 + t4;
        const double t6 = fixed_2[2];
        const double t8 = fixed_2[0];
        const double t9 = solution_3[1];
        const double t10 = tl_cos(t9);
        const double t11 = t8 * t10;
        const double t12 = fixed_2[1];
        const double t13 = tl_sin(t9);
        const double t14 = t12 * t13;
        const double t15 = t11 - t14;
        const double t16 = 0.28 * t15;
        const double t17 = t6 + t16;
        const double t18 = t5 - t17;
        phi_0 = t18;
        const double t20 = tl_sin(t2);
        const double t21 = 0.22 * t20;
        const double t22 = fixed_2[3];
        const double t23 = t12 * t10;
        const double t24 = t8 * t13;
        const double t25 = t23 + t24;
        const double t26 = 0.28 * t25;
        const double t27 = t22 + t26;
        const double t28 = t21 - t27;
        phi_1 = t28;
        residual[0] += fabs(phi_0);
        residual[0] += fabs(phi_1);
    }
    {
        const double t0 = position[0];
        q[0] = t0;
        const double t2 = solution_3[0];
        q[1] = t2;
        const double t4 = solution_3[1];
        q[2] = t4;
        const double t6 = velocity[0];
        v[0] = t6;
        const double t9 = tl_sin(t0);
        const double t10 = 0.1 * t9;
        const double t11 = t6 * t10;
        const double t13 = tl_cos(t4);
        const double t14 = t9 * t13;
        const double t15 = tl_cos(t0);
        const double t16 = tl_sin(t4);
        const double t17 = t15 * t16;
        const double t18 = t14 + t17;
        const double t19 = 0.28 * t18;
        const double t20 = t6 * t19;
        const double t21 = t11 + t20;
        const double t22 = 0.1 * t15;
        const double t23 = t6 * t22;
        const double t24 = t15 * t13;
        const double t25 = t9 * t16;
        const double t26 = t24 - t25;
        const double t27 = 0.28 * t26;
        const double t28 = t6 * t27;
        const double t29 = t23 + t28;
        const double t31 = tl_cos(t2);
        const double t32 = 0.22 * t31;
        const double t33 = tl_sin(t2);
        const double t34 = 0.22 * t33;
        const double t35 = t32 / t34;
        const double t36 = t35 * t21;
        const double t37 = t29 - t36;
        const double t38 = t35 * t19;
        const double t39 = t38 - t27;
        const double t40 = t37 / t39;
        const double t41 = t19 * t40;
        const double t42 = t21 + t41;
        const double t43 = t42 / t34;
        v[1] = t43;
        v[2] = t40;
        const double t46 = acceleration[0];
        a[0] = t46;
        const double t48 = t46 * t10;
        const double t49 = t6 * t23;
        const double t50 = t48 + t49;
        const double t51 = t46 * t19;
        const double t52 = t50 + t51;
        const double t53 = t6 + t40;
        const double t54 = t53 * t27;
        const double t55 = t53 * t54;
        const double t56 = t52 + t55;
        const double t57 = t43 * t43;
        const double t58 = t32 * t57;
        const double t59 = t56 - t58;
        const double t60 = t34 * t57;
        const double t61 = t46 * t22;
        const double t62 = t6 * t11;
        const double t63 = t61 - t62;
        const double t64 = t46 * t27;
        const double t65 = t63 + t64;
        const double t66 = t53 * t19;
        const double t67 = t53 * t66;
        const double t68 = t65 - t67;
        const double t69 = t60 + t68;
        const double t70 = t35 * t59;
        const double t71 = t69 - t70;
        const double t72 = t71 / t39;
        const double t73 = t19 * t72;
        const double t74 = t59 + t73;
        const double t75 = t74 / t34;
        a[1] = t75;
        a[2] = t72;
        const double t79 = 0.00040400000000000006 * t46;
        const double t81 = (-0.05886) * t15;
        const double t82 = t79 - t81;
        const double t84 = t46 + t72;
        const double t85 = 0.007850000000000001 * t84;
        const double t87 = 0.1 * t6;
        const double t88 = t6 * t87;
        const double t89 = t16 * t88;
        const double t90 = 0.1 * t46;
        const double t91 = t13 * t90;
        const double t92 = t89 + t91;
        const double t94 = (-9.81) * t26;
        const double t95 = t92 - t94;
        const double t96 = 0.042 * t95;
        const double t97 = t85 + t96;
        const double t99 = t16 * t90;
        const double t100 = t13 * t88;
        const double t101 = t99 - t100;
        const double t102 = (-9.81) * t18;
        const double t103 = t101 - t102;
        const double t104 = 0.3 * t103;
        const double t105 = 0.042 * t53;
        const double t106 = t53 * t105;
        const double t107 = t104 - t106;
        const double t108 = t16 * t107;
        const double t109 = 0.3 * t95;
        const double t110 = 0.042 * t84;
        const double t111 = t109 + t110;
        const double t112 = t13 * t111;
        const double t113 = t108 + t112;
        const double t114 = 0.1 * t113;
        const double t115 = t97 + t114;
        const double t116 = t82 + t115;
        const double t118 = 0.002 * t6;
        const double t120 = (double)((t6 > 0.0) - (t6 < 0.0));
        const double t121 = 0.01 * t120;
        const double t122 = t118 + t121;
        const double t123 = t116 + t122;
        const double t125 = 0.0001 * t46;
        const double t126 = t123 + t125;
        tree_force[0] = t126;
        const double t129 = 0.0038799999999999998 * t75;
        const double t131 = (-0.258984) * t31;
        const double t132 = t129 - t131;
        tree_force[1] = t132;
        tree_force[2] = t97;
        const double t135 = t10 + t19;
        const double t136 = t19 / t34;
        const double t137 = t136 * t132;
        const double t138 = t97 + t137;
        const double t139 = t136 * t32;
        const double t140 = t139 - t27;
        const double t141 = t138 / t140;
        const double t142 = t32 * t141;
        const double t143 = t132 - t142;
        const double t144 = t143 / t34;
        const double t145 = t135 * t144;
        const double t146 = t22 + t27;
        const double t147 = t146 * t141;
        const double t148 = t145 + t147;
        const double t149 = t126 + t148;
        force[0] = t149;
        const double t151 = -t144;
        closure_force[0] = t151;
        closure_force[1] = t141;
        const double t154 = -t34;
        pivots[0] = t154;
        pivots[1] = t39;
        pivots[2] = t154;
        pivots[3] = t39;
        pivots[4] = t154;
        pivots[5] = t140;
    }
    {
        double least = 1.0, pivot = 1e300, size;
        (void)size;
        size = fabs(pivots[0]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[1]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[2]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[3]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[4]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[5]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        health[0] = least;
        health[1] = pivot;
        health[2] = residual[0];
        health[3] = (double)iterations;
    }
}

static void actuators_inverse_dynamics_block(const double position[restrict][TL_LANES], const double start[restrict][TL_LANES], const double velocity[restrict][TL_LANES], const double acceleration[restrict][TL_LANES], double q[restrict][TL_LANES], double v[restrict][TL_LANES], double a[restrict][TL_LANES], double tree_force[restrict][TL_LANES], double force[restrict][TL_LANES], double closure_force[restrict][TL_LANES], double health[restrict][TL_LANES])
{
    double start_1[2][TL_LANES];
    double fixed_2[4][TL_LANES];
    double solution_3[2][TL_LANES];
    double pivots[6][TL_LANES];
    double step_length[1][TL_LANES], residual[1][TL_LANES];
    int iterations = 0;
    for (int l = 0; l < TL_LANES; ++l) {
        residual[0][l] = 0.0;
    }
    (void)position;
    (void)start;
    (void)velocity;
    (void)acceleration;
    for (int l = 0; l < TL_LANES; ++l) {
        const double t0 = start[1][l];
        start_1[0][l] = t0;
        const double t2 = start[2][l];
        start_1[1][l] = t2;
        const double t4 = position[0][l];
        const double t5 = tl_cos(t4);
        fixed_2[0][l] = t5;
        const double t7 = tl_sin(t4);
        fixed_2[1][l] = t7;
        const double t10 = 0.1 * t5;
        fixed_2[2][l] = t10;
        const double t12 = 0.1 * t7;
        fixed_2[3][l] = t12;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        solution_3[0][l] = start_1[0][l];
        solution_3[1][l] = start_1[1][l];
    }
    for (int iteration = 1; iteration <= 60; ++iteration) {
        for (int l = 0; l < TL_LANES; ++l) {
            double dx_0;
            double dx_1;
            const double t2 = solution_3[0][l];
            const double t3 = tl_cos(t2);
            const double t4 = 0.22 * t3;
            const double t5 = 0.3 + t4;
            const double t6 = fixed_2[2][l];
            const double t8 = fixed_2[0][l];
            const double t9 = solution_3[1][l];
            const double t10 = tl_cos(t9);
            const double t11 = t8 * t10;
            const double t12 = fixed_2[1][l];
            const double t13 = tl_sin(t9);
            const double t14 = t12 * t13;
            const double t15 = t11 - t14;
            const double t16 = 0.28 * t15;
            const double t17 = t6 + t16;
            const double t18 = t5 - t17;
            const double t20 = tl_sin(t2);
            const double t21 = 0.22 * t20;
            const double t22 = fixed_2[3][l];
            const double t23 = t12 * t10;
            const double t24 = t8 * t13;
            const double t25 = t23 + t24;
            const double t26 = 0.28 * t25;
            const double t27 = t22 + t26;
            const double t28 = t21 - t27;
            const double t30 = t24 + t23;
            const double t31 = 0.28 * t30;
            const double t32 = t4 / t21;
            const double t33 = t32 * t18;
            const double t34 = t28 + t33;
            const double t35 = t32 * t31;
            const double t36 = t35 - t16;
            const double t37 = t34 / t36;
            const double t38 = t31 * t37;
            const double t39 = t38 - t18;
            const double t40 = t39 / t21;
            const double t41 = -t40;
            dx_0 = t41;
            const double t43 = -t37;
            dx_1 = t43;
            double longest = 0.0, limit;
            longest = fabs(dx_0) > longest ? fabs(dx_0) : longest;
            longest = fabs(dx_1) > longest ? fabs(dx_1) : longest;
            limit = longest > 0.5 ? 0.5 / longest : 1.0;
            solution_3[0][l] += limit * dx_0;
            solution_3[1][l] += limit * dx_1;
            step_length[0][l] = longest;
        }
        iterations = iteration > iterations ? iteration : iterations;
        if (tl_all_below(step_length[0], 1e-11)) break;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        double phi_0;
        double phi_1;
        const double t2 = solution_3[0][l];
        const double t3 = tl_cos(t2);
        const double t4 = 0.22 * t3;
        const double t5 = 0.3 + t4;
        const double t6 = fixed_2[2][l];
        const double t8 = fixed_2[0][l];
        const double t9 = solution_3[1][l];
        const double t10 = tl_cos(t9);
        const double t11 = t8 * t10;
        const double t12 = fixed_2[1][l];
        const double t13 = tl_sin(t9);
        const double t14 = t12 * t13;
        const double t15 = t11 - t14;
        const double t16 = 0.28 * t15;
        const double t17 = t6 + t16;
        const double t18 = t5 - t17;
        phi_0 = t18;
        const double t20 = tl_sin(t2);
        const double t21 = 0.22 * t20;
        const double t22 = fixed_2[3][l];
        const double t23 = t12 * t10;
        const double t24 = t8 * t13;
        const double t25 = t23 + t24;
        const double t26 = 0.28 * t25;
        const double t27 = t22 + t26;
        const double t28 = t21 - t27;
        phi_1 = t28;
        residual[0][l] += fabs(phi_0);
        residual[0][l] += fabs(phi_1);
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double t0 = position[0][l];
        q[0][l] = t0;
        const double t2 = solution_3[0][l];
        q[1][l] = t2;
        const double t4 = solution_3[1][l];
        q[2][l] = t4;
        const double t6 = velocity[0][l];
        v[0][l] = t6;
        const double t9 = tl_sin(t0);
        const double t10 = 0.1 * t9;
        const double t11 = t6 * t10;
        const double t13 = tl_cos(t4);
        const double t14 = t9 * t13;
        const double t15 = tl_cos(t0);
        const double t16 = tl_sin(t4);
        const double t17 = t15 * t16;
        const double t18 = t14 + t17;
        const double t19 = 0.28 * t18;
        const double t20 = t6 * t19;
        const double t21 = t11 + t20;
        const double t22 = 0.1 * t15;
        const double t23 = t6 * t22;
        const double t24 = t15 * t13;
        const double t25 = t9 * t16;
        const double t26 = t24 - t25;
        const double t27 = 0.28 * t26;
        const double t28 = t6 * t27;
        const double t29 = t23 + t28;
        const double t31 = tl_cos(t2);
        const double t32 = 0.22 * t31;
        const double t33 = tl_sin(t2);
        const double t34 = 0.22 * t33;
        const double t35 = t32 / t34;
        const double t36 = t35 * t21;
        const double t37 = t29 - t36;
        const double t38 = t35 * t19;
        const double t39 = t38 - t27;
        const double t40 = t37 / t39;
        const double t41 = t19 * t40;
        const double t42 = t21 + t41;
        const double t43 = t42 / t34;
        v[1][l] = t43;
        v[2][l] = t40;
        const double t46 = acceleration[0][l];
        a[0][l] = t46;
        const double t48 = t46 * t10;
        const double t49 = t6 * t23;
        const double t50 = t48 + t49;
        const double t51 = t46 * t19;
        const double t52 = t50 + t51;
        const double t53 = t6 + t40;
        const double t54 = t53 * t27;
        const double t55 = t53 * t54;
        const double t56 = t52 + t55;
        const double t57 = t43 * t43;
        const double t58 = t32 * t57;
        const double t59 = t56 - t58;
        const double t60 = t34 * t57;
        const double t61 = t46 * t22;
        const double t62 = t6 * t11;
        const double t63 = t61 - t62;
        const double t64 = t46 * t27;
        const double t65 = t63 + t64;
        const double t66 = t53 * t19;
        const double t67 = t53 * t66;
        const double t68 = t65 - t67;
        const double t69 = t60 + t68;
        const double t70 = t35 * t59;
        const double t71 = t69 - t70;
        const double t72 = t71 / t39;
        const double t73 = t19 * t72;
        const double t74 = t59 + t73;
        const double t75 = t74 / t34;
        a[1][l] = t75;
        a[2][l] = t72;
        const double t79 = 0.00040400000000000006 * t46;
        const double t81 = (-0.05886) * t15;
        const double t82 = t79 - t81;
        const double t84 = t46 + t72;
        const double t85 = 0.007850000000000001 * t84;
        const double t87 = 0.1 * t6;
        const double t88 = t6 * t87;
        const double t89 = t16 * t88;
        const double t90 = 0.1 * t46;
        const double t91 = t13 * t90;
        const double t92 = t89 + t91;
        const double t94 = (-9.81) * t26;
        const double t95 = t92 - t94;
        const double t96 = 0.042 * t95;
        const double t97 = t85 + t96;
        const double t99 = t16 * t90;
        const double t100 = t13 * t88;
        const double t101 = t99 - t100;
        const double t102 = (-9.81) * t18;
        const double t103 = t101 - t102;
        const double t104 = 0.3 * t103;
        const double t105 = 0.042 * t53;
        const double t106 = t53 * t105;
        const double t107 = t104 - t106;
        const double t108 = t16 * t107;
        const double t109 = 0.3 * t95;
        const double t110 = 0.042 * t84;
        const double t111 = t109 + t110;
        const double t112 = t13 * t111;
        const double t113 = t108 + t112;
        const double t114 = 0.1 * t113;
        const double t115 = t97 + t114;
        const double t116 = t82 + t115;
        const double t118 = 0.002 * t6;
        const double t120 = (double)((t6 > 0.0) - (t6 < 0.0));
        const double t121 = 0.01 * t120;
        const double t122 = t118 + t121;
        const double t123 = t116 + t122;
        const double t125 = 0.0001 * t46;
        const double t126 = t123 + t125;
        tree_force[0][l] = t126;
        const double t129 = 0.0038799999999999998 * t75;
        const double t131 = (-0.258984) * t31;
        const double t132 = t129 - t131;
        tree_force[1][l] = t132;
        tree_force[2][l] = t97;
        const double t135 = t10 + t19;
        const double t136 = t19 / t34;
        const double t137 = t136 * t132;
        const double t138 = t97 + t137;
        const double t139 = t136 * t32;
        const double t140 = t139 - t27;
        const double t141 = t138 / t140;
        const double t142 = t32 * t141;
        const double t143 = t132 - t142;
        const double t144 = t143 / t34;
        const double t145 = t135 * t144;
        const double t146 = t22 + t27;
        const double t147 = t146 * t141;
        const double t148 = t145 + t147;
        const double t149 = t126 + t148;
        force[0][l] = t149;
        const double t151 = -t144;
        closure_force[0][l] = t151;
        closure_force[1][l] = t141;
        const double t154 = -t34;
        pivots[0][l] = t154;
        pivots[1][l] = t39;
        pivots[2][l] = t154;
        pivots[3][l] = t39;
        pivots[4][l] = t154;
        pivots[5][l] = t140;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        double least = 1.0, pivot = 1e300, size;
        (void)size;
        size = fabs(pivots[0][l]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[1][l]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[2][l]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[3][l]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[4][l]) * 4.546105107902207;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        size = fabs(pivots[5][l]) * 4.093314729290383;
        size = size >= 0.0 ? size : 0.0;
        pivot = size < pivot ? size : pivot;
        health[0][l] = least;
        health[1][l] = pivot;
        health[2][l] = residual[0][l];
        health[3][l] = (double)iterations;
    }
}

void actuators_inverse_dynamics_batch(size_t n, const double *restrict position, const double *restrict start, const double *restrict velocity, const double *restrict acceleration, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    const ptrdiff_t blocks = (ptrdiff_t)((n + TL_LANES - 1) / TL_LANES);
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (blocks >= 128)
#endif
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        const size_t first = (size_t)b * TL_LANES;
        const size_t count = n - first < TL_LANES ? n - first : TL_LANES;
        double lanes_position[1][TL_LANES];
        double lanes_start[3][TL_LANES];
        double lanes_velocity[1][TL_LANES];
        double lanes_acceleration[1][TL_LANES];
        double lanes_q[3][TL_LANES];
        double lanes_v[3][TL_LANES];
        double lanes_a[3][TL_LANES];
        double lanes_tree_force[3][TL_LANES];
        double lanes_force[1][TL_LANES];
        double lanes_closure_force[2][TL_LANES];
        double lanes_health[4][TL_LANES];
        for (size_t l = 0; l < TL_LANES; ++l) {
            const size_t s = first + (l < count ? l : count - 1);
            lanes_position[0][l] = position[s * 1 + 0];
            lanes_start[0][l] = start[s * 3 + 0];
            lanes_start[1][l] = start[s * 3 + 1];
            lanes_start[2][l] = start[s * 3 + 2];
            lanes_velocity[0][l] = velocity[s * 1 + 0];
            lanes_acceleration[0][l] = acceleration[s * 1 + 0];
            (void)s;
        }
        actuators_inverse_dynamics_block((const double (*)[TL_LANES])lanes_position, (const double (*)[TL_LANES])lanes_start, (const double (*)[TL_LANES])lanes_velocity, (const double (*)[TL_LANES])lanes_acceleration, lanes_q, lanes_v, lanes_a, lanes_tree_force, lanes_force, lanes_closure_force, lanes_health);
        for (size_t l = 0; l < count; ++l) {
            q[(first + l) * 3 + 0] = lanes_q[0][l];
            q[(first + l) * 3 + 1] = lanes_q[1][l];
            q[(first + l) * 3 + 2] = lanes_q[2][l];
            v[(first + l) * 3 + 0] = lanes_v[0][l];
            v[(first + l) * 3 + 1] = lanes_v[1][l];
            v[(first + l) * 3 + 2] = lanes_v[2][l];
            a[(first + l) * 3 + 0] = lanes_a[0][l];
            a[(first + l) * 3 + 1] = lanes_a[1][l];
            a[(first + l) * 3 + 2] = lanes_a[2][l];
            tree_force[(first + l) * 3 + 0] = lanes_tree_force[0][l];
            tree_force[(first + l) * 3 + 1] = lanes_tree_force[1][l];
            tree_force[(first + l) * 3 + 2] = lanes_tree_force[2][l];
            force[(first + l) * 1 + 0] = lanes_force[0][l];
            closure_force[(first + l) * 2 + 0] = lanes_closure_force[0][l];
            closure_force[(first + l) * 2 + 1] = lanes_closure_force[1][l];
            health[(first + l) * 4 + 0] = lanes_health[0][l];
            health[(first + l) * 4 + 1] = lanes_health[1][l];
            health[(first + l) * 4 + 2] = lanes_health[2][l];
            health[(first + l) * 4 + 3] = lanes_health[3][l];
        }
    }
}
