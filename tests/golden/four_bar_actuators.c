/* four_bar, actuators */
#include <math.h>
#include <stddef.h>

#define TL_LANES 16

#ifdef __GNUC__
#define TL_APART __attribute__((noinline))
#else
#define TL_APART
#endif

#if defined __has_builtin
#if __has_builtin(__builtin_shufflevector)
#define TL_SHUFFLE
typedef double tl_pair __attribute__((vector_size(16), aligned(8), may_alias));
typedef double tl_four __attribute__((vector_size(32), aligned(8), may_alias));
#endif
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

static inline void tl_back(const double (*restrict lanes)[TL_LANES], int size, double *restrict rows)
{
    int i = 0;
#ifdef TL_SHUFFLE
    for (; i + 4 <= size; i += 4)
        for (int l = 0; l < TL_LANES; l += 4) {
            double *row = rows + l * size + i;
            const tl_four a = *(const tl_four *)(lanes[i] + l), b = *(const tl_four *)(lanes[i + 1] + l);
            const tl_four c = *(const tl_four *)(lanes[i + 2] + l), d = *(const tl_four *)(lanes[i + 3] + l);
            const tl_four e = __builtin_shufflevector(a, b, 0, 4, 2, 6), f = __builtin_shufflevector(a, b, 1, 5, 3, 7);
            const tl_four g = __builtin_shufflevector(c, d, 0, 4, 2, 6), h = __builtin_shufflevector(c, d, 1, 5, 3, 7);
            *(tl_four *)row = __builtin_shufflevector(e, g, 0, 1, 4, 5);
            *(tl_four *)(row + size) = __builtin_shufflevector(f, h, 0, 1, 4, 5);
            *(tl_four *)(row + 2 * size) = __builtin_shufflevector(e, g, 2, 3, 6, 7);
            *(tl_four *)(row + 3 * size) = __builtin_shufflevector(f, h, 2, 3, 6, 7);
        }
    for (; i + 2 <= size; i += 2)
        for (int l = 0; l < TL_LANES; l += 4) {
            double *row = rows + l * size + i;
            const tl_four a = *(const tl_four *)(lanes[i] + l), b = *(const tl_four *)(lanes[i + 1] + l);
            const tl_four e = __builtin_shufflevector(a, b, 0, 4, 2, 6), f = __builtin_shufflevector(a, b, 1, 5, 3, 7);
            *(tl_pair *)row = __builtin_shufflevector(e, e, 0, 1);
            *(tl_pair *)(row + size) = __builtin_shufflevector(f, f, 0, 1);
            *(tl_pair *)(row + 2 * size) = __builtin_shufflevector(e, e, 2, 3);
            *(tl_pair *)(row + 3 * size) = __builtin_shufflevector(f, f, 2, 3);
        }
#endif
    for (; i < size; ++i)
        for (int l = 0; l < TL_LANES; ++l) rows[l * size + i] = lanes[i][l];
}

void actuators_inverse_dynamics(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, const double *restrict start, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double discriminants[1];
    double pivots[3];
    (void)position;
    (void)velocity;
    (void)acceleration;
    (void)start;
    {
        const double t0 = position[0];
        q[0] = t0;
        const double t5 = tl_cos(t0);
        const double t6 = 0.1 * t5;
        const double t7 = 0.3 - t6;
        const double t8 = 0.22 * t7;
        const double t9 = t8 * t8;
        const double t11 = tl_sin(t0);
        const double t12 = 0.022000000000000002 * t11;
        const double t13 = t12 * t12;
        const double t14 = t9 + t13;
        const double t15 = t7 * t7;
        const double t16 = 0.1 * t11;
        const double t17 = t16 * t16;
        const double t18 = t15 + t17;
        const double t20 = t18 + 0.0484;
        const double t22 = t20 - 0.07840000000000001;
        const double t24 = t22 * 0.5;
        const double t25 = t24 * t24;
        const double t26 = t14 - t25;
        const double t27 = sqrt(t26);
        const double t226 = 1.0 / t14;
        const double t28 = t27 * t226;
        const double t29 = t8 * t28;
        const double t30 = t24 * t226;
        const double t31 = t12 * t30;
        const double t32 = t29 + t31;
        const double t33 = t8 * t30;
        const double t34 = t12 * t28;
        const double t35 = t33 - t34;
        const double t36 = -t35;
        const double t37 = tl_atan2(t32, t36);
        const double t40 = start[1];
        const double t41 = t40 - t37;
        const double t42 = 0.15915494309189535 * t41;
        const double t44 = t42 + 0.5;
        const double t45 = floor(t44);
        const double t46 = 6.283185307179586 * t45;
        const double t47 = t37 + t46;
        q[1] = t47;
        const double t50 = 0.28 * t5;
        const double t51 = 0.22 * t32;
        const double t52 = t51 - t16;
        const double t53 = t50 * t52;
        const double t54 = 0.28 * t11;
        const double t55 = 0.22 * t35;
        const double t56 = 0.3 - t55;
        const double t57 = t56 - t6;
        const double t58 = t54 * t57;
        const double t59 = t53 - t58;
        const double t60 = t59 * 12.755102040816325;
        const double t61 = t50 * t57;
        const double t62 = t54 * t52;
        const double t63 = t61 + t62;
        const double t64 = t63 * 12.755102040816325;
        const double t65 = tl_atan2(t60, t64);
        const double t66 = start[2];
        const double t67 = t66 - t65;
        const double t68 = 0.15915494309189535 * t67;
        const double t69 = t68 + 0.5;
        const double t70 = floor(t69);
        const double t71 = 6.283185307179586 * t70;
        const double t72 = t65 + t71;
        q[2] = t72;
        const double t74 = velocity[0];
        v[0] = t74;
        const double t76 = t5 * t64;
        const double t77 = t11 * t60;
        const double t78 = t76 - t77;
        const double t79 = 0.28 * t78;
        const double t80 = t51 * t79;
        const double t81 = t11 * t64;
        const double t82 = t5 * t60;
        const double t83 = t81 + t82;
        const double t84 = 0.28 * t83;
        const double t85 = t84 * t55;
        const double t86 = t80 + t85;
        const double t228 = 1.0 / t86;
        const double t87 = t79 * t228;
        const double t88 = t74 * t16;
        const double t89 = t74 * t84;
        const double t90 = t88 + t89;
        const double t91 = t87 * t90;
        const double t92 = t84 * t228;
        const double t93 = t74 * t6;
        const double t94 = t74 * t79;
        const double t95 = t93 + t94;
        const double t96 = t92 * t95;
        const double t97 = t91 - t96;
        v[1] = t97;
        const double t99 = t51 * t228;
        const double t100 = t99 * t95;
        const double t101 = t55 * t228;
        const double t102 = t101 * t90;
        const double t103 = t100 + t102;
        const double t104 = -t103;
        v[2] = t104;
        const double t106 = acceleration[0];
        a[0] = t106;
        const double t108 = t97 * t97;
        const double t109 = t55 * t108;
        const double t110 = t106 * t16;
        const double t111 = t74 * t93;
        const double t112 = t110 + t111;
        const double t113 = t106 * t84;
        const double t114 = t112 + t113;
        const double t115 = t74 - t103;
        const double t116 = t115 * t79;
        const double t117 = t115 * t116;
        const double t118 = t114 + t117;
        const double t119 = t109 + t118;
        const double t120 = t87 * t119;
        const double t121 = t51 * t108;
        const double t122 = t106 * t6;
        const double t123 = t74 * t88;
        const double t124 = t122 - t123;
        const double t125 = t106 * t79;
        const double t126 = t124 + t125;
        const double t127 = t115 * t84;
        const double t128 = t115 * t127;
        const double t129 = t126 - t128;
        const double t130 = t121 + t129;
        const double t131 = t92 * t130;
        const double t132 = t120 - t131;
        a[1] = t132;
        const double t134 = t99 * t130;
        const double t135 = t101 * t119;
        const double t136 = t134 + t135;
        const double t137 = -t136;
        a[2] = t137;
        const double t140 = 0.00040400000000000006 * t106;
        const double t142 = (-0.05886) * t5;
        const double t143 = t140 - t142;
        const double t145 = t106 - t136;
        const double t146 = 0.007850000000000001 * t145;
        const double t148 = 0.1 * t74;
        const double t149 = t74 * t148;
        const double t150 = t60 * t149;
        const double t151 = 0.1 * t106;
        const double t152 = t64 * t151;
        const double t153 = t150 + t152;
        const double t155 = (-9.81) * t78;
        const double t156 = t153 - t155;
        const double t157 = 0.042 * t156;
        const double t158 = t146 + t157;
        const double t159 = t60 * t151;
        const double t160 = t64 * t149;
        const double t161 = t159 - t160;
        const double t162 = (-9.81) * t83;
        const double t163 = t161 - t162;
        const double t164 = 0.3 * t163;
        const double t165 = 0.042 * t115;
        const double t166 = t115 * t165;
        const double t167 = t164 - t166;
        const double t168 = t60 * t167;
        const double t169 = 0.3 * t156;
        const double t170 = 0.042 * t145;
        const double t171 = t169 + t170;
        const double t172 = t64 * t171;
        const double t173 = t168 + t172;
        const double t174 = 0.1 * t173;
        const double t175 = t158 + t174;
        const double t176 = t143 + t175;
        const double t178 = 0.002 * t74;
        const double t181 = fabs(t74);
        const double t182 = 1e-12 < t181 ? 1.0 : 0.0;
        const double t183 = t74 * t182;
        const double t184 = (t183 > 0.0 ? 1.0 : 0.0) - (t183 < 0.0 ? 1.0 : 0.0);
        const double t185 = 0.01 * t184;
        const double t186 = t178 + t185;
        const double t187 = t176 + t186;
        const double t189 = 0.0001 * t106;
        const double t190 = t187 + t189;
        tree_force[0] = t190;
        const double t193 = 0.0038799999999999998 * t132;
        const double t195 = (-0.258984) * t35;
        const double t196 = t193 + t195;
        tree_force[1] = t196;
        tree_force[2] = t158;
        const double t199 = t16 + t84;
        const double t200 = t55 * t84;
        const double t201 = t80 + t200;
        const double t229 = 1.0 / t201;
        const double t202 = t55 * t229;
        const double t203 = t202 * t158;
        const double t204 = t79 * t229;
        const double t205 = t204 * t196;
        const double t206 = t203 - t205;
        const double t207 = t199 * t206;
        const double t208 = t6 + t79;
        const double t209 = t51 * t229;
        const double t210 = t209 * t158;
        const double t211 = t84 * t229;
        const double t212 = t211 * t196;
        const double t213 = t210 + t212;
        const double t214 = t208 * t213;
        const double t215 = t207 + t214;
        const double t216 = t190 - t215;
        force[0] = t216;
        closure_force[0] = t206;
        const double t219 = -t213;
        closure_force[1] = t219;
        discriminants[0] = t26;
        pivots[0] = t86;
        pivots[1] = t86;
        pivots[2] = t201;
    }
    {
        const double health_d_0_0 = discriminants[0];
        const double health_d = health_d_0_0 == health_d_0_0 ? (health_d_0_0 < 1.0 ? health_d_0_0 : 1.0) : (-1e+300);
        const double health_p_0_0 = fabs(pivots[0]) * 18.605978000044548;
        const double health_p_0_1 = fabs(pivots[2]) * 18.605978000044548;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_ps_1_0 = health_p_0_0 + health_p_0_1;
        const double health_p = health_ps_1_0 == health_ps_1_0 ? (health_p_1_0 < 1e+300 ? health_p_1_0 : 1e+300) : 0.0;
        double health_in_0 = position[0] * position[0];
        double health_in_1 = start[1] * start[1];
        double health_in_2 = start[2] * start[2];
        const double health_in = health_in_0 + health_in_1 + health_in_2;
        double health_out_0 = q[1] * q[1];
        double health_out_1 = q[2] * q[2];
        double health_out_2 = v[2] * v[2];
        double health_out_3 = a[2] * a[2];
        health_out_0 += force[0] * force[0];
        health_out_1 += closure_force[1] * closure_force[1];
        const double health_out = health_out_0 + health_out_1 + health_out_2 + health_out_3;
        const double health_squares = health_in + health_out;
        health[0] = health_squares < 1e+200 ? health_d : -1e300;
        health[1] = health_p;
        health[2] = 0.0;
        health[3] = 0.0;
    }
}

static void actuators_inverse_dynamics_block(const double position[restrict][TL_LANES], const double velocity[restrict][TL_LANES], const double acceleration[restrict][TL_LANES], const double start[restrict][TL_LANES], double q[restrict][TL_LANES], double v[restrict][TL_LANES], double a[restrict][TL_LANES], double tree_force[restrict][TL_LANES], double force[restrict][TL_LANES], double closure_force[restrict][TL_LANES], double health[restrict][TL_LANES])
{
    double discriminants[1][TL_LANES];
    double pivots[3][TL_LANES];
    (void)position;
    (void)velocity;
    (void)acceleration;
    (void)start;
    for (int l = 0; l < TL_LANES / 2; ++l) {
        const double t0 = position[0][l];
        const double u0 = position[0][l + TL_LANES / 2];
        q[0][l] = t0;
        q[0][l + TL_LANES / 2] = u0;
        const double t5 = tl_cos(t0);
        const double u5 = tl_cos(u0);
        const double t6 = 0.1 * t5;
        const double u6 = 0.1 * u5;
        const double t7 = 0.3 - t6;
        const double u7 = 0.3 - u6;
        const double t8 = 0.22 * t7;
        const double u8 = 0.22 * u7;
        const double t9 = t8 * t8;
        const double u9 = u8 * u8;
        const double t11 = tl_sin(t0);
        const double u11 = tl_sin(u0);
        const double t12 = 0.022000000000000002 * t11;
        const double u12 = 0.022000000000000002 * u11;
        const double t13 = t12 * t12;
        const double u13 = u12 * u12;
        const double t14 = t9 + t13;
        const double u14 = u9 + u13;
        const double t15 = t7 * t7;
        const double u15 = u7 * u7;
        const double t16 = 0.1 * t11;
        const double u16 = 0.1 * u11;
        const double t17 = t16 * t16;
        const double u17 = u16 * u16;
        const double t18 = t15 + t17;
        const double u18 = u15 + u17;
        const double t20 = t18 + 0.0484;
        const double u20 = u18 + 0.0484;
        const double t22 = t20 - 0.07840000000000001;
        const double u22 = u20 - 0.07840000000000001;
        const double t24 = t22 * 0.5;
        const double u24 = u22 * 0.5;
        const double t25 = t24 * t24;
        const double u25 = u24 * u24;
        const double t26 = t14 - t25;
        const double u26 = u14 - u25;
        const double t27 = sqrt(t26);
        const double u27 = sqrt(u26);
        const double t226 = 1.0 / t14;
        const double u226 = 1.0 / u14;
        const double t28 = t27 * t226;
        const double u28 = u27 * u226;
        const double t29 = t8 * t28;
        const double u29 = u8 * u28;
        const double t30 = t24 * t226;
        const double u30 = u24 * u226;
        const double t31 = t12 * t30;
        const double u31 = u12 * u30;
        const double t32 = t29 + t31;
        const double u32 = u29 + u31;
        const double t33 = t8 * t30;
        const double u33 = u8 * u30;
        const double t34 = t12 * t28;
        const double u34 = u12 * u28;
        const double t35 = t33 - t34;
        const double u35 = u33 - u34;
        const double t36 = -t35;
        const double u36 = -u35;
        const double t37 = tl_atan2(t32, t36);
        const double u37 = tl_atan2(u32, u36);
        const double t40 = start[1][l];
        const double u40 = start[1][l + TL_LANES / 2];
        const double t41 = t40 - t37;
        const double u41 = u40 - u37;
        const double t42 = 0.15915494309189535 * t41;
        const double u42 = 0.15915494309189535 * u41;
        const double t44 = t42 + 0.5;
        const double u44 = u42 + 0.5;
        const double t45 = floor(t44);
        const double u45 = floor(u44);
        const double t46 = 6.283185307179586 * t45;
        const double u46 = 6.283185307179586 * u45;
        const double t47 = t37 + t46;
        const double u47 = u37 + u46;
        q[1][l] = t47;
        q[1][l + TL_LANES / 2] = u47;
        const double t50 = 0.28 * t5;
        const double u50 = 0.28 * u5;
        const double t51 = 0.22 * t32;
        const double u51 = 0.22 * u32;
        const double t52 = t51 - t16;
        const double u52 = u51 - u16;
        const double t53 = t50 * t52;
        const double u53 = u50 * u52;
        const double t54 = 0.28 * t11;
        const double u54 = 0.28 * u11;
        const double t55 = 0.22 * t35;
        const double u55 = 0.22 * u35;
        const double t56 = 0.3 - t55;
        const double u56 = 0.3 - u55;
        const double t57 = t56 - t6;
        const double u57 = u56 - u6;
        const double t58 = t54 * t57;
        const double u58 = u54 * u57;
        const double t59 = t53 - t58;
        const double u59 = u53 - u58;
        const double t60 = t59 * 12.755102040816325;
        const double u60 = u59 * 12.755102040816325;
        const double t61 = t50 * t57;
        const double u61 = u50 * u57;
        const double t62 = t54 * t52;
        const double u62 = u54 * u52;
        const double t63 = t61 + t62;
        const double u63 = u61 + u62;
        const double t64 = t63 * 12.755102040816325;
        const double u64 = u63 * 12.755102040816325;
        const double t65 = tl_atan2(t60, t64);
        const double u65 = tl_atan2(u60, u64);
        const double t66 = start[2][l];
        const double u66 = start[2][l + TL_LANES / 2];
        const double t67 = t66 - t65;
        const double u67 = u66 - u65;
        const double t68 = 0.15915494309189535 * t67;
        const double u68 = 0.15915494309189535 * u67;
        const double t69 = t68 + 0.5;
        const double u69 = u68 + 0.5;
        const double t70 = floor(t69);
        const double u70 = floor(u69);
        const double t71 = 6.283185307179586 * t70;
        const double u71 = 6.283185307179586 * u70;
        const double t72 = t65 + t71;
        const double u72 = u65 + u71;
        q[2][l] = t72;
        q[2][l + TL_LANES / 2] = u72;
        const double t74 = velocity[0][l];
        const double u74 = velocity[0][l + TL_LANES / 2];
        v[0][l] = t74;
        v[0][l + TL_LANES / 2] = u74;
        const double t76 = t5 * t64;
        const double u76 = u5 * u64;
        const double t77 = t11 * t60;
        const double u77 = u11 * u60;
        const double t78 = t76 - t77;
        const double u78 = u76 - u77;
        const double t79 = 0.28 * t78;
        const double u79 = 0.28 * u78;
        const double t80 = t51 * t79;
        const double u80 = u51 * u79;
        const double t81 = t11 * t64;
        const double u81 = u11 * u64;
        const double t82 = t5 * t60;
        const double u82 = u5 * u60;
        const double t83 = t81 + t82;
        const double u83 = u81 + u82;
        const double t84 = 0.28 * t83;
        const double u84 = 0.28 * u83;
        const double t85 = t84 * t55;
        const double u85 = u84 * u55;
        const double t86 = t80 + t85;
        const double u86 = u80 + u85;
        const double t228 = 1.0 / t86;
        const double u228 = 1.0 / u86;
        const double t87 = t79 * t228;
        const double u87 = u79 * u228;
        const double t88 = t74 * t16;
        const double u88 = u74 * u16;
        const double t89 = t74 * t84;
        const double u89 = u74 * u84;
        const double t90 = t88 + t89;
        const double u90 = u88 + u89;
        const double t91 = t87 * t90;
        const double u91 = u87 * u90;
        const double t92 = t84 * t228;
        const double u92 = u84 * u228;
        const double t93 = t74 * t6;
        const double u93 = u74 * u6;
        const double t94 = t74 * t79;
        const double u94 = u74 * u79;
        const double t95 = t93 + t94;
        const double u95 = u93 + u94;
        const double t96 = t92 * t95;
        const double u96 = u92 * u95;
        const double t97 = t91 - t96;
        const double u97 = u91 - u96;
        v[1][l] = t97;
        v[1][l + TL_LANES / 2] = u97;
        const double t99 = t51 * t228;
        const double u99 = u51 * u228;
        const double t100 = t99 * t95;
        const double u100 = u99 * u95;
        const double t101 = t55 * t228;
        const double u101 = u55 * u228;
        const double t102 = t101 * t90;
        const double u102 = u101 * u90;
        const double t103 = t100 + t102;
        const double u103 = u100 + u102;
        const double t104 = -t103;
        const double u104 = -u103;
        v[2][l] = t104;
        v[2][l + TL_LANES / 2] = u104;
        const double t106 = acceleration[0][l];
        const double u106 = acceleration[0][l + TL_LANES / 2];
        a[0][l] = t106;
        a[0][l + TL_LANES / 2] = u106;
        const double t108 = t97 * t97;
        const double u108 = u97 * u97;
        const double t109 = t55 * t108;
        const double u109 = u55 * u108;
        const double t110 = t106 * t16;
        const double u110 = u106 * u16;
        const double t111 = t74 * t93;
        const double u111 = u74 * u93;
        const double t112 = t110 + t111;
        const double u112 = u110 + u111;
        const double t113 = t106 * t84;
        const double u113 = u106 * u84;
        const double t114 = t112 + t113;
        const double u114 = u112 + u113;
        const double t115 = t74 - t103;
        const double u115 = u74 - u103;
        const double t116 = t115 * t79;
        const double u116 = u115 * u79;
        const double t117 = t115 * t116;
        const double u117 = u115 * u116;
        const double t118 = t114 + t117;
        const double u118 = u114 + u117;
        const double t119 = t109 + t118;
        const double u119 = u109 + u118;
        const double t120 = t87 * t119;
        const double u120 = u87 * u119;
        const double t121 = t51 * t108;
        const double u121 = u51 * u108;
        const double t122 = t106 * t6;
        const double u122 = u106 * u6;
        const double t123 = t74 * t88;
        const double u123 = u74 * u88;
        const double t124 = t122 - t123;
        const double u124 = u122 - u123;
        const double t125 = t106 * t79;
        const double u125 = u106 * u79;
        const double t126 = t124 + t125;
        const double u126 = u124 + u125;
        const double t127 = t115 * t84;
        const double u127 = u115 * u84;
        const double t128 = t115 * t127;
        const double u128 = u115 * u127;
        const double t129 = t126 - t128;
        const double u129 = u126 - u128;
        const double t130 = t121 + t129;
        const double u130 = u121 + u129;
        const double t131 = t92 * t130;
        const double u131 = u92 * u130;
        const double t132 = t120 - t131;
        const double u132 = u120 - u131;
        a[1][l] = t132;
        a[1][l + TL_LANES / 2] = u132;
        const double t134 = t99 * t130;
        const double u134 = u99 * u130;
        const double t135 = t101 * t119;
        const double u135 = u101 * u119;
        const double t136 = t134 + t135;
        const double u136 = u134 + u135;
        const double t137 = -t136;
        const double u137 = -u136;
        a[2][l] = t137;
        a[2][l + TL_LANES / 2] = u137;
        const double t140 = 0.00040400000000000006 * t106;
        const double u140 = 0.00040400000000000006 * u106;
        const double t142 = (-0.05886) * t5;
        const double u142 = (-0.05886) * u5;
        const double t143 = t140 - t142;
        const double u143 = u140 - u142;
        const double t145 = t106 - t136;
        const double u145 = u106 - u136;
        const double t146 = 0.007850000000000001 * t145;
        const double u146 = 0.007850000000000001 * u145;
        const double t148 = 0.1 * t74;
        const double u148 = 0.1 * u74;
        const double t149 = t74 * t148;
        const double u149 = u74 * u148;
        const double t150 = t60 * t149;
        const double u150 = u60 * u149;
        const double t151 = 0.1 * t106;
        const double u151 = 0.1 * u106;
        const double t152 = t64 * t151;
        const double u152 = u64 * u151;
        const double t153 = t150 + t152;
        const double u153 = u150 + u152;
        const double t155 = (-9.81) * t78;
        const double u155 = (-9.81) * u78;
        const double t156 = t153 - t155;
        const double u156 = u153 - u155;
        const double t157 = 0.042 * t156;
        const double u157 = 0.042 * u156;
        const double t158 = t146 + t157;
        const double u158 = u146 + u157;
        const double t159 = t60 * t151;
        const double u159 = u60 * u151;
        const double t160 = t64 * t149;
        const double u160 = u64 * u149;
        const double t161 = t159 - t160;
        const double u161 = u159 - u160;
        const double t162 = (-9.81) * t83;
        const double u162 = (-9.81) * u83;
        const double t163 = t161 - t162;
        const double u163 = u161 - u162;
        const double t164 = 0.3 * t163;
        const double u164 = 0.3 * u163;
        const double t165 = 0.042 * t115;
        const double u165 = 0.042 * u115;
        const double t166 = t115 * t165;
        const double u166 = u115 * u165;
        const double t167 = t164 - t166;
        const double u167 = u164 - u166;
        const double t168 = t60 * t167;
        const double u168 = u60 * u167;
        const double t169 = 0.3 * t156;
        const double u169 = 0.3 * u156;
        const double t170 = 0.042 * t145;
        const double u170 = 0.042 * u145;
        const double t171 = t169 + t170;
        const double u171 = u169 + u170;
        const double t172 = t64 * t171;
        const double u172 = u64 * u171;
        const double t173 = t168 + t172;
        const double u173 = u168 + u172;
        const double t174 = 0.1 * t173;
        const double u174 = 0.1 * u173;
        const double t175 = t158 + t174;
        const double u175 = u158 + u174;
        const double t176 = t143 + t175;
        const double u176 = u143 + u175;
        const double t178 = 0.002 * t74;
        const double u178 = 0.002 * u74;
        const double t181 = fabs(t74);
        const double u181 = fabs(u74);
        const double t182 = 1e-12 < t181 ? 1.0 : 0.0;
        const double u182 = 1e-12 < u181 ? 1.0 : 0.0;
        const double t183 = t74 * t182;
        const double u183 = u74 * u182;
        const double t184 = (t183 > 0.0 ? 1.0 : 0.0) - (t183 < 0.0 ? 1.0 : 0.0);
        const double u184 = (u183 > 0.0 ? 1.0 : 0.0) - (u183 < 0.0 ? 1.0 : 0.0);
        const double t185 = 0.01 * t184;
        const double u185 = 0.01 * u184;
        const double t186 = t178 + t185;
        const double u186 = u178 + u185;
        const double t187 = t176 + t186;
        const double u187 = u176 + u186;
        const double t189 = 0.0001 * t106;
        const double u189 = 0.0001 * u106;
        const double t190 = t187 + t189;
        const double u190 = u187 + u189;
        tree_force[0][l] = t190;
        tree_force[0][l + TL_LANES / 2] = u190;
        const double t193 = 0.0038799999999999998 * t132;
        const double u193 = 0.0038799999999999998 * u132;
        const double t195 = (-0.258984) * t35;
        const double u195 = (-0.258984) * u35;
        const double t196 = t193 + t195;
        const double u196 = u193 + u195;
        tree_force[1][l] = t196;
        tree_force[1][l + TL_LANES / 2] = u196;
        tree_force[2][l] = t158;
        tree_force[2][l + TL_LANES / 2] = u158;
        const double t199 = t16 + t84;
        const double u199 = u16 + u84;
        const double t200 = t55 * t84;
        const double u200 = u55 * u84;
        const double t201 = t80 + t200;
        const double u201 = u80 + u200;
        const double t229 = 1.0 / t201;
        const double u229 = 1.0 / u201;
        const double t202 = t55 * t229;
        const double u202 = u55 * u229;
        const double t203 = t202 * t158;
        const double u203 = u202 * u158;
        const double t204 = t79 * t229;
        const double u204 = u79 * u229;
        const double t205 = t204 * t196;
        const double u205 = u204 * u196;
        const double t206 = t203 - t205;
        const double u206 = u203 - u205;
        const double t207 = t199 * t206;
        const double u207 = u199 * u206;
        const double t208 = t6 + t79;
        const double u208 = u6 + u79;
        const double t209 = t51 * t229;
        const double u209 = u51 * u229;
        const double t210 = t209 * t158;
        const double u210 = u209 * u158;
        const double t211 = t84 * t229;
        const double u211 = u84 * u229;
        const double t212 = t211 * t196;
        const double u212 = u211 * u196;
        const double t213 = t210 + t212;
        const double u213 = u210 + u212;
        const double t214 = t208 * t213;
        const double u214 = u208 * u213;
        const double t215 = t207 + t214;
        const double u215 = u207 + u214;
        const double t216 = t190 - t215;
        const double u216 = u190 - u215;
        force[0][l] = t216;
        force[0][l + TL_LANES / 2] = u216;
        closure_force[0][l] = t206;
        closure_force[0][l + TL_LANES / 2] = u206;
        const double t219 = -t213;
        const double u219 = -u213;
        closure_force[1][l] = t219;
        closure_force[1][l + TL_LANES / 2] = u219;
        discriminants[0][l] = t26;
        discriminants[0][l + TL_LANES / 2] = u26;
        pivots[0][l] = t86;
        pivots[0][l + TL_LANES / 2] = u86;
        pivots[1][l] = t86;
        pivots[1][l + TL_LANES / 2] = u86;
        pivots[2][l] = t201;
        pivots[2][l + TL_LANES / 2] = u201;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double health_d_0_0 = discriminants[0][l];
        const double health_d = health_d_0_0 < 1.0 ? health_d_0_0 : 1.0;
        const double health_p_0_0 = fabs(pivots[0][l]) * 18.605978000044548;
        const double health_p_0_1 = fabs(pivots[2][l]) * 18.605978000044548;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_p = health_p_1_0 < 1e+300 ? health_p_1_0 : 1e+300;
        double health_in_0 = position[0][l] * position[0][l];
        double health_in_1 = start[1][l] * start[1][l];
        double health_in_2 = start[2][l] * start[2][l];
        const double health_in = health_in_0 + health_in_1 + health_in_2;
        double health_out_0 = q[1][l] * q[1][l];
        double health_out_1 = q[2][l] * q[2][l];
        double health_out_2 = v[2][l] * v[2][l];
        double health_out_3 = a[2][l] * a[2][l];
        health_out_0 += force[0][l] * force[0][l];
        health_out_1 += closure_force[1][l] * closure_force[1][l];
        const double health_out = health_out_0 + health_out_1 + health_out_2 + health_out_3;
        const double health_squares = health_in + health_out;
        health[0][l] = health_squares < 1e+200 ? health_d : -1e300;
        health[1][l] = health_p;
        health[2][l] = 0.0;
        health[3][l] = 0.0;
    }
}

static void TL_APART actuators_inverse_dynamics_rows(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, const double *restrict start, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double lanes_position[1][TL_LANES];
    double lanes_velocity[1][TL_LANES];
    double lanes_acceleration[1][TL_LANES];
    double lanes_start[3][TL_LANES];
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
        lanes_start[0][l] = start[l * 3 + 0];
        lanes_start[1][l] = start[l * 3 + 1];
        lanes_start[2][l] = start[l * 3 + 2];
    }
    actuators_inverse_dynamics_block((const double (*)[TL_LANES])lanes_position, (const double (*)[TL_LANES])lanes_velocity, (const double (*)[TL_LANES])lanes_acceleration, (const double (*)[TL_LANES])lanes_start, lanes_q, lanes_v, lanes_a, lanes_tree_force, lanes_force, lanes_closure_force, lanes_health);
    tl_back((const double (*)[TL_LANES])lanes_health, 4, health);
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
    }
}

void actuators_inverse_dynamics_batch(size_t n, const double *restrict position, const double *restrict velocity, const double *restrict acceleration, const double *restrict start, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    const ptrdiff_t blocks = (ptrdiff_t)(n / TL_LANES);
    const size_t rest = n % TL_LANES;
#ifdef _OPENMP
#pragma omp parallel for schedule(static) if (n >= 2048)
#endif
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        const size_t first = (size_t)b * TL_LANES;
        actuators_inverse_dynamics_rows(position + first * 1, velocity + first * 1, acceleration + first * 1, start + first * 3, q + first * 3, v + first * 3, a + first * 3, tree_force + first * 3, force + first * 1, closure_force + first * 2, health + first * 4);
    }
    if (rest) {
        const size_t first = n - rest;
        double tail_position[TL_LANES * 1];
        double tail_velocity[TL_LANES * 1];
        double tail_acceleration[TL_LANES * 1];
        double tail_start[TL_LANES * 3];
        double tail_q[TL_LANES * 3];
        double tail_v[TL_LANES * 3];
        double tail_a[TL_LANES * 3];
        double tail_tree_force[TL_LANES * 3];
        double tail_force[TL_LANES * 1];
        double tail_closure_force[TL_LANES * 2];
        double tail_health[TL_LANES * 4];
        for (size_t l = 0; l < TL_LANES; ++l) {
            const size_t s = first + (l < rest ? l : rest - 1);
            (void)s;
            for (size_t i = 0; i < 1; ++i) tail_position[l * 1 + i] = position[s * 1 + i];
            for (size_t i = 0; i < 1; ++i) tail_velocity[l * 1 + i] = velocity[s * 1 + i];
            for (size_t i = 0; i < 1; ++i) tail_acceleration[l * 1 + i] = acceleration[s * 1 + i];
            for (size_t i = 0; i < 3; ++i) tail_start[l * 3 + i] = start[s * 3 + i];
        }
        actuators_inverse_dynamics_rows(tail_position, tail_velocity, tail_acceleration, tail_start, tail_q, tail_v, tail_a, tail_tree_force, tail_force, tail_closure_force, tail_health);
        for (size_t l = 0; l < rest; ++l) {
            for (size_t i = 0; i < 3; ++i) q[(first + l) * 3 + i] = tail_q[l * 3 + i];
            for (size_t i = 0; i < 3; ++i) v[(first + l) * 3 + i] = tail_v[l * 3 + i];
            for (size_t i = 0; i < 3; ++i) a[(first + l) * 3 + i] = tail_a[l * 3 + i];
            for (size_t i = 0; i < 3; ++i) tree_force[(first + l) * 3 + i] = tail_tree_force[l * 3 + i];
            for (size_t i = 0; i < 1; ++i) force[(first + l) * 1 + i] = tail_force[l * 1 + i];
            for (size_t i = 0; i < 2; ++i) closure_force[(first + l) * 2 + i] = tail_closure_force[l * 2 + i];
            for (size_t i = 0; i < 4; ++i) health[(first + l) * 4 + i] = tail_health[l * 4 + i];
        }
    }
}
