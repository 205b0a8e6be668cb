/* five_bar, actuators */
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

static inline int tl_all_below(const double *length, double last)
{
    int above = 0;
    for (int l = 0; l < TL_LANES; ++l) above += length[l] > last;
    return above == 0;
}

static inline double tl_squares(const double *x, int n)
{
#ifdef TL_SHUFFLE
    tl_four sum = *(const tl_four *)(x + n - 4);
    sum *= sum;
    for (int i = 0; i + 4 < n; i += 4) {
        const tl_four four = *(const tl_four *)(x + i);
        sum += four * four;
    }
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
#else
    double sum = 0.0;
    for (int i = 0; i < n; ++i) sum += x[i] * x[i];
    return sum;
#endif
}

static inline void tl_turn(const double *restrict rows, int size, double *restrict first, double *restrict second)
{
#ifdef TL_SHUFFLE
    for (int l = 0; l < TL_LANES; l += 4) {
        const double *row = rows + l * size;
        const tl_pair a = *(const tl_pair *)row, b = *(const tl_pair *)(row + size);
        const tl_pair c = *(const tl_pair *)(row + 2 * size), d = *(const tl_pair *)(row + 3 * size);
        const tl_four even = __builtin_shufflevector(a, c, 0, 1, 2, 3), odd = __builtin_shufflevector(b, d, 0, 1, 2, 3);
        *(tl_four *)(first + l) = __builtin_shufflevector(even, odd, 0, 4, 2, 6);
        *(tl_four *)(second + l) = __builtin_shufflevector(even, odd, 1, 5, 3, 7);
    }
#else
    for (int l = 0; l < TL_LANES; ++l) {
        first[l] = rows[l * size];
        second[l] = rows[l * size + 1];
    }
#endif
}

void actuators_inverse_dynamics(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, const double *restrict start, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double start_1[4];
    double fixed_2[6];
    double solution_3[4];
    double solution_3_pivots[1];
    double pivots[3];
    double step_length[1] = {0.0};
    double residual[1] = {0.0};
    int iterations = 0;
    (void)position;
    (void)velocity;
    (void)acceleration;
    (void)start;
    {
        const double t0 = start[0];
        const double t2 = position[0];
        const double t3 = start[3];
        const double t4 = t2 - t3;
        const double t6 = t4 * 0.15915494309189535;
        const double t8 = t6 + 0.5;
        const double t9 = floor(t8);
        const double t10 = 6.283185307179586 * t9;
        const double t11 = t4 - t10;
        const double t12 = (-0.16618982021969042) * t11;
        const double t14 = position[1];
        const double t15 = start[4];
        const double t16 = t14 - t15;
        const double t17 = t16 * 0.15915494309189535;
        const double t18 = t17 + 0.5;
        const double t19 = floor(t18);
        const double t20 = 6.283185307179586 * t19;
        const double t21 = t16 - t20;
        const double t22 = (-0.16618982021969034) * t21;
        const double t23 = t12 + t22;
        const double t24 = t0 + t23;
        start_1[0] = t24;
        const double t26 = start[1];
        const double t28 = (-0.18967032440070525) * t11;
        const double t30 = 0.18967032440070536 * t21;
        const double t31 = t28 + t30;
        const double t32 = t26 + t31;
        start_1[1] = t32;
        const double t34 = start[2];
        const double t36 = (-0.10038399308279689) * t11;
        const double t38 = 0.7205093906845828 * t21;
        const double t39 = t36 + t38;
        const double t40 = t34 + t39;
        start_1[2] = t40;
        const double t42 = start[5];
        const double t44 = 0.7205093906845822 * t11;
        const double t46 = (-1.1003839930827968) * t21;
        const double t47 = t44 + t46;
        const double t48 = t42 + t47;
        start_1[3] = t48;
        const double t52 = tl_cos(t2);
        const double t53 = 0.25 * t52;
        const double t54 = (-0.1) + t53;
        fixed_2[0] = t54;
        const double t56 = tl_sin(t2);
        const double t57 = 0.25 * t56;
        fixed_2[1] = t57;
        const double t59 = tl_cos(t14);
        fixed_2[2] = t59;
        const double t61 = tl_sin(t14);
        fixed_2[3] = t61;
        const double t64 = 0.25 * t59;
        const double t65 = 0.1 + t64;
        fixed_2[4] = t65;
        const double t67 = 0.25 * t61;
        fixed_2[5] = t67;
    }
    {
        solution_3[0] = start_1[0];
        solution_3[1] = start_1[1];
        solution_3[2] = start_1[2];
        solution_3[3] = start_1[3];
    }
    for (int iteration = 1; iteration <= 60; ++iteration) {
        {
            double dx_0;
            double dx_1;
            double dx_2;
            double dx_3;
            const double t0 = solution_3[0];
            const double t2 = solution_3[2];
            const double t3 = tl_cos(t2);
            const double t4 = (-0.35) * t3;
            const double t5 = t0 + t4;
            const double t6 = fixed_2[0];
            const double t7 = t5 - t6;
            const double t9 = solution_3[1];
            const double t10 = tl_sin(t2);
            const double t11 = (-0.35) * t10;
            const double t12 = t9 + t11;
            const double t13 = fixed_2[1];
            const double t14 = t12 - t13;
            const double t16 = fixed_2[4];
            const double t18 = fixed_2[2];
            const double t19 = solution_3[3];
            const double t20 = tl_cos(t19);
            const double t21 = t18 * t20;
            const double t22 = fixed_2[3];
            const double t23 = tl_sin(t19);
            const double t24 = t22 * t23;
            const double t25 = t21 - t24;
            const double t26 = 0.35 * t25;
            const double t27 = t16 + t26;
            const double t28 = t27 - t0;
            const double t30 = fixed_2[5];
            const double t31 = t22 * t20;
            const double t32 = t18 * t23;
            const double t33 = t31 + t32;
            const double t34 = 0.35 * t33;
            const double t35 = t30 + t34;
            const double t36 = t35 - t9;
            const double t38 = t32 + t31;
            const double t39 = 0.35 * t38;
            const double t40 = t26 * t11;
            const double t41 = t4 * t39;
            const double t42 = t40 - t41;
            const double t66 = 1.0 / t42;
            const double t43 = t39 * t66;
            const double t44 = t36 + t14;
            const double t45 = t43 * t44;
            const double t46 = t26 * t66;
            const double t47 = t28 + t7;
            const double t48 = t46 * t47;
            const double t49 = t45 + t48;
            const double t50 = t11 * t49;
            const double t51 = t50 - t7;
            dx_0 = t51;
            const double t53 = t4 * t49;
            const double t54 = t14 + t53;
            const double t55 = -t54;
            dx_1 = t55;
            dx_2 = t49;
            const double t58 = t4 * t66;
            const double t59 = t58 * t47;
            const double t60 = t11 * t66;
            const double t61 = t60 * t44;
            const double t62 = t59 + t61;
            const double t63 = -t62;
            dx_3 = t63;
            solution_3_pivots[0] = t42;
            double longest = 0.0, limit;
            longest = fabs(4.0 * dx_0) > longest ? fabs(4.0 * dx_0) : longest;
            longest = fabs(4.0 * dx_1) > longest ? fabs(4.0 * dx_1) : longest;
            longest = fabs(dx_2) > longest ? fabs(dx_2) : longest;
            longest = fabs(dx_3) > longest ? fabs(dx_3) : longest;
            limit = longest > 0.5 ? 0.5 / longest : 1.0;
            solution_3[0] += limit * dx_0;
            solution_3[1] += limit * dx_1;
            solution_3[2] += limit * dx_2;
            solution_3[3] += limit * dx_3;
            step_length[0] = longest;
        }
        iterations = iteration > iterations ? iteration : iterations;
        if (!(step_length[0] > 1e-08)) break;
    }
    {
        double phi_0;
        double phi_1;
        double phi_2;
        double phi_3;
        const double t0 = solution_3[0];
        const double t2 = solution_3[2];
        const double t3 = tl_cos(t2);
        const double t4 = (-0.35) * t3;
        const double t5 = t0 + t4;
        const double t6 = fixed_2[0];
        const double t7 = t5 - t6;
        phi_0 = t7;
        const double t9 = solution_3[1];
        const double t10 = tl_sin(t2);
        const double t11 = (-0.35) * t10;
        const double t12 = t9 + t11;
        const double t13 = fixed_2[1];
        const double t14 = t12 - t13;
        phi_1 = t14;
        const double t16 = fixed_2[4];
        const double t18 = fixed_2[2];
        const double t19 = solution_3[3];
        const double t20 = tl_cos(t19);
        const double t21 = t18 * t20;
        const double t22 = fixed_2[3];
        const double t23 = tl_sin(t19);
        const double t24 = t22 * t23;
        const double t25 = t21 - t24;
        const double t26 = 0.35 * t25;
        const double t27 = t16 + t26;
        const double t28 = t27 - t0;
        phi_2 = t28;
        const double t30 = fixed_2[5];
        const double t31 = t22 * t20;
        const double t32 = t18 * t23;
        const double t33 = t31 + t32;
        const double t34 = 0.35 * t33;
        const double t35 = t30 + t34;
        const double t36 = t35 - t9;
        phi_3 = t36;
        residual[0] += fabs(4.0 * phi_0);
        residual[0] += fabs(4.0 * phi_1);
        residual[0] += fabs(4.0 * phi_2);
        residual[0] += fabs(4.0 * phi_3);
    }
    {
        const double t0 = solution_3[0];
        q[0] = t0;
        const double t2 = solution_3[1];
        q[1] = t2;
        const double t4 = solution_3[2];
        const double t7 = start[2];
        const double t8 = t7 - t4;
        const double t9 = 0.15915494309189535 * t8;
        const double t11 = t9 + 0.5;
        const double t12 = floor(t11);
        const double t13 = 6.283185307179586 * t12;
        const double t14 = t4 + t13;
        q[2] = t14;
        const double t16 = position[0];
        q[3] = t16;
        const double t18 = position[1];
        q[4] = t18;
        const double t20 = solution_3[3];
        const double t21 = start[5];
        const double t22 = t21 - t20;
        const double t23 = 0.15915494309189535 * t22;
        const double t24 = t23 + 0.5;
        const double t25 = floor(t24);
        const double t26 = 6.283185307179586 * t25;
        const double t27 = t20 + t26;
        q[5] = t27;
        const double t30 = tl_sin(t16);
        const double t31 = 0.25 * t30;
        const double t32 = velocity[0];
        const double t33 = t31 * t32;
        const double t35 = tl_sin(t4);
        const double t36 = (-0.35) * t35;
        const double t38 = tl_sin(t18);
        const double t39 = tl_cos(t20);
        const double t40 = t38 * t39;
        const double t41 = tl_cos(t18);
        const double t42 = tl_sin(t20);
        const double t43 = t41 * t42;
        const double t44 = t40 + t43;
        const double t45 = 0.35 * t44;
        const double t46 = t41 * t39;
        const double t47 = t38 * t42;
        const double t48 = t46 - t47;
        const double t49 = 0.35 * t48;
        const double t50 = t49 * t36;
        const double t51 = tl_cos(t4);
        const double t52 = (-0.35) * t51;
        const double t53 = t52 * t45;
        const double t54 = t50 - t53;
        const double t279 = 1.0 / t54;
        const double t55 = t45 * t279;
        const double t56 = tl_cos(t16);
        const double t57 = 0.25 * t56;
        const double t58 = t57 * t32;
        const double t59 = velocity[1];
        const double t60 = 0.25 * t41;
        const double t61 = t59 * t60;
        const double t62 = t59 * t49;
        const double t63 = t61 + t62;
        const double t64 = t58 - t63;
        const double t65 = t55 * t64;
        const double t66 = t49 * t279;
        const double t67 = 0.25 * t38;
        const double t68 = t59 * t67;
        const double t69 = t59 * t45;
        const double t70 = t68 + t69;
        const double t71 = t70 - t33;
        const double t72 = t66 * t71;
        const double t73 = t65 + t72;
        const double t74 = t36 * t73;
        const double t75 = t33 + t74;
        const double t76 = -t75;
        v[0] = t76;
        const double t78 = t52 * t73;
        const double t79 = t58 + t78;
        v[1] = t79;
        const double t81 = -t73;
        v[2] = t81;
        v[3] = t32;
        v[4] = t59;
        const double t85 = t52 * t279;
        const double t86 = t85 * t71;
        const double t87 = t36 * t279;
        const double t88 = t87 * t64;
        const double t89 = t86 + t88;
        v[5] = t89;
        const double t91 = acceleration[0];
        const double t92 = t31 * t91;
        const double t93 = t32 * t32;
        const double t94 = t57 * t93;
        const double t95 = t92 + t94;
        const double t96 = t73 * t52;
        const double t97 = t73 * t96;
        const double t98 = t95 - t97;
        const double t99 = t73 * t36;
        const double t100 = t73 * t99;
        const double t101 = t57 * t91;
        const double t102 = t31 * t93;
        const double t103 = t101 - t102;
        const double t104 = t100 + t103;
        const double t105 = acceleration[1];
        const double t106 = t105 * t60;
        const double t107 = t59 * t68;
        const double t108 = t106 - t107;
        const double t109 = t105 * t49;
        const double t110 = t108 + t109;
        const double t111 = t59 + t89;
        const double t112 = t111 * t45;
        const double t113 = t111 * t112;
        const double t114 = t110 - t113;
        const double t115 = t104 - t114;
        const double t116 = t55 * t115;
        const double t117 = t105 * t67;
        const double t118 = t59 * t61;
        const double t119 = t117 + t118;
        const double t120 = t105 * t45;
        const double t121 = t119 + t120;
        const double t122 = t111 * t49;
        const double t123 = t111 * t122;
        const double t124 = t121 + t123;
        const double t125 = t124 - t98;
        const double t126 = t66 * t125;
        const double t127 = t116 + t126;
        const double t128 = t36 * t127;
        const double t129 = t98 + t128;
        const double t130 = -t129;
        a[0] = t130;
        const double t132 = t52 * t127;
        const double t133 = t104 + t132;
        a[1] = t133;
        const double t135 = -t127;
        a[2] = t135;
        a[3] = t91;
        a[4] = t105;
        const double t139 = t85 * t125;
        const double t140 = t87 * t115;
        const double t141 = t139 + t140;
        a[5] = t141;
        const double t144 = t35 * t133;
        const double t145 = t51 * t129;
        const double t146 = t144 - t145;
        const double t148 = (-9.81) * t35;
        const double t149 = t146 - t148;
        const double t150 = 0.55 * t149;
        const double t152 = (-0.04375) * t73;
        const double t153 = t73 * t152;
        const double t154 = t150 - t153;
        const double t155 = t51 * t154;
        const double t156 = t35 * t129;
        const double t157 = t51 * t133;
        const double t158 = t156 + t157;
        const double t159 = (-9.81) * t51;
        const double t160 = t158 - t159;
        const double t161 = 0.55 * t160;
        const double t162 = (-0.04375) * t127;
        const double t163 = t161 - t162;
        const double t164 = t35 * t163;
        const double t165 = t155 - t164;
        tree_force[0] = t165;
        const double t167 = t35 * t154;
        const double t168 = t51 * t163;
        const double t169 = t167 + t168;
        tree_force[1] = t169;
        const double t171 = (-0.04375) * t160;
        const double t173 = 0.01055625 * t127;
        const double t174 = t171 - t173;
        tree_force[2] = t174;
        const double t177 = 0.007662500000000001 * t91;
        const double t179 = (-0.44145000000000006) * t56;
        const double t180 = t177 - t179;
        const double t182 = 0.01 * t32;
        const double t185 = fabs(t32);
        const double t186 = 1e-12 < t185 ? 1.0 : 0.0;
        const double t187 = t32 * t186;
        const double t188 = (t187 > 0.0 ? 1.0 : 0.0) - (t187 < 0.0 ? 1.0 : 0.0);
        const double t189 = 0.05 * t188;
        const double t190 = t182 + t189;
        const double t191 = t180 + t190;
        const double t193 = 0.0005 * t91;
        const double t194 = t191 + t193;
        tree_force[3] = t194;
        const double t196 = 0.007662500000000001 * t105;
        const double t197 = (-0.44145000000000006) * t41;
        const double t198 = t196 - t197;
        const double t199 = t105 + t141;
        const double t200 = 0.01055625 * t199;
        const double t202 = 0.25 * t59;
        const double t203 = t59 * t202;
        const double t204 = t42 * t203;
        const double t205 = 0.25 * t105;
        const double t206 = t39 * t205;
        const double t207 = t204 + t206;
        const double t208 = (-9.81) * t48;
        const double t209 = t207 - t208;
        const double t210 = 0.04375 * t209;
        const double t211 = t200 + t210;
        const double t212 = t42 * t205;
        const double t213 = t39 * t203;
        const double t214 = t212 - t213;
        const double t215 = (-9.81) * t44;
        const double t216 = t214 - t215;
        const double t217 = 0.25 * t216;
        const double t218 = 0.04375 * t111;
        const double t219 = t111 * t218;
        const double t220 = t217 - t219;
        const double t221 = t42 * t220;
        const double t222 = 0.25 * t209;
        const double t223 = 0.04375 * t199;
        const double t224 = t222 + t223;
        const double t225 = t39 * t224;
        const double t226 = t221 + t225;
        const double t227 = 0.25 * t226;
        const double t228 = t211 + t227;
        const double t229 = t198 + t228;
        const double t230 = 0.01 * t59;
        const double t231 = fabs(t59);
        const double t232 = 1e-12 < t231 ? 1.0 : 0.0;
        const double t233 = t59 * t232;
        const double t234 = (t233 > 0.0 ? 1.0 : 0.0) - (t233 < 0.0 ? 1.0 : 0.0);
        const double t235 = 0.05 * t234;
        const double t236 = t230 + t235;
        const double t237 = t229 + t236;
        const double t238 = 0.0005 * t105;
        const double t239 = t237 + t238;
        tree_force[4] = t239;
        tree_force[5] = t211;
        const double t242 = t36 * t49;
        const double t243 = t242 - t53;
        const double t280 = 1.0 / t243;
        const double t244 = t52 * t280;
        const double t245 = t244 * t211;
        const double t246 = t49 * t280;
        const double t247 = t36 * t165;
        const double t248 = t174 + t247;
        const double t249 = t52 * t169;
        const double t250 = t248 - t249;
        const double t251 = t246 * t250;
        const double t252 = t245 - t251;
        const double t253 = t165 + t252;
        const double t254 = t31 * t253;
        const double t255 = t36 * t280;
        const double t256 = t255 * t211;
        const double t257 = t45 * t280;
        const double t258 = t257 * t250;
        const double t259 = t256 - t258;
        const double t260 = t169 + t259;
        const double t261 = t57 * t260;
        const double t262 = t254 - t261;
        const double t263 = t194 - t262;
        force[0] = t263;
        const double t265 = t60 + t49;
        const double t266 = t265 * t259;
        const double t267 = t67 + t45;
        const double t268 = t267 * t252;
        const double t269 = t266 - t268;
        const double t270 = t239 - t269;
        force[1] = t270;
        closure_force[0] = t253;
        closure_force[1] = t260;
        closure_force[2] = t252;
        closure_force[3] = t259;
        pivots[0] = t54;
        pivots[1] = t54;
        pivots[2] = t243;
    }
    {
        const double health_d = 1.0;
        const double health_p_0_0 = fabs(solution_3_pivots[0]) * 8.251716660111862;
        const double health_p_0_1 = fabs(pivots[0]) * 8.251716660111862;
        const double health_p_0_2 = fabs(pivots[2]) * 8.251716660111862;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_ps_1_0 = health_p_0_0 + health_p_0_1;
        const double health_p_2_0 = health_p_1_0 < health_p_0_2 ? health_p_1_0 : health_p_0_2;
        const double health_ps_2_0 = health_ps_1_0 + health_p_0_2;
        const double health_p = health_ps_2_0 == health_ps_2_0 ? (health_p_2_0 < 1e+300 ? health_p_2_0 : 1e+300) : 0.0;
        double health_in_0 = position[0] * position[0];
        double health_in_1 = position[1] * position[1];
        const double health_in = tl_squares(start + 2, 4) + health_in_0 + health_in_1;
        double health_out_0 = q[0] * q[0];
        double health_out_1 = q[1] * q[1];
        double health_out_2 = q[2] * q[2];
        double health_out_3 = q[5] * q[5];
        health_out_0 += v[0] * v[0];
        health_out_1 += v[1] * v[1];
        health_out_2 += v[2] * v[2];
        health_out_3 += a[0] * a[0];
        health_out_0 += a[2] * a[2];
        health_out_1 += force[0] * force[0];
        health_out_2 += force[1] * force[1];
        const double health_out = health_out_0 + health_out_1 + health_out_2 + health_out_3;
        const double health_squares = health_in + health_out;
        health[0] = health_squares < 1e+200 ? health_d : -1e300;
        health[1] = health_p;
        health[2] = residual[0];
        health[3] = (double)iterations;
    }
}

static void actuators_inverse_dynamics_block(const double position[restrict][TL_LANES], const double velocity[restrict][TL_LANES], const double acceleration[restrict][TL_LANES], const double start[restrict][TL_LANES], double q[restrict][TL_LANES], double v[restrict][TL_LANES], double a[restrict][TL_LANES], double tree_force[restrict][TL_LANES], double force[restrict][TL_LANES], double closure_force[restrict][TL_LANES], double health[restrict][TL_LANES])
{
    double start_1[4][TL_LANES];
    double fixed_2[6][TL_LANES];
    double solution_3[4][TL_LANES];
    double solution_3_pivots[1][TL_LANES];
    double pivots[3][TL_LANES];
    double step_length[1][TL_LANES], residual[1][TL_LANES];
    int iterations = 0;
    for (int l = 0; l < TL_LANES; ++l) {
        residual[0][l] = 0.0;
    }
    (void)position;
    (void)velocity;
    (void)acceleration;
    (void)start;
    for (int l = 0; l < TL_LANES; ++l) {
        const double t0 = start[0][l];
        const double t2 = position[0][l];
        const double t3 = start[3][l];
        const double t4 = t2 - t3;
        const double t6 = t4 * 0.15915494309189535;
        const double t8 = t6 + 0.5;
        const double t9 = floor(t8);
        const double t10 = 6.283185307179586 * t9;
        const double t11 = t4 - t10;
        const double t12 = (-0.16618982021969042) * t11;
        const double t14 = position[1][l];
        const double t15 = start[4][l];
        const double t16 = t14 - t15;
        const double t17 = t16 * 0.15915494309189535;
        const double t18 = t17 + 0.5;
        const double t19 = floor(t18);
        const double t20 = 6.283185307179586 * t19;
        const double t21 = t16 - t20;
        const double t22 = (-0.16618982021969034) * t21;
        const double t23 = t12 + t22;
        const double t24 = t0 + t23;
        start_1[0][l] = t24;
        const double t26 = start[1][l];
        const double t28 = (-0.18967032440070525) * t11;
        const double t30 = 0.18967032440070536 * t21;
        const double t31 = t28 + t30;
        const double t32 = t26 + t31;
        start_1[1][l] = t32;
        const double t34 = start[2][l];
        const double t36 = (-0.10038399308279689) * t11;
        const double t38 = 0.7205093906845828 * t21;
        const double t39 = t36 + t38;
        const double t40 = t34 + t39;
        start_1[2][l] = t40;
        const double t42 = start[5][l];
        const double t44 = 0.7205093906845822 * t11;
        const double t46 = (-1.1003839930827968) * t21;
        const double t47 = t44 + t46;
        const double t48 = t42 + t47;
        start_1[3][l] = t48;
        const double t52 = tl_cos(t2);
        const double t53 = 0.25 * t52;
        const double t54 = (-0.1) + t53;
        fixed_2[0][l] = t54;
        const double t56 = tl_sin(t2);
        const double t57 = 0.25 * t56;
        fixed_2[1][l] = t57;
        const double t59 = tl_cos(t14);
        fixed_2[2][l] = t59;
        const double t61 = tl_sin(t14);
        fixed_2[3][l] = t61;
        const double t64 = 0.25 * t59;
        const double t65 = 0.1 + t64;
        fixed_2[4][l] = t65;
        const double t67 = 0.25 * t61;
        fixed_2[5][l] = t67;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        solution_3[0][l] = start_1[0][l];
        solution_3[1][l] = start_1[1][l];
        solution_3[2][l] = start_1[2][l];
        solution_3[3][l] = start_1[3][l];
    }
    for (int iteration = 1; iteration <= 60; ++iteration) {
        for (int l = 0; l < TL_LANES; ++l) {
            double dx_0;
            double dx_1;
            double dx_2;
            double dx_3;
            const double t0 = solution_3[0][l];
            const double t2 = solution_3[2][l];
            const double t3 = tl_cos(t2);
            const double t4 = (-0.35) * t3;
            const double t5 = t0 + t4;
            const double t6 = fixed_2[0][l];
            const double t7 = t5 - t6;
            const double t9 = solution_3[1][l];
            const double t10 = tl_sin(t2);
            const double t11 = (-0.35) * t10;
            const double t12 = t9 + t11;
            const double t13 = fixed_2[1][l];
            const double t14 = t12 - t13;
            const double t16 = fixed_2[4][l];
            const double t18 = fixed_2[2][l];
            const double t19 = solution_3[3][l];
            const double t20 = tl_cos(t19);
            const double t21 = t18 * t20;
            const double t22 = fixed_2[3][l];
            const double t23 = tl_sin(t19);
            const double t24 = t22 * t23;
            const double t25 = t21 - t24;
            const double t26 = 0.35 * t25;
            const double t27 = t16 + t26;
            const double t28 = t27 - t0;
            const double t30 = fixed_2[5][l];
            const double t31 = t22 * t20;
            const double t32 = t18 * t23;
            const double t33 = t31 + t32;
            const double t34 = 0.35 * t33;
            const double t35 = t30 + t34;
            const double t36 = t35 - t9;
            const double t38 = t32 + t31;
            const double t39 = 0.35 * t38;
            const double t40 = t26 * t11;
            const double t41 = t4 * t39;
            const double t42 = t40 - t41;
            const double t66 = 1.0 / t42;
            const double t43 = t39 * t66;
            const double t44 = t36 + t14;
            const double t45 = t43 * t44;
            const double t46 = t26 * t66;
            const double t47 = t28 + t7;
            const double t48 = t46 * t47;
            const double t49 = t45 + t48;
            const double t50 = t11 * t49;
            const double t51 = t50 - t7;
            dx_0 = t51;
            const double t53 = t4 * t49;
            const double t54 = t14 + t53;
            const double t55 = -t54;
            dx_1 = t55;
            dx_2 = t49;
            const double t58 = t4 * t66;
            const double t59 = t58 * t47;
            const double t60 = t11 * t66;
            const double t61 = t60 * t44;
            const double t62 = t59 + t61;
            const double t63 = -t62;
            dx_3 = t63;
            solution_3_pivots[0][l] = t42;
            double longest = 0.0, limit;
            longest = fabs(4.0 * dx_0) > longest ? fabs(4.0 * dx_0) : longest;
            longest = fabs(4.0 * dx_1) > longest ? fabs(4.0 * dx_1) : longest;
            longest = fabs(dx_2) > longest ? fabs(dx_2) : longest;
            longest = fabs(dx_3) > longest ? fabs(dx_3) : longest;
            limit = longest > 0.5 ? 0.5 / longest : 1.0;
            solution_3[0][l] += limit * dx_0;
            solution_3[1][l] += limit * dx_1;
            solution_3[2][l] += limit * dx_2;
            solution_3[3][l] += limit * dx_3;
            step_length[0][l] = longest;
        }
        iterations = iteration > iterations ? iteration : iterations;
        if (tl_all_below(step_length[0], 1e-08)) break;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        double phi_0;
        double phi_1;
        double phi_2;
        double phi_3;
        const double t0 = solution_3[0][l];
        const double t2 = solution_3[2][l];
        const double t3 = tl_cos(t2);
        const double t4 = (-0.35) * t3;
        const double t5 = t0 + t4;
        const double t6 = fixed_2[0][l];
        const double t7 = t5 - t6;
        phi_0 = t7;
        const double t9 = solution_3[1][l];
        const double t10 = tl_sin(t2);
        const double t11 = (-0.35) * t10;
        const double t12 = t9 + t11;
        const double t13 = fixed_2[1][l];
        const double t14 = t12 - t13;
        phi_1 = t14;
        const double t16 = fixed_2[4][l];
        const double t18 = fixed_2[2][l];
        const double t19 = solution_3[3][l];
        const double t20 = tl_cos(t19);
        const double t21 = t18 * t20;
        const double t22 = fixed_2[3][l];
        const double t23 = tl_sin(t19);
        const double t24 = t22 * t23;
        const double t25 = t21 - t24;
        const double t26 = 0.35 * t25;
        const double t27 = t16 + t26;
        const double t28 = t27 - t0;
        phi_2 = t28;
        const double t30 = fixed_2[5][l];
        const double t31 = t22 * t20;
        const double t32 = t18 * t23;
        const double t33 = t31 + t32;
        const double t34 = 0.35 * t33;
        const double t35 = t30 + t34;
        const double t36 = t35 - t9;
        phi_3 = t36;
        residual[0][l] += fabs(4.0 * phi_0);
        residual[0][l] += fabs(4.0 * phi_1);
        residual[0][l] += fabs(4.0 * phi_2);
        residual[0][l] += fabs(4.0 * phi_3);
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double t0 = solution_3[0][l];
        q[0][l] = t0;
        const double t2 = solution_3[1][l];
        q[1][l] = t2;
        const double t4 = solution_3[2][l];
        const double t7 = start[2][l];
        const double t8 = t7 - t4;
        const double t9 = 0.15915494309189535 * t8;
        const double t11 = t9 + 0.5;
        const double t12 = floor(t11);
        const double t13 = 6.283185307179586 * t12;
        const double t14 = t4 + t13;
        q[2][l] = t14;
        const double t16 = position[0][l];
        q[3][l] = t16;
        const double t18 = position[1][l];
        q[4][l] = t18;
        const double t20 = solution_3[3][l];
        const double t21 = start[5][l];
        const double t22 = t21 - t20;
        const double t23 = 0.15915494309189535 * t22;
        const double t24 = t23 + 0.5;
        const double t25 = floor(t24);
        const double t26 = 6.283185307179586 * t25;
        const double t27 = t20 + t26;
        q[5][l] = t27;
        const double t30 = tl_sin(t16);
        const double t31 = 0.25 * t30;
        const double t32 = velocity[0][l];
        const double t33 = t31 * t32;
        const double t35 = tl_sin(t4);
        const double t36 = (-0.35) * t35;
        const double t38 = tl_sin(t18);
        const double t39 = tl_cos(t20);
        const double t40 = t38 * t39;
        const double t41 = tl_cos(t18);
        const double t42 = tl_sin(t20);
        const double t43 = t41 * t42;
        const double t44 = t40 + t43;
        const double t45 = 0.35 * t44;
        const double t46 = t41 * t39;
        const double t47 = t38 * t42;
        const double t48 = t46 - t47;
        const double t49 = 0.35 * t48;
        const double t50 = t49 * t36;
        const double t51 = tl_cos(t4);
        const double t52 = (-0.35) * t51;
        const double t53 = t52 * t45;
        const double t54 = t50 - t53;
        const double t279 = 1.0 / t54;
        const double t55 = t45 * t279;
        const double t56 = tl_cos(t16);
        const double t57 = 0.25 * t56;
        const double t58 = t57 * t32;
        const double t59 = velocity[1][l];
        const double t60 = 0.25 * t41;
        const double t61 = t59 * t60;
        const double t62 = t59 * t49;
        const double t63 = t61 + t62;
        const double t64 = t58 - t63;
        const double t65 = t55 * t64;
        const double t66 = t49 * t279;
        const double t67 = 0.25 * t38;
        const double t68 = t59 * t67;
        const double t69 = t59 * t45;
        const double t70 = t68 + t69;
        const double t71 = t70 - t33;
        const double t72 = t66 * t71;
        const double t73 = t65 + t72;
        const double t74 = t36 * t73;
        const double t75 = t33 + t74;
        const double t76 = -t75;
        v[0][l] = t76;
        const double t78 = t52 * t73;
        const double t79 = t58 + t78;
        v[1][l] = t79;
        const double t81 = -t73;
        v[2][l] = t81;
        v[3][l] = t32;
        v[4][l] = t59;
        const double t85 = t52 * t279;
        const double t86 = t85 * t71;
        const double t87 = t36 * t279;
        const double t88 = t87 * t64;
        const double t89 = t86 + t88;
        v[5][l] = t89;
        const double t91 = acceleration[0][l];
        const double t92 = t31 * t91;
        const double t93 = t32 * t32;
        const double t94 = t57 * t93;
        const double t95 = t92 + t94;
        const double t96 = t73 * t52;
        const double t97 = t73 * t96;
        const double t98 = t95 - t97;
        const double t99 = t73 * t36;
        const double t100 = t73 * t99;
        const double t101 = t57 * t91;
        const double t102 = t31 * t93;
        const double t103 = t101 - t102;
        const double t104 = t100 + t103;
        const double t105 = acceleration[1][l];
        const double t106 = t105 * t60;
        const double t107 = t59 * t68;
        const double t108 = t106 - t107;
        const double t109 = t105 * t49;
        const double t110 = t108 + t109;
        const double t111 = t59 + t89;
        const double t112 = t111 * t45;
        const double t113 = t111 * t112;
        const double t114 = t110 - t113;
        const double t115 = t104 - t114;
        const double t116 = t55 * t115;
        const double t117 = t105 * t67;
        const double t118 = t59 * t61;
        const double t119 = t117 + t118;
        const double t120 = t105 * t45;
        const double t121 = t119 + t120;
        const double t122 = t111 * t49;
        const double t123 = t111 * t122;
        const double t124 = t121 + t123;
        const double t125 = t124 - t98;
        const double t126 = t66 * t125;
        const double t127 = t116 + t126;
        const double t128 = t36 * t127;
        const double t129 = t98 + t128;
        const double t130 = -t129;
        a[0][l] = t130;
        const double t132 = t52 * t127;
        const double t133 = t104 + t132;
        a[1][l] = t133;
        const double t135 = -t127;
        a[2][l] = t135;
        a[3][l] = t91;
        a[4][l] = t105;
        const double t139 = t85 * t125;
        const double t140 = t87 * t115;
        const double t141 = t139 + t140;
        a[5][l] = t141;
        const double t144 = t35 * t133;
        const double t145 = t51 * t129;
        const double t146 = t144 - t145;
        const double t148 = (-9.81) * t35;
        const double t149 = t146 - t148;
        const double t150 = 0.55 * t149;
        const double t152 = (-0.04375) * t73;
        const double t153 = t73 * t152;
        const double t154 = t150 - t153;
        const double t155 = t51 * t154;
        const double t156 = t35 * t129;
        const double t157 = t51 * t133;
        const double t158 = t156 + t157;
        const double t159 = (-9.81) * t51;
        const double t160 = t158 - t159;
        const double t161 = 0.55 * t160;
        const double t162 = (-0.04375) * t127;
        const double t163 = t161 - t162;
        const double t164 = t35 * t163;
        const double t165 = t155 - t164;
        tree_force[0][l] = t165;
        const double t167 = t35 * t154;
        const double t168 = t51 * t163;
        const double t169 = t167 + t168;
        tree_force[1][l] = t169;
        const double t171 = (-0.04375) * t160;
        const double t173 = 0.01055625 * t127;
        const double t174 = t171 - t173;
        tree_force[2][l] = t174;
        const double t177 = 0.007662500000000001 * t91;
        const double t179 = (-0.44145000000000006) * t56;
        const double t180 = t177 - t179;
        const double t182 = 0.01 * t32;
        const double t185 = fabs(t32);
        const double t186 = 1e-12 < t185 ? 1.0 : 0.0;
        const double t187 = t32 * t186;
        const double t188 = (t187 > 0.0 ? 1.0 : 0.0) - (t187 < 0.0 ? 1.0 : 0.0);
        const double t189 = 0.05 * t188;
        const double t190 = t182 + t189;
        const double t191 = t180 + t190;
        const double t193 = 0.0005 * t91;
        const double t194 = t191 + t193;
        tree_force[3][l] = t194;
        const double t196 = 0.007662500000000001 * t105;
        const double t197 = (-0.44145000000000006) * t41;
        const double t198 = t196 - t197;
        const double t199 = t105 + t141;
        const double t200 = 0.01055625 * t199;
        const double t202 = 0.25 * t59;
        const double t203 = t59 * t202;
        const double t204 = t42 * t203;
        const double t205 = 0.25 * t105;
        const double t206 = t39 * t205;
        const double t207 = t204 + t206;
        const double t208 = (-9.81) * t48;
        const double t209 = t207 - t208;
        const double t210 = 0.04375 * t209;
        const double t211 = t200 + t210;
        const double t212 = t42 * t205;
        const double t213 = t39 * t203;
        const double t214 = t212 - t213;
        const double t215 = (-9.81) * t44;
        const double t216 = t214 - t215;
        const double t217 = 0.25 * t216;
        const double t218 = 0.04375 * t111;
        const double t219 = t111 * t218;
        const double t220 = t217 - t219;
        const double t221 = t42 * t220;
        const double t222 = 0.25 * t209;
        const double t223 = 0.04375 * t199;
        const double t224 = t222 + t223;
        const double t225 = t39 * t224;
        const double t226 = t221 + t225;
        const double t227 = 0.25 * t226;
        const double t228 = t211 + t227;
        const double t229 = t198 + t228;
        const double t230 = 0.01 * t59;
        const double t231 = fabs(t59);
        const double t232 = 1e-12 < t231 ? 1.0 : 0.0;
        const double t233 = t59 * t232;
        const double t234 = (t233 > 0.0 ? 1.0 : 0.0) - (t233 < 0.0 ? 1.0 : 0.0);
        const double t235 = 0.05 * t234;
        const double t236 = t230 + t235;
        const double t237 = t229 + t236;
        const double t238 = 0.0005 * t105;
        const double t239 = t237 + t238;
        tree_force[4][l] = t239;
        tree_force[5][l] = t211;
        const double t242 = t36 * t49;
        const double t243 = t242 - t53;
        const double t280 = 1.0 / t243;
        const double t244 = t52 * t280;
        const double t245 = t244 * t211;
        const double t246 = t49 * t280;
        const double t247 = t36 * t165;
        const double t248 = t174 + t247;
        const double t249 = t52 * t169;
        const double t250 = t248 - t249;
        const double t251 = t246 * t250;
        const double t252 = t245 - t251;
        const double t253 = t165 + t252;
        const double t254 = t31 * t253;
        const double t255 = t36 * t280;
        const double t256 = t255 * t211;
        const double t257 = t45 * t280;
        const double t258 = t257 * t250;
        const double t259 = t256 - t258;
        const double t260 = t169 + t259;
        const double t261 = t57 * t260;
        const double t262 = t254 - t261;
        const double t263 = t194 - t262;
        force[0][l] = t263;
        const double t265 = t60 + t49;
        const double t266 = t265 * t259;
        const double t267 = t67 + t45;
        const double t268 = t267 * t252;
        const double t269 = t266 - t268;
        const double t270 = t239 - t269;
        force[1][l] = t270;
        closure_force[0][l] = t253;
        closure_force[1][l] = t260;
        closure_force[2][l] = t252;
        closure_force[3][l] = t259;
        pivots[0][l] = t54;
        pivots[1][l] = t54;
        pivots[2][l] = t243;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double health_d = 1.0;
        const double health_p_0_0 = fabs(solution_3_pivots[0][l]) * 8.251716660111862;
        const double health_p_0_1 = fabs(pivots[0][l]) * 8.251716660111862;
        const double health_p_0_2 = fabs(pivots[2][l]) * 8.251716660111862;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_ps_1_0 = health_p_0_0 + health_p_0_1;
        const double health_p_2_0 = health_p_1_0 < health_p_0_2 ? health_p_1_0 : health_p_0_2;
        const double health_ps_2_0 = health_ps_1_0 + health_p_0_2;
        const double health_p = health_ps_2_0 == health_ps_2_0 ? (health_p_2_0 < 1e+300 ? health_p_2_0 : 1e+300) : 0.0;
        double health_in_0 = position[0][l] * position[0][l];
        double health_in_1 = position[1][l] * position[1][l];
        double health_in_2 = start[2][l] * start[2][l];
        double health_in_3 = start[3][l] * start[3][l];
        health_in_0 += start[4][l] * start[4][l];
        health_in_1 += start[5][l] * start[5][l];
        const double health_in = health_in_0 + health_in_1 + health_in_2 + health_in_3;
        double health_out_0 = q[0][l] * q[0][l];
        double health_out_1 = q[1][l] * q[1][l];
        double health_out_2 = q[2][l] * q[2][l];
        double health_out_3 = q[5][l] * q[5][l];
        health_out_0 += v[0][l] * v[0][l];
        health_out_1 += v[1][l] * v[1][l];
        health_out_2 += v[2][l] * v[2][l];
        health_out_3 += a[0][l] * a[0][l];
        health_out_0 += a[2][l] * a[2][l];
        health_out_1 += force[0][l] * force[0][l];
        health_out_2 += force[1][l] * force[1][l];
        const double health_out = health_out_0 + health_out_1 + health_out_2 + health_out_3;
        const double health_squares = health_in + health_out;
        health[0][l] = health_squares < 1e+200 ? health_d : -1e300;
        health[1][l] = health_p;
        health[2][l] = residual[0][l];
        health[3][l] = (double)iterations;
    }
}

static void TL_APART actuators_inverse_dynamics_rows(const double *restrict position, const double *restrict velocity, const double *restrict acceleration, const double *restrict start, double *restrict q, double *restrict v, double *restrict a, double *restrict tree_force, double *restrict force, double *restrict closure_force, double *restrict health)
{
    double lanes_position[2][TL_LANES];
    double lanes_velocity[2][TL_LANES];
    double lanes_acceleration[2][TL_LANES];
    double lanes_start[6][TL_LANES];
    double lanes_q[6][TL_LANES];
    double lanes_v[6][TL_LANES];
    double lanes_a[6][TL_LANES];
    double lanes_tree_force[6][TL_LANES];
    double lanes_force[2][TL_LANES];
    double lanes_closure_force[4][TL_LANES];
    double lanes_health[4][TL_LANES];
    tl_turn(start + 0, 6, lanes_start[0], lanes_start[1]);
    tl_turn(start + 2, 6, lanes_start[2], lanes_start[3]);
    tl_turn(start + 4, 6, lanes_start[4], lanes_start[5]);
    for (int l = 0; l < TL_LANES; ++l) {
        lanes_position[0][l] = position[l * 2 + 0];
        lanes_position[1][l] = position[l * 2 + 1];
        lanes_velocity[0][l] = velocity[l * 2 + 0];
        lanes_velocity[1][l] = velocity[l * 2 + 1];
        lanes_acceleration[0][l] = acceleration[l * 2 + 0];
        lanes_acceleration[1][l] = acceleration[l * 2 + 1];
    }
    actuators_inverse_dynamics_block((const double (*)[TL_LANES])lanes_position, (const double (*)[TL_LANES])lanes_velocity, (const double (*)[TL_LANES])lanes_acceleration, (const double (*)[TL_LANES])lanes_start, lanes_q, lanes_v, lanes_a, lanes_tree_force, lanes_force, lanes_closure_force, lanes_health);
    for (int l = 0; l < TL_LANES; ++l) {
        q[l * 6 + 0] = lanes_q[0][l];
        q[l * 6 + 1] = lanes_q[1][l];
        q[l * 6 + 2] = lanes_q[2][l];
        q[l * 6 + 3] = lanes_q[3][l];
        q[l * 6 + 4] = lanes_q[4][l];
        q[l * 6 + 5] = lanes_q[5][l];
        v[l * 6 + 0] = lanes_v[0][l];
        v[l * 6 + 1] = lanes_v[1][l];
        v[l * 6 + 2] = lanes_v[2][l];
        v[l * 6 + 3] = lanes_v[3][l];
        v[l * 6 + 4] = lanes_v[4][l];
        v[l * 6 + 5] = lanes_v[5][l];
        a[l * 6 + 0] = lanes_a[0][l];
        a[l * 6 + 1] = lanes_a[1][l];
        a[l * 6 + 2] = lanes_a[2][l];
        a[l * 6 + 3] = lanes_a[3][l];
        a[l * 6 + 4] = lanes_a[4][l];
        a[l * 6 + 5] = lanes_a[5][l];
        tree_force[l * 6 + 0] = lanes_tree_force[0][l];
        tree_force[l * 6 + 1] = lanes_tree_force[1][l];
        tree_force[l * 6 + 2] = lanes_tree_force[2][l];
        tree_force[l * 6 + 3] = lanes_tree_force[3][l];
        tree_force[l * 6 + 4] = lanes_tree_force[4][l];
        tree_force[l * 6 + 5] = lanes_tree_force[5][l];
        force[l * 2 + 0] = lanes_force[0][l];
        force[l * 2 + 1] = lanes_force[1][l];
        closure_force[l * 4 + 0] = lanes_closure_force[0][l];
        closure_force[l * 4 + 1] = lanes_closure_force[1][l];
        closure_force[l * 4 + 2] = lanes_closure_force[2][l];
        closure_force[l * 4 + 3] = lanes_closure_force[3][l];
        health[l * 4 + 0] = lanes_health[0][l];
        health[l * 4 + 1] = lanes_health[1][l];
        health[l * 4 + 2] = lanes_health[2][l];
        health[l * 4 + 3] = lanes_health[3][l];
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
        actuators_inverse_dynamics_rows(position + first * 2, velocity + first * 2, acceleration + first * 2, start + first * 6, q + first * 6, v + first * 6, a + first * 6, tree_force + first * 6, force + first * 2, closure_force + first * 4, health + first * 4);
    }
    if (rest) {
        const size_t first = n - rest;
        double tail_position[TL_LANES * 2];
        double tail_velocity[TL_LANES * 2];
        double tail_acceleration[TL_LANES * 2];
        double tail_start[TL_LANES * 6];
        double tail_q[TL_LANES * 6];
        double tail_v[TL_LANES * 6];
        double tail_a[TL_LANES * 6];
        double tail_tree_force[TL_LANES * 6];
        double tail_force[TL_LANES * 2];
        double tail_closure_force[TL_LANES * 4];
        double tail_health[TL_LANES * 4];
        for (size_t l = 0; l < TL_LANES; ++l) {
            const size_t s = first + (l < rest ? l : rest - 1);
            (void)s;
            for (size_t i = 0; i < 2; ++i) tail_position[l * 2 + i] = position[s * 2 + i];
            for (size_t i = 0; i < 2; ++i) tail_velocity[l * 2 + i] = velocity[s * 2 + i];
            for (size_t i = 0; i < 2; ++i) tail_acceleration[l * 2 + i] = acceleration[s * 2 + i];
            for (size_t i = 0; i < 6; ++i) tail_start[l * 6 + i] = start[s * 6 + i];
        }
        actuators_inverse_dynamics_rows(tail_position, tail_velocity, tail_acceleration, tail_start, tail_q, tail_v, tail_a, tail_tree_force, tail_force, tail_closure_force, tail_health);
        for (size_t l = 0; l < rest; ++l) {
            for (size_t i = 0; i < 6; ++i) q[(first + l) * 6 + i] = tail_q[l * 6 + i];
            for (size_t i = 0; i < 6; ++i) v[(first + l) * 6 + i] = tail_v[l * 6 + i];
            for (size_t i = 0; i < 6; ++i) a[(first + l) * 6 + i] = tail_a[l * 6 + i];
            for (size_t i = 0; i < 6; ++i) tree_force[(first + l) * 6 + i] = tail_tree_force[l * 6 + i];
            for (size_t i = 0; i < 2; ++i) force[(first + l) * 2 + i] = tail_force[l * 2 + i];
            for (size_t i = 0; i < 4; ++i) closure_force[(first + l) * 4 + i] = tail_closure_force[l * 4 + i];
            for (size_t i = 0; i < 4; ++i) health[(first + l) * 4 + i] = tail_health[l * 4 + i];
        }
    }
}
