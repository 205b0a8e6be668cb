/* A plant that a controller in another process drives: lock-step, one step a packet, or in real time.

   In front of this stand `instance.c` with the machine's functions, `plant_link.h` and sizes: NP_FORCES of a command,
   NP_ACTUATORS, and tables: tl_of, the actuator that each force acts on, tl_mass that it moves there and tl_limit, for
   brakes that hold by themselves, and tl_hold, the forces that hold the machine at the start. */

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>

enum { PLANT_OUT = TPL_HEAD + NO, PLANT_IN = TPL_HEAD + NP_FORCES };
/* Tenths of a microsecond that times are counted in, up to 100 ms. */
enum { PLANT_BINS = 1000000 };

typedef struct {
    tl_instance *of;
    double period, steps, force[NP_FORCES], held[NP_FORCES], at[NP_FORCES];
    int is_braked, has_failed;
    uint64_t digest;
    char why[256];
} plant_state;

static plant_state plant;

static void plant_tell(tl_instance *of, int is_error, const char *text)
{
    (void)of, (void)is_error;
    strncpy(plant.why, text, sizeof plant.why - 1);
}

static void plant_add(const double *values, int n)
{
    for (int i = 0; i < n; ++i) {
        uint64_t bits;
        memcpy(&bits, values + i, sizeof bits);
        plant.digest = (plant.digest ^ bits) * 0x100000001b3ULL;
    }
}

/* Outputs at the time that was reached; whether they exist. */
static int plant_outputs(double *outputs)
{
    if (!tl_refresh(plant.of)) return plant.has_failed = 1, 0;
    memcpy(outputs, plant.of->at.v + AT_OUTPUTS, sizeof(double) * NO);
    return 1;
}

int plant_begin(double period, double *outputs)
{
    memset(&plant, 0, sizeof plant);
    plant.period = period, plant.digest = 0xcbf29ce484222325ULL;
    memcpy(plant.held, tl_hold, sizeof plant.held);
    plant.of = tl_new("plant", 0, 0);
    if (!plant.of) return 0;
    plant.of->tell = plant_tell;
    if (!tl_begin(plant.of, 0.0, 0, 0.0) || !tl_begun(plant.of)) return plant.has_failed = 1, 0;
    return plant_outputs(outputs);
}

/* One period under forces that stay; outputs at its end. Zero where there is no motion any more. */
int plant_step(const double *force, double *outputs)
{
    tl_memory *at = &plant.of->at;
    if (plant.has_failed) return 0;
    for (int i = 0; i < NP_FORCES; ++i)
        if (at->v[AT_INPUTS + i] != force[i]) at->v[AT_INPUTS + i] = force[i], at->is_new = 1;
    at->is_current = 0;
    plant.steps += 1.0;
    plant_add(force, NP_FORCES);
    if (!tl_go(plant.of, plant.steps * plant.period, 0)) return plant.has_failed = 1, 0;
    if (!plant_outputs(outputs)) return 0;
    plant_add(outputs, NO);
    return 1;
}

unsigned long long plant_digest(void)
{
    return plant.digest;
}

/* Forces of brakes: beside those at the start, as of a spring to where the actuator was, and a damper, on the mass that
   the force moves. */
static void plant_brake(const double *outputs)
{
    const double w = 0.05 / plant.period < 60.0 ? 0.05 / plant.period : 60.0;
    for (int i = 0; i < NP_FORCES; ++i) {
        const double x = outputs[tl_of[i]], v = outputs[NP_ACTUATORS + tl_of[i]];
        double u;
        if (!plant.is_braked) plant.at[i] = x;
        u = tl_hold[i] + tl_mass[i] * (w * w * (plant.at[i] - x) - 2.0 * w * v);
        if (tl_limit[i] > 0.0 && u > tl_limit[i]) u = tl_limit[i];
        if (tl_limit[i] > 0.0 && u < -tl_limit[i]) u = -tl_limit[i];
        plant.force[i] = u;
    }
    plant.is_braked = 1;
}

#ifdef PLANT_MAIN

typedef struct {
    unsigned *bins;
    double count, most;
} plant_times;

static plant_times lateness, computing, elapsed, exchange, empty;
static volatile sig_atomic_t is_over;
static double empty_period;

static void plant_end(int signal)
{
    (void)signal;
    is_over = 1;
}

static void plant_note(plant_times *times, double seconds)
{
    const double place = seconds > 0.0 ? seconds * 1e7 : 0.0;
    times->bins[place < PLANT_BINS - 1 ? (int)place : PLANT_BINS - 1] += 1;
    times->count += 1.0;
    if (seconds > times->most) times->most = seconds;
}

static double plant_share(const plant_times *times, double share)
{
    double sum = 0.0;
    for (int i = 0; i < PLANT_BINS; ++i) {
        sum += times->bins[i];
        if (sum >= share * times->count && sum > 0.0) return (i + 1) * 1e-7;
    }
    return 0.0;
}

/* Processor time of this thread: what others, and interruptions of the whole computer, take is not in it. */
static double plant_processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void plant_sleep(double until)
{
    struct timespec t;
    t.tv_sec = (time_t)until, t.tv_nsec = (long)(1e9 * (until - (double)t.tv_sec));
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
}

/* A loop that does nothing, at the same rate: what this computer makes late by itself. */
static void *plant_empty(void *nothing)
{
    double next = tpl_now() + empty_period;
    while (!is_over) {
        double now;
        plant_sleep(next);
        now = tpl_now();
        plant_note(&empty, now - next);
        next += empty_period * (1.0 + floor((now - next > 0.0 ? now - next : 0.0) / empty_period));
    }
    return nothing;
}

static void plant_print_times(const char *name, const plant_times *times)
{
    printf("\"%s\": {\"count\": %.0f, \"median_s\": %.7g, \"p99_s\": %.7g, \"p999_s\": %.7g, \"largest_s\": %.9g},\n", name,
        times->count, plant_share(times, 0.5), plant_share(times, 0.99), plant_share(times, 0.999), times->most);
}

/* HOST PORT RATE STEPS MODE(lock|hold|catch) WATCHDOG TIMEOUT LOG ALONE(0|1); the name of shared memory in the place of HOST, with
   the port 0. Prints a JSON object. */
int main(int argc, char **argv)
{
    tpl_link link;
    pthread_t thread;
    double out[PLANT_OUT] = {1.0}, row[TPL_MOST], *log = 0, next, newest = -1.0;
    double missing = 0.0, late = 0.0, repeated = 0.0, refused = 0.0, stalls = 0.0, skipped = 0.0, caught = 0.0;
    double in_a_row = 0.0, brakings = 0.0, k = 0.0, answered = 0.0;
    const char *locked = "yes", *fifo = "not asked for: in lock-step";
    const int width = 1 + NP_FORCES + NO;
    int error, is_lock, is_catch, has_thread = 0;
    if (argc != 10) return 2;
    const double period = 1.0 / atof(argv[3]), steps = atof(argv[4]), watchdog = atof(argv[6]), timeout = atof(argv[7]);
    const int port = atoi(argv[2]);
    is_lock = !strcmp(argv[5], "lock"), is_catch = !strcmp(argv[5], "catch");
    error = port ? tpl_open_udp(&link, argv[1], port, 1) : tpl_open_memory(&link, argv[1], 1);
    if (error) return fprintf(stderr, "%s\n", strerror(error)), 3;
    signal(SIGINT, plant_end), signal(SIGTERM, plant_end);
    lateness.bins = calloc(5 * PLANT_BINS, sizeof(unsigned));
    if (*argv[8] && steps > 0.0) log = malloc(sizeof(double) * (size_t)steps * (size_t)width);
    if (!lateness.bins || (*argv[8] && !log)) return fprintf(stderr, "no memory\n"), 3;
    if (log) memset(log, 0, sizeof(double) * (size_t)steps * (size_t)width);
    computing.bins = lateness.bins + PLANT_BINS, exchange.bins = computing.bins + PLANT_BINS;
    empty.bins = exchange.bins + PLANT_BINS, elapsed.bins = empty.bins + PLANT_BINS;
    if (!plant_begin(period, out + TPL_HEAD)) return fprintf(stderr, "%s\n", plant.why), 3;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) locked = strerror(errno);
    if (!is_lock) {
        struct sched_param high;
        high.sched_priority = 50;
        fifo = sched_setscheduler(0, SCHED_FIFO, &high) == 0 ? "yes" : strerror(errno);
    }
    fprintf(stderr, "listening\n");
    fflush(stderr);
    while (!is_over && !atoi(argv[9]) && !tpl_wait(&link, row, 0.2)) {} /* until somebody is there */
    empty_period = period;
    if (!is_lock) has_thread = pthread_create(&thread, 0, plant_empty, 0) == 0;
    next = tpl_now() + period;
    tpl_send(&link, out, PLANT_OUT);
    while (!is_over && (steps <= 0.0 || k < steps)) {
        double began, received, computed, worked, times = 1.0, until = tpl_now() + timeout;
        int n, is_exact = 0;
        if (!is_lock) {
            plant_sleep(next);
            began = tpl_now();
            plant_note(&lateness, began - next);
            if (began - next > period) {
                const double missed = floor((began - next) / period);
                stalls += 1.0;
                if (is_catch) times += missed;
                else skipped += missed;
                next += missed * period;
            }
            next += period;
        }
        began = tpl_now();
        for (;;) {
            const double left = until - tpl_now();
            n = is_lock ? (is_exact ? 0 : tpl_wait(&link, row, left)) : tpl_take(&link, row);
            if (n == 0) break;
            int good = n == PLANT_IN && row[TPL_VERSION] == 1.0 && row[TPL_SEQUENCE] >= 0.0
                && row[TPL_SEQUENCE] <= k;
            for (int i = 0; good && i < PLANT_IN; ++i) good = row[i] - row[i] == 0.0;
            if (n >= TPL_HEAD && row[TPL_SEQUENCE] == -1.0) tpl_send(&link, out, PLANT_OUT);
            else if (!good) refused += 1.0;
            else if (row[TPL_SEQUENCE] == newest) repeated += 1.0;
            else {
                if (row[TPL_SEQUENCE] < k) late += 1.0;
                else is_exact = 1;
                if (row[TPL_SEQUENCE] > newest) {
                    newest = row[TPL_SEQUENCE];
                    memcpy(plant.held, row + TPL_HEAD, sizeof plant.held);
                }
            }
        }
        received = tpl_now(), worked = plant_processor();
        in_a_row = is_exact ? 0.0 : in_a_row + 1.0;
        answered += is_exact, missing += !is_exact;
        if (watchdog > 0.0 && in_a_row >= watchdog) {
            brakings += !plant.is_braked;
            plant_brake(out + TPL_HEAD);
        } else {
            plant.is_braked = 0;
            memcpy(plant.force, plant.held, sizeof plant.force);
        }
        for (int run = 0; run < (int)times && !plant.has_failed && (steps <= 0.0 || k < steps); ++run) {
            if (log) {
                double *line = log + (size_t)k * (size_t)width;
                line[0] = k * period;
                memcpy(line + 1, plant.force, sizeof plant.force);
                memcpy(line + 1 + NP_FORCES, out + TPL_HEAD, sizeof(double) * NO);
            }
            plant_step(plant.force, out + TPL_HEAD);
            k += 1.0, caught += run > 0;
        }
        worked = plant_processor() - worked, computed = tpl_now();
        if (plant.has_failed) is_over = 1;
        out[TPL_SEQUENCE] = k, out[TPL_TIME] = k * period;
        out[TPL_FLAGS] = (is_over || (steps > 0.0 && k >= steps) ? TPL_END : 0) + (plant.is_braked ? TPL_BRAKES : 0)
            + (plant.has_failed ? TPL_FAILED : 0);
        tpl_send(&link, out, PLANT_OUT);
        plant_note(&computing, worked / times), plant_note(&elapsed, (computed - received) / times);
        plant_note(&exchange, received - began + tpl_now() - computed);
    }
    is_over = 1;
    out[TPL_FLAGS] = TPL_END + (plant.has_failed ? TPL_FAILED : 0);
    for (int i = 0; i < 3; ++i) tpl_send(&link, out, PLANT_OUT);
    if (has_thread) pthread_join(thread, 0);
    if (log) {
        FILE *file = fopen(argv[8], "wb");
        const size_t rows = (size_t)k;
        if (!file || fwrite(log, sizeof(double) * (size_t)width, rows, file) != rows || fclose(file) != 0)
            return fprintf(stderr, "%s: %s\n", argv[8], strerror(errno)), 3;
    }
    printf("{\n\"steps\": %.0f, \"answered\": %.0f, \"missing\": %.0f, \"late\": %.0f, \"lost\": %.0f,\n", k, answered, missing,
        late, missing > late ? missing - late : 0.0);
    printf("\"repeated\": %.0f, \"refused\": %.0f, \"strangers\": %llu, \"brakings\": %.0f,\n", repeated, refused,
        link.strangers, brakings);
    printf("\"stalls\": %.0f, \"skipped\": %.0f, \"caught_up\": %.0f,\n", stalls, skipped, caught);
    plant_print_times("lateness", &lateness), plant_print_times("empty_loop", &empty);
    plant_print_times("computing", &computing), plant_print_times("computing_by_the_clock", &elapsed);
    plant_print_times("exchange", &exchange);
    printf("\"locked\": \"%s\", \"fifo\": \"%s\", \"digest\": \"%016llx\",\n", locked, fifo, plant_digest());
    for (char *c = plant.why; *c; ++c)
        if (*c == '"' || *c == '\\' || *c < ' ') *c = '\'';
    printf("\"failure\": \"%s\"\n}\n", plant.has_failed ? plant.why : "");
    if (!port) shm_unlink(argv[1]);
    return 0;
}

#endif
