/* @stem@_tracker: made by Tauloop; do not edit. See @stem@_tracker.h. */
#include "@stem@_tracker.h"
#include "@stem@.h"

#include <math.h>
#include <string.h>

enum { MOTORS = @motors@, FORCES = @forces@, COORDINATES = @coordinates@, N = @n@, TRACKED = @tracked@, COLUMNS = N + 1 };

/* Share of a lag's error that one sample removes: for the motion, and for the rows. */
static const double MOTION_SHARE = @motion_share@, ROW_SHARE = @row_share@, PERIOD = @period@;
/* A row counts if its motor moved in more than this share of the rows' memory. */
static const double MOVING = @moving@;
/* Largest rounding error of a discriminant, and of closed loops relative to the machine's length. */
static const double ROUNDING = 1e-8;
static const double WEIGHT[FORCES] = {@weights@};
static const double STANDSTILL[FORCES] = {@standstill@};
/* One over the standard deviation of a tracked parameter's step between two updates; and the deviation at which it is
   frozen. */
static const double STEP[TRACKED] = {@steps@};
static const double RANGE[TRACKED] = {@ranges@};
static const double START_Q[COORDINATES] = {@start@};
/* Column of each parameter of the triangle in the rows. */
static const int ORDER[N] = {@order@};
static const double SAVED[N][COLUMNS] = {
@triangle@
};

static void follow(double *lags, int count, int size, double share, int begun, double *x)
{
    int i, k;
    for (k = 0; k < count; ++k) {
        double *state = lags + (size_t)k * (size_t)size;
        for (i = 0; i < size; ++i) {
            state[i] = begun ? state[i] + share * (x[i] - state[i]) : x[i];
            x[i] = state[i];
        }
    }
}

/* Append an equation to the triangle and eliminate it by rotations. */
static void take(double triangle[N][COLUMNS], double row[COLUMNS])
{
    int j, k;
    for (k = 0; k < N; ++k) {
        double size, c, s;
        if (row[k] == 0.0) {
            continue;
        }
        size = hypot(triangle[k][k], row[k]);
        c = triangle[k][k] / size;
        s = row[k] / size;
        for (j = k; j < COLUMNS; ++j) {
            const double above = triangle[k][j], below = row[j];
            triangle[k][j] = c * above + s * below;
            row[j] = c * below - s * above;
        }
    }
}

/* Apply the random step of a tracked parameter: eliminate its value before the step by rotations. */
static void wander(double triangle[N][COLUMNS], int place, double inverse)
{
    double row[COLUMNS];
    double before = -inverse, after = inverse;
    int j, k;
    memset(row, 0, sizeof row);
    for (k = place; k >= 0; --k) {
        const double size = hypot(before, triangle[k][place]);
        const double c = before / size, s = triangle[k][place] / size;
        for (j = k; j < COLUMNS; ++j) {
            if (j != place) {
                const double above = triangle[k][j], below = row[j];
                triangle[k][j] = c * above - s * below;
                row[j] = c * below + s * above;
            }
        }
        triangle[k][place] = -s * after;
        after *= c;
        before = size;
    }
}

/* Standard deviation of a parameter: the length of its row of the inverse triangle. */
static double deviation_of(const double triangle[N][COLUMNS], int place)
{
    double row[N];
    double square;
    int k, m;
    row[place] = 1.0 / triangle[place][place];
    square = row[place] * row[place];
    for (k = place + 1; k < N; ++k) {
        double sum = 0.0;
        for (m = place; m < k; ++m) {
            sum += row[m] * triangle[m][k];
        }
        row[k] = -sum / triangle[k][k];
        square += row[k] * row[k];
    }
    return sqrt(square);
}

static void update(@stem@_tracker *tracker, const double *rows, const double *moving)
{
    double row[COLUMNS];
    int i, k;
    for (k = 0; k < TRACKED; ++k) {
        tracker->frozen[k] = tracker->deviation[k] >= RANGE[k];
    }
    for (k = 0; k < TRACKED; ++k) {
        if (!tracker->frozen[k]) {
            wander(tracker->triangle, k, STEP[k]);
        }
    }
    for (i = 0; i < FORCES; ++i) {
        if (moving[i] <= MOVING) {
            continue;
        }
        for (k = 0; k < N; ++k) {
            row[k] = WEIGHT[i] * rows[i * COLUMNS + ORDER[k]];
        }
        row[N] = WEIGHT[i] * rows[i * COLUMNS + N];
        take(tracker->triangle, row);
    }
    for (k = 0; k < TRACKED; ++k) {
        tracker->deviation[k] = deviation_of((const double(*)[COLUMNS])tracker->triangle, k);
    }
}

void @stem@_tracker_begin(@stem@_tracker *tracker)
{
    int k;
    memset(tracker, 0, sizeof *tracker);
    memcpy(tracker->triangle, SAVED, sizeof tracker->triangle);
    memcpy(tracker->q, START_Q, sizeof tracker->q);
    for (k = 0; k < TRACKED; ++k) {
        tracker->deviation[k] = deviation_of((const double(*)[COLUMNS])tracker->triangle, k);
    }
    tracker->until_update = @interval@;
}

int @stem@_tracker_step(@stem@_tracker *tracker, const double position[@motors@], const double force[@forces@])
{
    double at[MOTORS], velocity[MOTORS], acceleration[MOTORS], smooth[MOTORS], late[FORCES], now[FORCES];
    double rows[FORCES * COLUMNS], moving[FORCES], q[COORDINATES], health[4];
    int i, k;
    for (i = 0; i < MOTORS; ++i) {
        if (!isfinite(position[i])) {
            return -1;
        }
        smooth[i] = position[i];
    }
    for (i = 0; i < FORCES; ++i) {
        if (!isfinite(force[i])) {
            return -1;
        }
        now[i] = force[i];
    }
    follow(&tracker->position_lag[0][0], 3, MOTORS, MOTION_SHARE, tracker->begun, smooth);
    follow(&tracker->force_lag[0][0], 3, FORCES, MOTION_SHARE, tracker->begun, now);
    if (!tracker->begun) {
        memcpy(tracker->position_before[0], smooth, sizeof smooth);
        memcpy(tracker->position_before[1], smooth, sizeof smooth);
        memcpy(tracker->force_before, now, sizeof now);
    }
    for (i = 0; i < MOTORS; ++i) {
        const double first = tracker->position_before[0][i], middle = tracker->position_before[1][i];
        at[i] = middle;
        velocity[i] = (smooth[i] - first) / (2.0 * PERIOD);
        acceleration[i] = (smooth[i] - 2.0 * middle + first) / (PERIOD * PERIOD);
        tracker->position_before[0][i] = middle;
        tracker->position_before[1][i] = smooth[i];
    }
    memcpy(late, tracker->force_before, sizeof late);
    memcpy(tracker->force_before, now, sizeof now);
    @call@;
    if (!(health[0] >= -ROUNDING) || !(health[2] <= ROUNDING)) {
        return -1;
    }
    for (k = 0; k < COORDINATES; ++k) {
        if (!isfinite(q[k])) {
            return -1;
        }
    }
    for (k = 0; k < FORCES * COLUMNS; ++k) {
        if (!isfinite(rows[k])) {
            return -1;
        }
    }
    memcpy(tracker->q, q, sizeof q);
    for (i = 0; i < FORCES; ++i) {
        rows[i * COLUMNS + N] = late[i] - rows[i * COLUMNS + N];
        moving[i] = fabs(velocity[i]) > STANDSTILL[i] ? 1.0 : 0.0;
    }
    follow(&tracker->row_lag[0][0], 2, FORCES * COLUMNS, ROW_SHARE, tracker->begun, rows);
    follow(&tracker->moving_lag[0][0], 2, FORCES, ROW_SHARE, tracker->begun, moving);
    tracker->begun = 1;
    if (--tracker->until_update > 0) {
        return 0;
    }
    tracker->until_update = @interval@;
    update(tracker, rows, moving);
    return 1;
}

void @stem@_tracker_values(const @stem@_tracker *tracker, double value[@n@])
{
    double x[N];
    int j, k;
    for (k = N - 1; k >= 0; --k) {
        double sum = tracker->triangle[k][N];
        for (j = k + 1; j < N; ++j) {
            sum -= tracker->triangle[k][j] * x[j];
        }
        x[k] = sum / tracker->triangle[k][k];
        value[ORDER[k]] = x[k];
    }
}
