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
    double solution_3_pivots[2];
    double pivots[6];
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
        const double t22 = (-0.1661898202196904) * t21;
        const double t23 = t12 + t22;
        const double t24 = t0 + t23;
        start_1[0] = t24;
        const double t26 = start[1];
        const double t28 = (-0.18967032440070525) * t11;
        const double t30 = 0.18967032440070508 * t21;
        const double t31 = t28 + t30;
        const double t32 = t26 + t31;
        start_1[1] = t32;
        const double t34 = start[2];
        const double t36 = (-0.10038399308279689) * t11;
        const double t38 = 0.7205093906845825 * t21;
        const double t39 = t36 + t38;
        const double t40 = t34 + t39;
        start_1[2] = t40;
        const double t42 = start[5];
        const double t44 = 0.7205093906845823 * t11;
        const double t46 = (-1.1003839930827963) * t21;
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
            const double t38 = t28 + t7;
            const double t62 = 1.0 / t4;
            const double t39 = t11 * t62;
            const double t40 = t36 + t14;
            const double t41 = t39 * t40;
            const double t42 = t38 + t41;
            const double t43 = t39 * t26;
            const double t44 = t32 + t31;
            const double t45 = 0.35 * t44;
            const double t46 = t43 - t45;
            const double t47 = t42 / t46;
            const double t48 = t26 * t47;
            const double t49 = t48 - t40;
            const double t50 = t49 * t62;
            const double t51 = t11 * t50;
            const double t52 = t51 - t7;
            dx_0 = t52;
            const double t54 = t14 + t49;
            const double t55 = -t54;
            dx_1 = t55;
            dx_2 = t50;
            const double t58 = -t47;
            dx_3 = t58;
            solution_3_pivots[0] = t4;
            solution_3_pivots[1] = t46;
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
        const double t30 = tl_sin(t4);
        const double t31 = (-0.35) * t30;
        const double t33 = tl_cos(t16);
        const double t34 = 0.25 * t33;
        const double t35 = velocity[0];
        const double t36 = t34 * t35;
        const double t37 = velocity[1];
        const double t38 = tl_cos(t18);
        const double t39 = 0.25 * t38;
        const double t40 = t37 * t39;
        const double t42 = tl_cos(t20);
        const double t43 = t38 * t42;
        const double t44 = tl_sin(t18);
        const double t45 = tl_sin(t20);
        const double t46 = t44 * t45;
        const double t47 = t43 - t46;
        const double t48 = 0.35 * t47;
        const double t49 = t37 * t48;
        const double t50 = t40 + t49;
        const double t51 = t36 - t50;
        const double t52 = 0.25 * t44;
        const double t53 = t37 * t52;
        const double t54 = t44 * t42;
        const double t55 = t38 * t45;
        const double t56 = t54 + t55;
        const double t57 = 0.35 * t56;
        const double t58 = t37 * t57;
        const double t59 = t53 + t58;
        const double t60 = tl_sin(t16);
        const double t61 = 0.25 * t60;
        const double t62 = t61 * t35;
        const double t63 = t59 - t62;
        const double t64 = tl_cos(t4);
        const double t65 = (-0.35) * t64;
        const double t268 = 1.0 / t65;
        const double t66 = t31 * t268;
        const double t67 = t66 * t51;
        const double t68 = t63 + t67;
        const double t69 = t66 * t48;
        const double t70 = t69 - t57;
        const double t269 = 1.0 / t70;
        const double t71 = t68 * t269;
        const double t72 = t48 * t71;
        const double t73 = t51 - t72;
        const double t74 = t73 * t268;
        const double t75 = t31 * t74;
        const double t76 = t75 - t62;
        v[0] = t76;
        const double t78 = t36 - t73;
        v[1] = t78;
        v[2] = t74;
        v[3] = t35;
        v[4] = t37;
        v[5] = t71;
        const double t84 = t74 * t31;
        const double t85 = t74 * t84;
        const double t86 = acceleration[0];
        const double t87 = t34 * t86;
        const double t88 = t35 * t35;
        const double t89 = t61 * t88;
        const double t90 = t87 - t89;
        const double t91 = t85 + t90;
        const double t92 = acceleration[1];
        const double t93 = t92 * t39;
        const double t94 = t37 * t53;
        const double t95 = t93 - t94;
        const double t96 = t92 * t48;
        const double t97 = t95 + t96;
        const double t98 = t37 + t71;
        const double t99 = t98 * t57;
        const double t100 = t98 * t99;
        const double t101 = t97 - t100;
        const double t102 = t91 - t101;
        const double t103 = t92 * t52;
        const double t104 = t37 * t40;
        const double t105 = t103 + t104;
        const double t106 = t92 * t57;
        const double t107 = t105 + t106;
        const double t108 = t98 * t48;
        const double t109 = t98 * t108;
        const double t110 = t107 + t109;
        const double t111 = t61 * t86;
        const double t112 = t34 * t88;
        const double t113 = t111 + t112;
        const double t114 = t74 * t73;
        const double t115 = t113 - t114;
        const double t116 = t110 - t115;
        const double t117 = t66 * t102;
        const double t118 = t116 + t117;
        const double t119 = t118 * t269;
        const double t120 = t48 * t119;
        const double t121 = t102 - t120;
        const double t122 = t121 * t268;
        const double t123 = t31 * t122;
        const double t124 = t123 - t115;
        a[0] = t124;
        const double t126 = t91 - t121;
        a[1] = t126;
        a[2] = t122;
        a[3] = t86;
        a[4] = t92;
        a[5] = t119;
        const double t133 = t64 * t124;
        const double t134 = t30 * t126;
        const double t135 = t133 + t134;
        const double t137 = (-9.81) * t30;
        const double t138 = t135 - t137;
        const double t139 = 0.55 * t138;
        const double t141 = (-0.04375) * t74;
        const double t142 = t74 * t141;
        const double t143 = t139 - t142;
        const double t144 = t64 * t143;
        const double t145 = t64 * t126;
        const double t146 = t30 * t124;
        const double t147 = t145 - t146;
        const double t148 = (-9.81) * t64;
        const double t149 = t147 - t148;
        const double t150 = 0.55 * t149;
        const double t151 = (-0.04375) * t122;
        const double t152 = t150 + t151;
        const double t153 = t30 * t152;
        const double t154 = t144 - t153;
        tree_force[0] = t154;
        const double t156 = t30 * t143;
        const double t157 = t64 * t152;
        const double t158 = t156 + t157;
        tree_force[1] = t158;
        const double t161 = 0.01055625 * t122;
        const double t162 = (-0.04375) * t149;
        const double t163 = t161 + t162;
        tree_force[2] = t163;
        const double t166 = 0.007662500000000001 * t86;
        const double t168 = (-0.44145000000000006) * t33;
        const double t169 = t166 - t168;
        const double t171 = 0.01 * t35;
        const double t174 = fabs(t35);
        const double t175 = 1e-12 < t174 ? 1.0 : 0.0;
        const double t176 = t35 * t175;
        const double t177 = (t176 > 0.0 ? 1.0 : 0.0) - (t176 < 0.0 ? 1.0 : 0.0);
        const double t178 = 0.05 * t177;
        const double t179 = t171 + t178;
        const double t180 = t169 + t179;
        const double t182 = 0.0005 * t86;
        const double t183 = t180 + t182;
        tree_force[3] = t183;
        const double t185 = 0.007662500000000001 * t92;
        const double t186 = (-0.44145000000000006) * t38;
        const double t187 = t185 - t186;
        const double t188 = t92 + t119;
        const double t189 = 0.01055625 * t188;
        const double t191 = 0.25 * t37;
        const double t192 = t37 * t191;
        const double t193 = t45 * t192;
        const double t194 = 0.25 * t92;
        const double t195 = t42 * t194;
        const double t196 = t193 + t195;
        const double t197 = (-9.81) * t47;
        const double t198 = t196 - t197;
        const double t199 = 0.04375 * t198;
        const double t200 = t189 + t199;
        const double t201 = t45 * t194;
        const double t202 = t42 * t192;
        const double t203 = t201 - t202;
        const double t204 = (-9.81) * t56;
        const double t205 = t203 - t204;
        const double t206 = 0.25 * t205;
        const double t207 = 0.04375 * t98;
        const double t208 = t98 * t207;
        const double t209 = t206 - t208;
        const double t210 = t45 * t209;
        const double t211 = 0.25 * t198;
        const double t212 = 0.04375 * t188;
        const double t213 = t211 + t212;
        const double t214 = t42 * t213;
        const double t215 = t210 + t214;
        const double t216 = 0.25 * t215;
        const double t217 = t200 + t216;
        const double t218 = t187 + t217;
        const double t219 = 0.01 * t37;
        const double t220 = fabs(t37);
        const double t221 = 1e-12 < t220 ? 1.0 : 0.0;
        const double t222 = t37 * t221;
        const double t223 = (t222 > 0.0 ? 1.0 : 0.0) - (t222 < 0.0 ? 1.0 : 0.0);
        const double t224 = 0.05 * t223;
        const double t225 = t219 + t224;
        const double t226 = t218 + t225;
        const double t227 = 0.0005 * t92;
        const double t228 = t226 + t227;
        tree_force[4] = t228;
        tree_force[5] = t200;
        const double t231 = t48 * t268;
        const double t232 = t31 * t154;
        const double t233 = t163 + t232;
        const double t234 = t65 * t158;
        const double t235 = t233 - t234;
        const double t236 = t231 * t235;
        const double t237 = t200 - t236;
        const double t238 = t231 * t31;
        const double t239 = t238 - t57;
        const double t240 = t237 / t239;
        const double t241 = t154 + t240;
        const double t242 = t61 * t241;
        const double t243 = t31 * t240;
        const double t244 = t235 + t243;
        const double t245 = t244 * t268;
        const double t246 = t158 + t245;
        const double t247 = t34 * t246;
        const double t248 = t242 - t247;
        const double t249 = t183 - t248;
        force[0] = t249;
        const double t251 = t39 + t48;
        const double t252 = t251 * t245;
        const double t253 = t52 + t57;
        const double t254 = t253 * t240;
        const double t255 = t252 - t254;
        const double t256 = t228 - t255;
        force[1] = t256;
        closure_force[0] = t241;
        closure_force[1] = t246;
        closure_force[2] = t240;
        closure_force[3] = t245;
        pivots[0] = t65;
        pivots[1] = t70;
        pivots[2] = t65;
        pivots[3] = t70;
        pivots[4] = t65;
        pivots[5] = t239;
    }
    {
        const double health_d = 1.0;
        const double health_p_0_0 = fabs(solution_3_pivots[0]) * 3.7197278789055352;
        const double health_p_0_1 = fabs(solution_3_pivots[1]) * 2.204550714480019;
        const double health_p_0_2 = fabs(pivots[0]) * 3.7197278789055352;
        const double health_p_0_3 = fabs(pivots[1]) * 2.204550714480019;
        const double health_p_0_4 = fabs(pivots[5]) * 2.204550714480019;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_ps_1_0 = health_p_0_0 + health_p_0_1;
        const double health_p_1_1 = health_p_0_2 < health_p_0_3 ? health_p_0_2 : health_p_0_3;
        const double health_ps_1_1 = health_p_0_2 + health_p_0_3;
        const double health_p_2_0 = health_p_1_0 < health_p_1_1 ? health_p_1_0 : health_p_1_1;
        const double health_ps_2_0 = health_ps_1_0 + health_ps_1_1;
        const double health_p_3_0 = health_p_2_0 < health_p_0_4 ? health_p_2_0 : health_p_0_4;
        const double health_ps_3_0 = health_ps_2_0 + health_p_0_4;
        const double health_p = health_ps_3_0 == health_ps_3_0 ? (health_p_3_0 < 1e+300 ? health_p_3_0 : 1e+300) : 0.0;
        double health_in_0 = position[0] * position[0];
        double health_in_1 = position[1] * position[1];
        const double health_in = tl_squares(start + 2, 4) + health_in_0 + health_in_1;
        double health_out_0 = q[0] * q[0];
        double health_out_1 = q[1] * q[1];
        double health_out_2 = q[2] * q[2];
        double health_out_3 = q[5] * q[5];
        health_out_0 += v[0] * v[0];
        health_out_1 += v[1] * v[1];
        health_out_2 += force[0] * force[0];
        health_out_3 += force[1] * force[1];
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
    double solution_3_pivots[2][TL_LANES];
    double pivots[6][TL_LANES];
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
        const double t22 = (-0.1661898202196904) * t21;
        const double t23 = t12 + t22;
        const double t24 = t0 + t23;
        start_1[0][l] = t24;
        const double t26 = start[1][l];
        const double t28 = (-0.18967032440070525) * t11;
        const double t30 = 0.18967032440070508 * t21;
        const double t31 = t28 + t30;
        const double t32 = t26 + t31;
        start_1[1][l] = t32;
        const double t34 = start[2][l];
        const double t36 = (-0.10038399308279689) * t11;
        const double t38 = 0.7205093906845825 * t21;
        const double t39 = t36 + t38;
        const double t40 = t34 + t39;
        start_1[2][l] = t40;
        const double t42 = start[5][l];
        const double t44 = 0.7205093906845823 * t11;
        const double t46 = (-1.1003839930827963) * t21;
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
            const double t38 = t28 + t7;
            const double t62 = 1.0 / t4;
            const double t39 = t11 * t62;
            const double t40 = t36 + t14;
            const double t41 = t39 * t40;
            const double t42 = t38 + t41;
            const double t43 = t39 * t26;
            const double t44 = t32 + t31;
            const double t45 = 0.35 * t44;
            const double t46 = t43 - t45;
            const double t47 = t42 / t46;
            const double t48 = t26 * t47;
            const double t49 = t48 - t40;
            const double t50 = t49 * t62;
            const double t51 = t11 * t50;
            const double t52 = t51 - t7;
            dx_0 = t52;
            const double t54 = t14 + t49;
            const double t55 = -t54;
            dx_1 = t55;
            dx_2 = t50;
            const double t58 = -t47;
            dx_3 = t58;
            solution_3_pivots[0][l] = t4;
            solution_3_pivots[1][l] = t46;
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
        const double t30 = tl_sin(t4);
        const double t31 = (-0.35) * t30;
        const double t33 = tl_cos(t16);
        const double t34 = 0.25 * t33;
        const double t35 = velocity[0][l];
        const double t36 = t34 * t35;
        const double t37 = velocity[1][l];
        const double t38 = tl_cos(t18);
        const double t39 = 0.25 * t38;
        const double t40 = t37 * t39;
        const double t42 = tl_cos(t20);
        const double t43 = t38 * t42;
        const double t44 = tl_sin(t18);
        const double t45 = tl_sin(t20);
        const double t46 = t44 * t45;
        const double t47 = t43 - t46;
        const double t48 = 0.35 * t47;
        const double t49 = t37 * t48;
        const double t50 = t40 + t49;
        const double t51 = t36 - t50;
        const double t52 = 0.25 * t44;
        const double t53 = t37 * t52;
        const double t54 = t44 * t42;
        const double t55 = t38 * t45;
        const double t56 = t54 + t55;
        const double t57 = 0.35 * t56;
        const double t58 = t37 * t57;
        const double t59 = t53 + t58;
        const double t60 = tl_sin(t16);
        const double t61 = 0.25 * t60;
        const double t62 = t61 * t35;
        const double t63 = t59 - t62;
        const double t64 = tl_cos(t4);
        const double t65 = (-0.35) * t64;
        const double t268 = 1.0 / t65;
        const double t66 = t31 * t268;
        const double t67 = t66 * t51;
        const double t68 = t63 + t67;
        const double t69 = t66 * t48;
        const double t70 = t69 - t57;
        const double t269 = 1.0 / t70;
        const double t71 = t68 * t269;
        const double t72 = t48 * t71;
        const double t73 = t51 - t72;
        const double t74 = t73 * t268;
        const double t75 = t31 * t74;
        const double t76 = t75 - t62;
        v[0][l] = t76;
        const double t78 = t36 - t73;
        v[1][l] = t78;
        v[2][l] = t74;
        v[3][l] = t35;
        v[4][l] = t37;
        v[5][l] = t71;
        const double t84 = t74 * t31;
        const double t85 = t74 * t84;
        const double t86 = acceleration[0][l];
        const double t87 = t34 * t86;
        const double t88 = t35 * t35;
        const double t89 = t61 * t88;
        const double t90 = t87 - t89;
        const double t91 = t85 + t90;
        const double t92 = acceleration[1][l];
        const double t93 = t92 * t39;
        const double t94 = t37 * t53;
        const double t95 = t93 - t94;
        const double t96 = t92 * t48;
        const double t97 = t95 + t96;
        const double t98 = t37 + t71;
        const double t99 = t98 * t57;
        const double t100 = t98 * t99;
        const double t101 = t97 - t100;
        const double t102 = t91 - t101;
        const double t103 = t92 * t52;
        const double t104 = t37 * t40;
        const double t105 = t103 + t104;
        const double t106 = t92 * t57;
        const double t107 = t105 + t106;
        const double t108 = t98 * t48;
        const double t109 = t98 * t108;
        const double t110 = t107 + t109;
        const double t111 = t61 * t86;
        const double t112 = t34 * t88;
        const double t113 = t111 + t112;
        const double t114 = t74 * t73;
        const double t115 = t113 - t114;
        const double t116 = t110 - t115;
        const double t117 = t66 * t102;
        const double t118 = t116 + t117;
        const double t119 = t118 * t269;
        const double t120 = t48 * t119;
        const double t121 = t102 - t120;
        const double t122 = t121 * t268;
        const double t123 = t31 * t122;
        const double t124 = t123 - t115;
        a[0][l] = t124;
        const double t126 = t91 - t121;
        a[1][l] = t126;
        a[2][l] = t122;
        a[3][l] = t86;
        a[4][l] = t92;
        a[5][l] = t119;
        const double t133 = t64 * t124;
        const double t134 = t30 * t126;
        const double t135 = t133 + t134;
        const double t137 = (-9.81) * t30;
        const double t138 = t135 - t137;
        const double t139 = 0.55 * t138;
        const double t141 = (-0.04375) * t74;
        const double t142 = t74 * t141;
        const double t143 = t139 - t142;
        const double t144 = t64 * t143;
        const double t145 = t64 * t126;
        const double t146 = t30 * t124;
        const double t147 = t145 - t146;
        const double t148 = (-9.81) * t64;
        const double t149 = t147 - t148;
        const double t150 = 0.55 * t149;
        const double t151 = (-0.04375) * t122;
        const double t152 = t150 + t151;
        const double t153 = t30 * t152;
        const double t154 = t144 - t153;
        tree_force[0][l] = t154;
        const double t156 = t30 * t143;
        const double t157 = t64 * t152;
        const double t158 = t156 + t157;
        tree_force[1][l] = t158;
        const double t161 = 0.01055625 * t122;
        const double t162 = (-0.04375) * t149;
        const double t163 = t161 + t162;
        tree_force[2][l] = t163;
        const double t166 = 0.007662500000000001 * t86;
        const double t168 = (-0.44145000000000006) * t33;
        const double t169 = t166 - t168;
        const double t171 = 0.01 * t35;
        const double t174 = fabs(t35);
        const double t175 = 1e-12 < t174 ? 1.0 : 0.0;
        const double t176 = t35 * t175;
        const double t177 = (t176 > 0.0 ? 1.0 : 0.0) - (t176 < 0.0 ? 1.0 : 0.0);
        const double t178 = 0.05 * t177;
        const double t179 = t171 + t178;
        const double t180 = t169 + t179;
        const double t182 = 0.0005 * t86;
        const double t183 = t180 + t182;
        tree_force[3][l] = t183;
        const double t185 = 0.007662500000000001 * t92;
        const double t186 = (-0.44145000000000006) * t38;
        const double t187 = t185 - t186;
        const double t188 = t92 + t119;
        const double t189 = 0.01055625 * t188;
        const double t191 = 0.25 * t37;
        const double t192 = t37 * t191;
        const double t193 = t45 * t192;
        const double t194 = 0.25 * t92;
        const double t195 = t42 * t194;
        const double t196 = t193 + t195;
        const double t197 = (-9.81) * t47;
        const double t198 = t196 - t197;
        const double t199 = 0.04375 * t198;
        const double t200 = t189 + t199;
        const double t201 = t45 * t194;
        const double t202 = t42 * t192;
        const double t203 = t201 - t202;
        const double t204 = (-9.81) * t56;
        const double t205 = t203 - t204;
        const double t206 = 0.25 * t205;
        const double t207 = 0.04375 * t98;
        const double t208 = t98 * t207;
        const double t209 = t206 - t208;
        const double t210 = t45 * t209;
        const double t211 = 0.25 * t198;
        const double t212 = 0.04375 * t188;
        const double t213 = t211 + t212;
        const double t214 = t42 * t213;
        const double t215 = t210 + t214;
        const double t216 = 0.25 * t215;
        const double t217 = t200 + t216;
        const double t218 = t187 + t217;
        const double t219 = 0.01 * t37;
        const double t220 = fabs(t37);
        const double t221 = 1e-12 < t220 ? 1.0 : 0.0;
        const double t222 = t37 * t221;
        const double t223 = (t222 > 0.0 ? 1.0 : 0.0) - (t222 < 0.0 ? 1.0 : 0.0);
        const double t224 = 0.05 * t223;
        const double t225 = t219 + t224;
        const double t226 = t218 + t225;
        const double t227 = 0.0005 * t92;
        const double t228 = t226 + t227;
        tree_force[4][l] = t228;
        tree_force[5][l] = t200;
        const double t231 = t48 * t268;
        const double t232 = t31 * t154;
        const double t233 = t163 + t232;
        const double t234 = t65 * t158;
        const double t235 = t233 - t234;
        const double t236 = t231 * t235;
        const double t237 = t200 - t236;
        const double t238 = t231 * t31;
        const double t239 = t238 - t57;
        const double t240 = t237 / t239;
        const double t241 = t154 + t240;
        const double t242 = t61 * t241;
        const double t243 = t31 * t240;
        const double t244 = t235 + t243;
        const double t245 = t244 * t268;
        const double t246 = t158 + t245;
        const double t247 = t34 * t246;
        const double t248 = t242 - t247;
        const double t249 = t183 - t248;
        force[0][l] = t249;
        const double t251 = t39 + t48;
        const double t252 = t251 * t245;
        const double t253 = t52 + t57;
        const double t254 = t253 * t240;
        const double t255 = t252 - t254;
        const double t256 = t228 - t255;
        force[1][l] = t256;
        closure_force[0][l] = t241;
        closure_force[1][l] = t246;
        closure_force[2][l] = t240;
        closure_force[3][l] = t245;
        pivots[0][l] = t65;
        pivots[1][l] = t70;
        pivots[2][l] = t65;
        pivots[3][l] = t70;
        pivots[4][l] = t65;
        pivots[5][l] = t239;
    }
    for (int l = 0; l < TL_LANES; ++l) {
        const double health_d = 1.0;
        const double health_p_0_0 = fabs(solution_3_pivots[0][l]) * 3.7197278789055352;
        const double health_p_0_1 = fabs(solution_3_pivots[1][l]) * 2.204550714480019;
        const double health_p_0_2 = fabs(pivots[0][l]) * 3.7197278789055352;
        const double health_p_0_3 = fabs(pivots[1][l]) * 2.204550714480019;
        const double health_p_0_4 = fabs(pivots[5][l]) * 2.204550714480019;
        const double health_p_1_0 = health_p_0_0 < health_p_0_1 ? health_p_0_0 : health_p_0_1;
        const double health_ps_1_0 = health_p_0_0 + health_p_0_1;
        const double health_p_1_1 = health_p_0_2 < health_p_0_3 ? health_p_0_2 : health_p_0_3;
        const double health_ps_1_1 = health_p_0_2 + health_p_0_3;
        const double health_p_2_0 = health_p_1_0 < health_p_1_1 ? health_p_1_0 : health_p_1_1;
        const double health_ps_2_0 = health_ps_1_0 + health_ps_1_1;
        const double health_p_3_0 = health_p_2_0 < health_p_0_4 ? health_p_2_0 : health_p_0_4;
        const double health_ps_3_0 = health_ps_2_0 + health_p_0_4;
        const double health_p = health_ps_3_0 == health_ps_3_0 ? (health_p_3_0 < 1e+300 ? health_p_3_0 : 1e+300) : 0.0;
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
        health_out_2 += force[0][l] * force[0][l];
        health_out_3 += force[1][l] * force[1][l];
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
