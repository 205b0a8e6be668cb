/* Poses of a grid, judged one a thread: `workspace_map.py` in C. The loops are closed at once, or followed from the
   reference pose where Newton's method closes some; then limits, distances from singularities, and rods' clearances.

   In front of this stand sizes: TL_AXES positions of the map, TL_POSITIONS of the entry, TL_TURN the place of a quaternion
   among them (-1: none), TL_Q coordinates, TL_FORMS closed forms, TL_LEFT equations solved by Newton's method, TL_LOOPS
   residuals, TL_ROWS loop equations that count, TL_V velocities that move, TL_OWN independent ones, TL_DRIVEN actuators,
   TL_LEADING of them, TL_STOPS stops, TL_RODS rods, TL_PAIRS pairs of them that are compared, TL_STAGES stages on the way
   from the reference pose; and `tl_closed`, which calls the machine's own routine. Matrices lie column by column.
   Sources: Golub and Van Loan 2013, Matrix Computations, 5.1, 8.6 (one-sided Jacobi); Ericson, Real-Time Collision
   Detection, 5.1.9. */
#define TL_FREE (TL_V - TL_ROWS)
#define TL_LARGER(a, b) ((a) > (b) ? (a) : (b))

enum { TL_USABLE, TL_OUT_OF_REACH, TL_JOINT_LIMIT, TL_SINGULAR, TL_INTERFERENCE };
/* Numbers of the limits, in order. */
enum { TL_LEAST, TL_CLEARANCE, TL_RANGES, TL_PARALLEL_SIDE, TL_AT_THE_STOP, TL_CONVERGED };

/* What the machine's routine says of a pose. */
typedef struct {
    double q[TL_Q + 1], forms[TL_FORMS + 1], left[TL_LEFT + 1], phi[TL_LOOPS + 1], K[TL_ROWS * TL_V + 1];
    double limited[TL_STOPS + 1], ends[6 * TL_RODS + 1];
} tl_pose;

static void tl_closed(const double *position, const double *start, const double *held, tl_pose *pose);

/* The entry's positions at values of the map's axes: a rotation vector turns the reference orientation. */
static void tl_positions(const double *values, const double *quaternion, double *position)
{
    const int place = TL_TURN < 0 ? TL_AXES : TL_TURN;
    for (int i = 0; i < place; ++i) position[i] = values[i];
    if (TL_TURN >= 0) {
        const double *r = values + place;
        double *out = position + place, square = 0.0;
        const double half = 0.5 * sqrt(r[0] * r[0] + r[1] * r[1] + r[2] * r[2]);
        const double w = cos(half), share = half > 0.0 ? 0.5 * sin(half) / half : 0.5;
        const double x = share * r[0], y = share * r[1], z = share * r[2];
        const double *b = quaternion;
        out[0] = w * b[0] - (x * b[1] + y * b[2] + z * b[3]);
        out[1] = w * b[1] + b[0] * x + (y * b[3] - z * b[2]);
        out[2] = w * b[2] + b[0] * y + (z * b[1] - x * b[3]);
        out[3] = w * b[3] + b[0] * z + (x * b[2] - y * b[1]);
        for (int i = 0; i < 4; ++i) square += out[i] * out[i];
        for (int i = 0; i < 4; ++i) out[i] /= sqrt(square);
        for (int i = place + 3; i < TL_AXES; ++i) position[i + 1] = values[i];
    }
}

/* Whether all loops close. */
static int tl_reached(const tl_pose *pose, double converged)
{
    for (int i = 0; i < TL_FORMS; ++i) if (!(pose->forms[i] >= 0.0)) return 0;
    for (int i = 0; i < TL_LEFT; ++i) if (!(fabs(pose->left[i]) < converged)) return 0;
    return 1;
}

/* Length of a column from a row on. */
static double tl_length(const double *column, int from, int to)
{
    double square = 0.0;
    for (int i = from; i < to; ++i) square += column[i] * column[i];
    return sqrt(square);
}

/* The orthonormal basis N (V x FREE) of all motions K N = 0, and R (ROWS x ROWS) with K^T = Q R, from K^T (V x ROWS). */
static void tl_motions(double *T, double *R, double *N)
{
    double factor[TL_ROWS + 1];
    for (int k = 0; k < TL_ROWS; ++k) {
        double *v = T + k * TL_V;
        const double length = tl_length(v, k, TL_V), b = v[k] > 0.0 ? -length : length, a = v[k];
        for (int i = 0; i < TL_ROWS; ++i) R[k * TL_ROWS + i] = i < k ? v[i] : i == k ? b : 0.0;
        factor[k] = length > 0.0 ? (b - a) / b : 0.0;
        for (int i = k + 1; i < TL_V; ++i) v[i] = length > 0.0 ? v[i] / (a - b) : 0.0;
        v[k] = 1.0;
        for (int j = k + 1; j < TL_ROWS; ++j) {
            double *u = T + j * TL_V, along = 0.0;
            for (int i = k; i < TL_V; ++i) along += v[i] * u[i];
            for (int i = k; i < TL_V; ++i) u[i] -= factor[k] * along * v[i];
        }
    }
    for (int j = 0; j < TL_FREE; ++j) {
        double *u = N + j * TL_V;
        for (int i = 0; i < TL_V; ++i) u[i] = i == TL_ROWS + j ? 1.0 : 0.0;
        for (int k = TL_ROWS - 1; k >= 0; --k) {
            const double *v = T + k * TL_V;
            double along = 0.0;
            for (int i = k; i < TL_V; ++i) along += v[i] * u[i];
            for (int i = k; i < TL_V; ++i) u[i] -= factor[k] * along * v[i];
        }
    }
}

/* The least and the largest singular value of a matrix, whose columns are turned until they stand square on each other. */
static void tl_singular(double *A, int rows, int columns, double *least, double *most)
{
    for (int sweep = 0, turned = 1; sweep < 40 && turned; ++sweep) {
        turned = 0;
        for (int p = 0; p < columns; ++p)
            for (int q = p + 1; q < columns; ++q) {
                double *a = A + p * rows, *b = A + q * rows, aa = 0.0, bb = 0.0, ab = 0.0;
                for (int i = 0; i < rows; ++i) aa += a[i] * a[i], bb += b[i] * b[i], ab += a[i] * b[i];
                if (fabs(ab) <= 1e-15 * sqrt(aa * bb)) continue;
                turned = 1;
                const double zeta = (bb - aa) / (2.0 * ab);
                const double t = (zeta > 0.0 ? 1.0 : -1.0) / (fabs(zeta) + sqrt(1.0 + zeta * zeta));
                const double c = 1.0 / sqrt(1.0 + t * t), s = c * t;
                for (int i = 0; i < rows; ++i) {
                    const double kept = a[i];
                    a[i] = c * kept - s * b[i], b[i] = s * kept + c * b[i];
                }
            }
    }
    *least = HUGE_VAL, *most = 0.0;
    for (int k = 0; k < columns; ++k) {
        const double length = tl_length(A + k * rows, 0, rows);
        *least = length < *least ? length : *least, *most = length > *most ? length : *most;
    }
}

/* Least stretch of motions N by rows (n x V): how far motions of unit length move what the rows pick. The `passive`
   least stretches, those of motions that the rows never see, are left out. */
static double tl_stretch(const double *rows, int n, int passive, const double *N, double *room)
{
    double least, most;
    if (TL_FREE == passive) return 1.0;
    if (n < TL_FREE - passive) return 0.0;
    for (int j = 0; j < TL_FREE; ++j)
        for (int i = 0; i < n; ++i) {
            double sum = 0.0;
            for (int k = 0; k < TL_V; ++k) sum += rows[k * n + i] * N[j * TL_V + k];
            room[j * n + i] = sum;
        }
    tl_singular(room, n, TL_FREE, &least, &most);
    for (int left_out = 0; left_out < passive; ++left_out) {
        int smallest = 0;
        for (int j = 1; j < TL_FREE; ++j)
            if (tl_length(room + j * n, 0, n) < tl_length(room + smallest * n, 0, n)) smallest = j;
        for (int i = 0; i < n; ++i) room[smallest * n + i] = HUGE_VAL;
    }
    for (int j = 0; j < TL_FREE; ++j) {
        const double length = tl_length(room + j * n, 0, n);
        least = j == 0 || length < least ? length : least;
    }
    return least;
}

/* Sign of the determinant of the loops above further rows (n x V); zero where they make no square. */
static double tl_side(const double *K, const double *rows, int n, double *room)
{
    double sign = 1.0;
    if (TL_ROWS + n != TL_V) return 0.0;
    for (int j = 0; j < TL_V; ++j) {
        for (int i = 0; i < TL_ROWS; ++i) room[j * TL_V + i] = K[j * TL_ROWS + i];
        for (int i = 0; i < n; ++i) room[j * TL_V + TL_ROWS + i] = rows[j * n + i];
    }
    for (int k = 0; k < TL_V; ++k) {
        int best = k;
        for (int i = k + 1; i < TL_V; ++i) if (fabs(room[k * TL_V + i]) > fabs(room[k * TL_V + best])) best = i;
        const double pivot = room[k * TL_V + best];
        if (pivot == 0.0 || pivot != pivot) return 0.0;
        sign = (best == k) == (pivot > 0.0) ? sign : -sign;
        for (int j = k; j < TL_V; ++j) {
            double *u = room + j * TL_V;
            const double kept = u[k];
            u[k] = u[best], u[best] = kept;
        }
        for (int j = k + 1; j < TL_V; ++j) {
            double *u = room + j * TL_V;
            for (int i = k + 1; i < TL_V; ++i) u[i] -= room[k * TL_V + i] / pivot * u[k];
        }
    }
    return sign;
}

static double tl_clipped(double x) { return x < 0.0 ? 0.0 : x > 1.0 ? 1.0 : x; }

/* Shortest distance between segments ab and cd: a, b, c, d (12,) of two rods. */
static double tl_apart(const double *first, const double *second)
{
    double uu = 0.0, ww = 0.0, uw = 0.0, ur = 0.0, wr = 0.0, square = 0.0;
    const double tiny = 2.2250738585072014e-308;
    for (int i = 0; i < 3; ++i) {
        const double u = first[3 + i] - first[i], w = second[3 + i] - second[i], r = first[i] - second[i];
        uu += u * u, ww += w * w, uw += u * w, ur += u * r, wr += w * r;
    }
    const double determinant = uu * ww - uw * uw;
    const double open = determinant > 1e-12 * uu * ww ? (uw * wr - ww * ur) / determinant : 0.0;
    const double t = tl_clipped((uw * tl_clipped(open) + wr) / (ww > tiny ? ww : tiny));
    const double s = tl_clipped((uw * t - ur) / (uu > tiny ? uu : tiny));
    for (int i = 0; i < 3; ++i) {
        const double u = first[3 + i] - first[i], w = second[3 + i] - second[i], r = first[i] - second[i];
        square += (r + s * u - t * w) * (r + s * u - t * w);
    }
    return sqrt(square);
}

/* The verdict so far, and the least margin of those that are looked at for it. */
typedef struct { double worst; int reason, blame; } tl_verdict;

/* One more margin of element `blame`; the worst one of a kind is to blame, the first of equal ones. */
static void tl_look(tl_verdict *verdict, double margin, int reason, int blame)
{
    if (!(margin < 0.0) || (verdict->reason != TL_USABLE && verdict->reason != reason)) return;
    if (verdict->reason == reason && !(margin < verdict->worst)) return;
    verdict->reason = reason, verdict->blame = blame, verdict->worst = margin;
}

/* With `is_near` each pose is reached from a row of `starts`, and from the reference pose without. */
TL_KERNEL tl_workspace(size_t n, size_t from, size_t to, size_t is_near, const double *restrict grid,
    const double *restrict starts, const double *restrict reference, const double *restrict quaternion,
    const double *restrict start, const double *restrict held,
    const double *restrict own, const double *restrict driven, const double *restrict leading,
    const double *restrict lower, const double *restrict upper, const double *restrict pairs,
    const double *restrict limits, double *restrict figures, double *restrict coordinates)
{
    TL_PART(s, from, to) {
        double values[TL_AXES], on_the_way[TL_AXES], position[TL_POSITIONS], near[TL_Q + 1], current[TL_Q + 1];
        double room[TL_V * TL_LARGER(TL_V, TL_DRIVEN)], T[TL_V * TL_ROWS + 1], R[TL_ROWS * TL_ROWS + 1];
        double N[TL_V * TL_FREE + 1], measures[3], least, most, apart = HUGE_VAL, side = 0.0, residual = 0.0;
        tl_verdict verdict = {0.0, TL_USABLE, -1};
        tl_pose pose;
        int first = 0, finite = 1;
        for (int i = 0; i < TL_AXES; ++i) values[i] = grid[(size_t)i * n + s];
        for (int i = 0; i < TL_Q; ++i) current[i] = is_near ? starts[(size_t)i * n + s] : start[i];
        /* a stage that is too long is gone in as many shorter ones */
        for (int stage = 0, parts = 1; TL_LEFT > 0 && !is_near && stage < TL_STAGES;) {
            int part = 0;
            for (; part < parts; ++part) {
                const double share = (stage + (part + 1.0) / parts) / TL_STAGES;
                for (int i = 0; i < TL_AXES; ++i) on_the_way[i] = reference[i] + share * (values[i] - reference[i]);
                tl_positions(on_the_way, quaternion, position);
                for (int i = 0; i < TL_Q; ++i) near[i] = current[i];
                tl_closed(position, near, held, &pose);
                if (!tl_reached(&pose, limits[TL_CONVERGED])) break;
                for (int i = 0; i < TL_Q; ++i) current[i] = pose.q[i];
            }
            if (part < parts && parts > 1) break;
            stage += part == parts, parts = part == parts ? 1 : TL_STAGES;
        }
        tl_positions(values, quaternion, position);
        tl_closed(position, current, held, &pose);
        for (int i = 0; i < TL_FORMS; ++i)
            tl_look(&verdict, fabs(pose.forms[i]) < HUGE_VAL ? pose.forms[i] : -1.0, TL_OUT_OF_REACH, i);
        for (int i = 0; i < TL_LEFT; ++i) {
            const double margin = limits[TL_CONVERGED] - fabs(pose.left[i]);
            tl_look(&verdict, margin == margin ? margin : -1.0, TL_OUT_OF_REACH, TL_FORMS + i);
        }
        if (verdict.reason == TL_USABLE && !tl_reached(&pose, limits[TL_CONVERGED])) verdict.reason = TL_OUT_OF_REACH;
        for (int i = 0; i < TL_Q; ++i) finite = finite && fabs(pose.q[i]) < HUGE_VAL;
        first = TL_FORMS + TL_LEFT;
        measures[0] = measures[1] = measures[2] = HUGE_VAL - HUGE_VAL;
        if (verdict.reason == TL_USABLE && !finite) {
            verdict.reason = TL_SINGULAR, verdict.blame = first + TL_STOPS;
            measures[0] = 0.0;
            side = 0.0;
        } else if (verdict.reason == TL_USABLE) {
            for (int i = 0; i < TL_STOPS && limits[TL_RANGES] != 0.0; ++i) {
                const double below = pose.limited[i] - lower[i], above = upper[i] - pose.limited[i];
                const double margin = (below < above ? below : above) + limits[TL_AT_THE_STOP];
                tl_look(&verdict, margin, TL_JOINT_LIMIT, first + i);
            }
            first += TL_STOPS;
            for (int i = 0; i < TL_ROWS; ++i) for (int k = 0; k < TL_V; ++k) T[i * TL_V + k] = pose.K[k * TL_ROWS + i];
            tl_motions(T, R, N);
            measures[0] = tl_stretch(own, TL_OWN, 0, N, room);
            measures[1] = tl_stretch(driven, TL_DRIVEN, TL_PASSIVE, N, room);
            tl_singular(R, TL_ROWS, TL_ROWS, &least, &most);
            measures[2] = TL_ROWS ? least / (most > 1e-300 ? most : 1e-300) : 1.0;
            side = tl_side(pose.K, own, TL_OWN, room);
            if (limits[TL_PARALLEL_SIDE] != 0.0) side += 3.0 * tl_side(pose.K, leading, TL_LEADING, room);
            for (int i = 0; i < 3; ++i) tl_look(&verdict, measures[i] - limits[TL_LEAST], TL_SINGULAR, first + i);
            for (int i = 0; i < TL_PAIRS; ++i) {
                const double distance = tl_apart(pose.ends + 6 * (int)pairs[2 * i], pose.ends + 6 * (int)pairs[2 * i + 1]);
                apart = distance < apart ? distance : apart;
                tl_look(&verdict, distance - limits[TL_CLEARANCE], TL_INTERFERENCE, first + 3 + i);
            }
            for (int i = 0; i < TL_LOOPS; ++i) residual = fabs(pose.phi[i]) > residual ? fabs(pose.phi[i]) : residual;
        }
        for (int i = 0; i < 3; ++i) figures[(size_t)i * n + s] = measures[i];
        figures[3 * n + s] = apart < HUGE_VAL ? apart : HUGE_VAL - HUGE_VAL, figures[4 * n + s] = side;
        figures[5 * n + s] = (double)verdict.reason, figures[6 * n + s] = (double)verdict.blame;
        figures[7 * n + s] = residual;
        for (int i = 0; i < TL_Q; ++i) coordinates[(size_t)i * n + s] = pose.q[i];
    }
}
