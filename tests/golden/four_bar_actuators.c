/* four_bar, actuators */
#include <math.h>
#include <stddef.h>

#ifdef __AVX512F__
#define TL_LANES 8
#else
#define TL_LANES 16
#endif

#ifdef __GNUC__
#define TL_APART __attribute__((noinline))
#else
#define TL_APART
#endif

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

static inline double tl_atan2(double y, double x)
{
    const double ax = fabs(x), ay = fabs(y);
    const double big = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
    const double t = big == 0.0 ? 0.0 : small / big;
    const double is_far = t > 0.66 ? 1.0 : 0.0;
    const double u = is_far > 0.0 ? (t - 1.0) / (t + 1.0) : t;
    const double z = u * u;
    const double p = (((-8.750608600031904122785e-01 * z - 1.615753718733365076637e+01) * z
        - 7.500855792314704667340e+01) * z - 1.228866684490136173410e+02) * z - 6.485021904942025371773e+01;
    const double q = ((((z + 2.485846490142306297962e+01) * z + 1.650270098316988542046e+02) * z
        + 4.328810604912902668951e+02) * z + 4.853903996359136964868e+02) * z + 1.945506571482613964425e+02;
    const double near_zero = u + u * z * (p / q);
    const double first = is_far > 0.0 ? 0.78539816339744830962 + (near_zero + 3.061616997868383018e-17) : near_zero;
    const double octant = ay > ax ? (1.57079632679489661923 - first) + 6.123233995736765886e-17 : first;
    const double half = x < 0.0 ? (3.14159265358979323846 - octant) + 1.2246467991473531772e-16 : octant;
    return copysign(half, y);
}

void actuators_inverse_dynamics(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double discriminants[1];
    double pivots[6];
    (void)position;
    (void)velocity;
    (void)acceleration;
    {
        const double t0 = position[0];
        q[0] = t0;
        const double t5 = tl_cos(t0);
        const double t6 = 0.1 * t5;
        const double t7 = 0.3 - t6;
        const double t8 = 0.22 * t7;
        const double t9 = t7 * t7;
        const double t10 = tl_sin(t0);
        const double t11 = 0.1 * t10;
        const double t12 = t11 * t11;
        const double t13 = t9 + t12;
        const double t15 = t13 + 0.0484;
        const double t17 = t15 - 0.07840000000000001;
        const double t19 = t17 * 0.5;
        const double t20 = t8 * t8;
        const double t22 = 0.022000000000000002 * t10;
        const double t23 = t22 * t22;
        const double t24 = t20 + t23;
        const double t208 = 1.0 / t24;
        const double t25 = t19 * t208;
        const double t26 = t8 * t25;
        const double t27 = t19 * t19;
        const double t28 = t24 - t27;
        const double t29 = sqrt(t28);
        const double t30 = t29 * t208;
        const double t31 = t22 * t30;
        const double t32 = t26 - t31;
        const double t33 = t8 * t30;
        const double t34 = t22 * t25;
        const double t35 = t33 + t34;
        const double t36 = tl_atan2(t32, t35);
        const double t38 = t36 + 1.5707963267948966;
        q[1] = t38;
        const double t41 = 0.28 * t5;
        const double t42 = 0.22 * t35;
        const double t43 = t42 - t11;
        const double t44 = t41 * t43;
        const double t45 = 0.28 * t10;
        const double t46 = 0.22 * t32;
        const double t47 = 0.3 - t46;
        const double t48 = t47 - t6;
        const double t49 = t45 * t48;
        const double t50 = t44 - t49;
        const double t51 = t50 * 12.755102040816325;
        const double t52 = t41 * t48;
        const double t53 = t45 * t43;
        const double t54 = t52 + t53;
        const double t55 = t54 * 12.755102040816325;
        const double t56 = tl_atan2(t51, t55);
        q[2] = t56;
        const double t58 = velocity[0];
        v[0] = t58;
        const double t60 = t10 * t55;
        const double t61 = t5 * t51;
        const double t62 = t60 + t61;
        const double t63 = 0.28 * t62;
        const double t64 = t58 * t6;
        const double t65 = t5 * t55;
        const double t66 = t10 * t51;
        const double t67 = t65 - t66;
        const double t68 = 0.28 * t67;
        const double t69 = t58 * t68;
        const double t70 = t64 + t69;
        const double t210 = 1.0 / t42;
        const double t71 = t46 * t210;
        const double t72 = t58 * t11;
        const double t73 = t58 * t63;
        const double t74 = t72 + t73;
        const double t75 = t71 * t74;
        const double t76 = t70 + t75;
        const double t77 = t71 * t63;
        const double t78 = t68 + t77;
        const double t211 = 1.0 / t78;
        const double t79 = t76 * t211;
        const double t80 = t63 * t79;
        const double t81 = t80 - t74;
        const double t82 = t81 * t210;
        const double t83 = -t82;
        v[1] = t83;
        const double t85 = -t79;
        v[2] = t85;
        const double t87 = acceleration[0];
        a[0] = t87;
        const double t89 = t82 * t82;
        const double t90 = t42 * t89;
        const double t91 = t87 * t6;
        const double t92 = t58 * t72;
        const double t93 = t91 - t92;
        const double t94 = t87 * t68;
        const double t95 = t93 + t94;
        const double t96 = t58 - t79;
        const double t97 = t96 * t63;
        const double t98 = t96 * t97;
        const double t99 = t95 - t98;
        const double t100 = t90 + t99;
        const double t101 = t46 * t89;
        const double t102 = t87 * t11;
        const double t103 = t58 * t64;
        const double t104 = t102 + t103;
        const double t105 = t87 * t63;
        const double t106 = t104 + t105;
        const double t107 = t96 * t68;
        const double t108 = t96 * t107;
        const double t109 = t106 + t108;
        const double t110 = t101 + t109;
        const double t111 = t71 * t110;
        const double t112 = t100 + t111;
        const double t113 = t112 * t211;
        const double t114 = t63 * t113;
        const double t115 = t114 - t110;
        const double t116 = t115 * t210;
        const double t117 = -t116;
        a[1] = t117;
        const double t119 = -t113;
        a[2] = t119;
        const double t122 = 0.00040400000000000006 * t87;
        const double t124 = (-0.05886) * t5;
        const double t125 = t122 - t124;
        const double t127 = t87 - t113;
        const double t128 = 0.007850000000000001 * t127;
        const double t130 = 0.1 * t58;
        const double t131 = t58 * t130;
        const double t132 = t51 * t131;
        const double t133 = 0.1 * t87;
        const double t134 = t55 * t133;
        const double t135 = t132 + t134;
        const double t137 = (-9.81) * t67;
        const double t138 = t135 - t137;
        const double t139 = 0.042 * t138;
        const double t140 = t128 + t139;
        const double t141 = t51 * t133;
        const double t142 = t55 * t131;
        const double t143 = t141 - t142;
        const double t144 = (-9.81) * t62;
        const double t145 = t143 - t144;
        const double t146 = 0.3 * t145;
        const double t147 = 0.042 * t96;
        const double t148 = t96 * t147;
        const double t149 = t146 - t148;
        const double t150 = t51 * t149;
        const double t151 = 0.3 * t138;
        const double t152 = 0.042 * t127;
        const double t153 = t151 + t152;
        const double t154 = t55 * t153;
        const double t155 = t150 + t154;
        const double t156 = 0.1 * t155;
        const double t157 = t140 + t156;
        const double t158 = t125 + t157;
        const double t160 = 0.002 * t58;
        const double t162 = (t58 > 0.0 ? 1.0 : 0.0) - (t58 < 0.0 ? 1.0 : 0.0);
        const double t163 = 0.01 * t162;
        const double t164 = t160 + t163;
        const double t165 = t158 + t164;
        const double t167 = 0.0001 * t87;
        const double t168 = t165 + t167;
        tree_force[0] = t168;
        const double t171 = (-0.258984) * t32;
        const double t173 = 0.0038799999999999998 * t116;
        const double t174 = t171 - t173;
        tree_force[1] = t174;
        tree_force[2] = t140;
        const double t177 = t6 + t68;
        const double t178 = t63 * t210;
        const double t179 = t178 * t174;
        const double t180 = t140 + t179;
        const double t181 = t178 * t46;
        const double t182 = t68 + t181;
        const double t183 = t180 / t182;
        const double t184 = t177 * t183;
        const double t185 = t11 + t63;
        const double t186 = t46 * t183;
        const double t187 = t174 - t186;
        const double t188 = t187 * t210;
        const double t189 = t185 * t188;
        const double t190 = t184 - t189;
        const double t191 = t168 - t190;
        force[0] = t191;
        const double t193 = -t188;
        closure_force[0] = t193;
        const double t195 = -t183;
        closure_force[1] = t195;
        discriminants[0] = t28;
        const double t198 = -t42;
        pivots[0] = t198;
        const double t200 = -t78;
        pivots[1] = t200;
        pivots[2] = t198;
        pivots[3] = t200;
        pivots[4] = t198;
        const double t205 = -t182;
        pivots[5] = t205;
    }
    {
        const double d_0_0 = discriminants[0];
        const double d = d_0_0 == d_0_0 ? (d_0_0 < 1.0 ? d_0_0 : 1.0) : (-1e+300);
        const double p_0_0 = fabs(pivots[0]) * 4.546105107902206;
        const double p_0_1 = fabs(pivots[1]) * 4.093314729290382;
        const double p_0_2 = fabs(pivots[2]) * 4.546105107902206;
        const double p_0_3 = fabs(pivots[3]) * 4.093314729290382;
        const double p_0_4 = fabs(pivots[4]) * 4.546105107902206;
        const double p_0_5 = fabs(pivots[5]) * 4.093314729290382;
        const double p_1_0 = p_0_0 < p_0_1 ? p_0_0 : p_0_1;
        const double ps_1_0 = p_0_0 + p_0_1;
        const double p_1_1 = p_0_2 < p_0_3 ? p_0_2 : p_0_3;
        const double ps_1_1 = p_0_2 + p_0_3;
        const double p_1_2 = p_0_4 < p_0_5 ? p_0_4 : p_0_5;
        const double ps_1_2 = p_0_4 + p_0_5;
        const double p_2_0 = p_1_0 < p_1_1 ? p_1_0 : p_1_1;
        const double ps_2_0 = ps_1_0 + ps_1_1;
        const double p_3_0 = p_2_0 < p_1_2 ? p_2_0 : p_1_2;
        const double ps_3_0 = ps_2_0 + ps_1_2;
        const double p = ps_3_0 == ps_3_0 ? (p_3_0 < 1e+300 ? p_3_0 : 1e+300) : 0.0;
        const double w_1_0 = fabs(position[0]) + fabs(velocity[0]);
        const double w_1_2 = fabs(acceleration[0]) + fabs(q[0]);
        const double w_1_4 = fabs(q[1]) + fabs(q[2]);
        const double w_1_6 = fabs(v[0]) + fabs(v[1]);
        const double w_1_8 = fabs(v[2]) + fabs(a[0]);
        const double w_1_10 = fabs(a[1]) + fabs(a[2]);
        const double w_1_12 = fabs(tree_force[0]) + fabs(tree_force[1]);
        const double w_1_14 = fabs(tree_force[2]) + fabs(force[0]);
        const double w_1_16 = fabs(closure_force[0]) + fabs(closure_force[1]);
        const double w_2_0 = w_1_0 + w_1_2;
        const double w_2_2 = w_1_4 + w_1_6;
        const double w_2_4 = w_1_8 + w_1_10;
        const double w_2_6 = w_1_12 + w_1_14;
        const double w_3_0 = w_2_0 + w_2_2;
        const double w_3_2 = w_2_4 + w_2_6;
        const double w_4_0 = w_3_0 + w_3_2;
        const double w_5_0 = w_4_0 + w_1_16;
        const double total = w_5_0;
        health[0] = total < 1e+100 ? d : -1e300;
        health[1] = p;
        health[2] = 0.0;
        health[3] = 0.0;
    }
}

static void actuators_inverse_dynamics_block(const double position[restrict][TL_LANES], const double velocity[restrict][TL_LANES], const double acceleration[restrict][TL_LANES], double q[restrict][TL_LANES], double v[restrict][TL_LANES], double a[restrict][TL_LANES], double tree_force[restrict][TL_LANES], double force[restrict][TL_LANES], double closure_force[restrict][TL_LANES], double health[restrict][TL_LANES])
{
    double discriminants[1][TL_LANES];
    double pivots[6][TL_LANES];
    (void)position;
    (void)velocity;
    (void)acceleration;
    for (int l = 0; l < TL_LANES; ++l) {
        const double t0 = position[0][l];
        q[0][l] = t0;
        const double t5 = tl_cos(t0);
        const double t6 = 0.1 * t5;
        const double t7 = 0.3 - t6;
        const double t8 = 0.22 * t7;
        const double t9 = t7 * t7;
        const double t10 = tl_sin(t0);
        const double t11 = 0.1 * t10;
        const double t12 = t11 * t11;
        const double t13 = t9 + t12;
        const double t15 = t13 + 0.0484;
        const double t17 = t15 - 0.07840000000000001;
        const double t19 = t17 * 0.5;
        const double t20 = t8 * t8;
        const double t22 = 0.022000000000000002 * t10;
        const double t23 = t22 * t22;
        const double t24 = t20 + t23;
        const double t208 = 1.0 / t24;
        const double t25 = t19 * t208;
        const double t26 = t8 * t25;
        const double t27 = t19 * t19;
        const double t28 = t24 - t27;
        const double t29 = sqrt(t28);
        const double t30 = t29 * t208;
        const double t31 = t22 * t30;
        const double t32 = t26 - t31;
        const double t33 = t8 * t30;
        const double t34 = t22 * t25;
        const double t35 = t33 + t34;
        const double t36 = tl_atan2(t32, t35);
        const double t38 = t36 + 1.5707963267948966;
        q[1][l] = t38;
        const double t41 = 0.28 * t5;
        const double t42 = 0.22 * t35;
        const double t43 = t42 - t11;
        const double t44 = t41 * t43;
        const double t45 = 0.28 * t10;
        const double t46 = 0.22 * t32;
        const double t47 = 0.3 - t46;
        const double t48 = t47 - t6;
        const double t49 = t45 * t48;
        const double t50 = t44 - t49;
        const double t51 = t50 * 12.755102040816325;
        const double t52 = t41 * t48;
        const double t53 = t45 * t43;
        const double t54 = t52 + t53;
        const double t55 = t54 * 12.755102040816325;
        const double t56 = tl_atan2(t51, t55);
        q[2][l] = t56;
        const double t58 = velocity[0][l];
        v[0][l] = t58;
        const double t60 = t10 * t55;
        const double t61 = t5 * t51;
        const double t62 = t60 + t61;
        const double t63 = 0.28 * t62;
        const double t64 = t58 * t6;
        const double t65 = t5 * t55;
        const double t66 = t10 * t51;
        const double t67 = t65 - t66;
        const double t68 = 0.28 * t67;
        const double t69 = t58 * t68;
        const double t70 = t64 + t69;
        const double t210 = 1.0 / t42;
        const double t71 = t46 * t210;
        const double t72 = t58 * t11;
        const double t73 = t58 * t63;
        const double t74 = t72 + t73;
        const double t75 = t71 * t74;
        const double t76 = t70 + t75;
        const double t77 = t71 * t63;
        const double t78 = t68 + t77;
        const double t211 = 1.0 / t78;
        const double t79 = t76 * t211;
        const double t80 = t63 * t79;
        const double t81 = t80 - t74;
        const double t82 = t81 * t210;
        const double t83 = -t82;
        v[1][l] = t83;
        const double t85 = -t79;
        v[2][l] = t85;
        const double t87 = acceleration[0][l];
        a[0][l] = t87;
        const double t89 = t82 * t82;
        const double t90 = t42 * t89;
        const double t91 = t87 * t6;
        const double t92 = t58 * t72;
        const double t93 = t91 - t92;
        const double t94 = t87 * t68;
        const double t95 = t93 + t94;
        const double t96 = t58 - t79;
        const double t97 = t96 * t63;
        const double t98 = t96 * t97;
        const double t99 = t95 - t98;
        const double t100 = t90 + t99;
        const double t101 = t46 * t89;
        const double t102 = t87 * t11;
        const double t103 = t58 * t64;
        const double t104 = t102 + t103;
        const double t105 = t87 * t63;
        const double t106 = t104 + t105;
        const double t107 = t96 * t68;
        const double t108 = t96 * t107;
        const double t109 = t106 + t108;
        const double t110 = t101 + t109;
        const double t111 = t71 * t110;
        const double t112 = t100 + t111;
        const double t113 = t112 * t211;
        const double t114 = t63 * t113;
        const double t115 = t114 - t110;
        const double t116 = t115 * t210;
        const double t117 = -t116;
        a[1][l] = t117;
        const double t119 = -t113;
        a[2][l] = t119;
        const double t122 = 0.00040400000000000006 * t87;
        const double t124 = (-0.05886) * t5;
        const double t125 = t122 - t124;
        const double t127 = t87 - t113;
        const double t128 = 0.007850000000000001 * t127;
        const double t130 = 0.1 * t58;
        const double t131 = t58 * t130;
        const double t132 = t51 * t131;
        const double t133 = 0.1 * t87;
        const double t134 = t55 * t133;
        const double t135 = t132 + t134;
        const double t137 = (-9.81) * t67;
        const double t138 = t135 - t137;
        const double t139 = 0.042 * t138;
        const double t140 = t128 + t139;
        const double t141 = t51 * t133;
        const double t142 = t55 * t131;
        const double t143 = t141 - t142;
        const double t144 = (-9.81) * t62;
        const double t145 = t143 - t144;
        const double t146 = 0.3 * t145;
        const double t147 = 0.042 * t96;
        const double t148 = t96 * t147;
        const double t149 = t146 - t148;
        const double t150 = t51 * t149;
        const double t151 = 0.3 * t138;
        const double t152 = 0.042 * t127;
        const double t153 = t151 + t152;
        const double t154 = t55 * t153;
        const double t155 = t150 + t154;
        const double t156 = 0.1 * t155;
        const double t157 = t140 + t156;
        const double t158 = t125 + t157;
        const double t160 = 0.002 * t58;
        const double t162 = (t58 > 0.0 ? 1.0 : 0.0) - (t58 < 0.0 ? 1.0 : 0.0);
        const double t163 = 0.01 * t162;
        const double t164 = t160 + t163;
        const double t165 = t158 + t164;
        const double t167 = 0.0001 * t87;
        const double t168 = t165 + t167;
        tree_force[0][l] = t168;
        const double t171 = (-0.258984) * t32;
        const double t173 = 0.0038799999999999998 * t116;
        const double t174 = t171 - t173;
        tree_force[1][l] = t174;
        tree_force[2][l] = t140;
        const double t177 = t6 + t68;
        const double t178 = t63 * t210;
        const double t179 = t178 * t174;
        const double t180 = t140 + t179;
        const double t181 = t178 * t46;
        const double t182 = t68 + t181;
        const double t183 = t180 / t182;
        const double t184 = t177 * t183;
        const double t185 = t11 + t63;
        const double t186 = t46 * t183;
        const double t187 = t174 - t186;
        const double t188 = t187 * t210;
        const double t189 = t185 * t188;
        const double t190 = t184 - t189;
        const double t191 = t168 - t190;
        force[0][l] = t191;
        const double t193 = -t188;
        closure_force[0][l] = t193;
        const double t195 = -t183;
        closure_force[1][l] = t195;
        discriminants[0][l] = t28;
        const double t198 = -t42;
        pivots[0][l] = t198;
        const double t200 = -t78;
        pivots[1][l] = t200;
        pivots[2][l] = t198;
        pivots[3][l] = t200;
        pivots[4][l] = t198;
        const double t205 = -t182;
        pivots[5][l] = t205;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double d_0_0 = discriminants[0][l];
        const double d = d_0_0 == d_0_0 ? (d_0_0 < 1.0 ? d_0_0 : 1.0) : (-1e+300);
        const double p_0_0 = fabs(pivots[0][l]) * 4.546105107902206;
        const double p_0_1 = fabs(pivots[1][l]) * 4.093314729290382;
        const double p_0_2 = fabs(pivots[2][l]) * 4.546105107902206;
        const double p_0_3 = fabs(pivots[3][l]) * 4.093314729290382;
        const double p_0_4 = fabs(pivots[4][l]) * 4.546105107902206;
        const double p_0_5 = fabs(pivots[5][l]) * 4.093314729290382;
        const double p_1_0 = p_0_0 < p_0_1 ? p_0_0 : p_0_1;
        const double ps_1_0 = p_0_0 + p_0_1;
        const double p_1_1 = p_0_2 < p_0_3 ? p_0_2 : p_0_3;
        const double ps_1_1 = p_0_2 + p_0_3;
        const double p_1_2 = p_0_4 < p_0_5 ? p_0_4 : p_0_5;
        const double ps_1_2 = p_0_4 + p_0_5;
        const double p_2_0 = p_1_0 < p_1_1 ? p_1_0 : p_1_1;
        const double ps_2_0 = ps_1_0 + ps_1_1;
        const double p_3_0 = p_2_0 < p_1_2 ? p_2_0 : p_1_2;
        const double ps_3_0 = ps_2_0 + ps_1_2;
        const double p = ps_3_0 == ps_3_0 ? (p_3_0 < 1e+300 ? p_3_0 : 1e+300) : 0.0;
        const double w_1_0 = fabs(position[0][l]) + fabs(velocity[0][l]);
        const double w_1_2 = fabs(acceleration[0][l]) + fabs(q[0][l]);
        const double w_1_4 = fabs(q[1][l]) + fabs(q[2][l]);
        const double w_1_6 = fabs(v[0][l]) + fabs(v[1][l]);
        const double w_1_8 = fabs(v[2][l]) + fabs(a[0][l]);
        const double w_1_10 = fabs(a[1][l]) + fabs(a[2][l]);
        const double w_1_12 = fabs(tree_force[0][l]) + fabs(tree_force[1][l]);
        const double w_1_14 = fabs(tree_force[2][l]) + fabs(force[0][l]);
        const double w_1_16 = fabs(closure_force[0][l]) + fabs(closure_force[1][l]);
        const double w_2_0 = w_1_0 + w_1_2;
        const double w_2_2 = w_1_4 + w_1_6;
        const double w_2_4 = w_1_8 + w_1_10;
        const double w_2_6 = w_1_12 + w_1_14;
        const double w_3_0 = w_2_0 + w_2_2;
        const double w_3_2 = w_2_4 + w_2_6;
        const double w_4_0 = w_3_0 + w_3_2;
        const double w_5_0 = w_4_0 + w_1_16;
        const double total = w_5_0;
        health[0][l] = total < 1e+100 ? d : -1e300;
        health[1][l] = p;
        health[2][l] = 0.0;
        health[3][l] = 0.0;
    }
}

static void TL_APART actuators_inverse_dynamics_rows(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double lanes_position[1][TL_LANES];
    double lanes_velocity[1][TL_LANES];
    double lanes_acceleration[1][TL_LANES];
    double lanes_q[3][TL_LANES];
    double lanes_v[3][TL_LANES];
    double lanes_a[3][TL_LANES];
    double lanes_tree_force[3][TL_LANES];
    double lanes_force[1][TL_LANES];
    double lanes_closure_force[2][TL_LANES];
    double lanes_health[4][TL_LANES];
    for (int l = 0; l < TL_LANES; ++l) {
        lanes_position[0][l] = position[l * 1 + 0];
        lanes_velocity[0][l] = velocity[l * 1 + 0];
        lanes_acceleration[0][l] = acceleration[l * 1 + 0];
    }
    actuators_inverse_dynamics_block((const double (*)[TL_LANES])lanes_position, (const double (*)[TL_LANES])lanes_velocity, (const double (*)[TL_LANES])lanes_acceleration, lanes_q, lanes_v, lanes_a, lanes_tree_force, lanes_force, lanes_closure_force, lanes_health);
    for (int l = 0; l < TL_LANES; ++l) {
        q[l * 3 + 0] = lanes_q[0][l];
        q[l * 3 + 1] = lanes_q[1][l];
        q[l * 3 + 2] = lanes_q[2][l];
        v[l * 3 + 0] = lanes_v[0][l];
        v[l * 3 + 1] = lanes_v[1][l];
        v[l * 3 + 2] = lanes_v[2][l];
        a[l * 3 + 0] = lanes_a[0][l];
        a[l * 3 + 1] = lanes_a[1][l];
        a[l * 3 + 2] = lanes_a[2][l];
        tree_force[l * 3 + 0] = lanes_tree_force[0][l];
        tree_force[l * 3 + 1] = lanes_tree_force[1][l];
        tree_force[l * 3 + 2] = lanes_tree_force[2][l];
        force[l * 1 + 0] = lanes_force[0][l];
        closure_force[l * 2 + 0] = lanes_closure_force[0][l];
        closure_force[l * 2 + 1] = lanes_closure_force[1][l];
        health[l * 4 + 0] = lanes_health[0][l];
        health[l * 4 + 1] = lanes_health[1][l];
        health[l * 4 + 2] = lanes_health[2][l];
        health[l * 4 + 3] = lanes_health[3][l];
    }
}

void actuators_inverse_dynamics_batch(size_t n, const double *restrict position, const double *restrict velocity, const double *restrict acceleration, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    const ptrdiff_t blocks = (ptrdiff_t)(n / TL_LANES);
    const size_t rest = n % TL_LANES;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (blocks >= 128)
#endif
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        const size_t first = (size_t)b * TL_LANES;
        actuators_inverse_dynamics_rows(position + first * 1, velocity + first * 1, acceleration + first * 1, q + first * 3, v + first * 3, a + first * 3, tree_force + first * 3, force + first * 1, closure_force + first * 2, health + first * 4);
    }
    if (rest) {
        const size_t first = n - rest;
        double last_position[TL_LANES * 1];
        double last_velocity[TL_LANES * 1];
        double last_acceleration[TL_LANES * 1];
        double last_q[TL_LANES * 3];
        double last_v[TL_LANES * 3];
        double last_a[TL_LANES * 3];
        double last_tree_force[TL_LANES * 3];
        double last_force[TL_LANES * 1];
        double last_closure_force[TL_LANES * 2];
        double last_health[TL_LANES * 4];
        for (size_t l = 0; l < TL_LANES; ++l) {
            const size_t s = first + (l < rest ? l : rest - 1);
            (void)s;
            for (int i = 0; i < 1; ++i) last_position[l * 1 + i] = position[s * 1 + i];
            for (int i = 0; i < 1; ++i) last_velocity[l * 1 + i] = velocity[s * 1 + i];
            for (int i = 0; i < 1; ++i) last_acceleration[l * 1 + i] = acceleration[s * 1 + i];
        }
        actuators_inverse_dynamics_rows(last_position, last_velocity, last_acceleration, last_q, last_v, last_a, last_tree_force, last_force, last_closure_force, last_health);
        for (size_t l = 0; l < rest; ++l) {
            for (int i = 0; i < 3; ++i) q[(first + l) * 3 + i] = last_q[l * 3 + i];
            for (int i = 0; i < 3; ++i) v[(first + l) * 3 + i] = last_v[l * 3 + i];
            for (int i = 0; i < 3; ++i) a[(first + l) * 3 + i] = last_a[l * 3 + i];
            for (int i = 0; i < 3; ++i) tree_force[(first + l) * 3 + i] = last_tree_force[l * 3 + i];
            for (int i = 0; i < 1; ++i) force[(first + l) * 1 + i] = last_force[l * 1 + i];
            for (int i = 0; i < 2; ++i) closure_force[(first + l) * 2 + i] = last_closure_force[l * 2 + i];
            for (int i = 0; i < 4; ++i) health[(first + l) * 4 + i] = last_health[l * 4 + i];
        }
    }
}
