/* A plant that a controller in another process drives: lock-step, one step a packet, or in real time.

   In front of this stand `instance.c` with the machine's functions, `plant_link.h` and sizes: NP_FORCES of a command,
   NP_ACTUATORS, and tables: tl_of, the actuator that each force acts on, tl_mass that it moves there and tl_limit, for
   brakes that hold by themselves, and tl_hold, the forces that hold the machine at the start. */

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

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

/* Time that the plant has to end after it was asked to, s: longer, and its current step takes too long. */
enum { PLANT_GRACE = 5 };
/* Longest sleep or wait before it checks whether it was asked to end, s. */
#define PLANT_NAP 0.2
/* Exit codes: the place is refused; anything else fails. */
enum { PLANT_PLACE = 3, PLANT_FAILS = 4 };
/* What a packet holds fits into a mailbox. */
typedef char plant_packets_fit[PLANT_OUT <= TPL_MOST && PLANT_IN <= TPL_MOST ? 1 : -1];

typedef struct {
    uint64_t *bins;
    double count, most;
} plant_times;

/* What it was started with. */
typedef struct {
    const char *host;
    int port, is_lock, is_catch, record, is_alone;
    double period, steps, watchdog, timeout;
    pid_t parent;
} plant_options;

typedef struct {
    double steps, answered, missing, late, repeated, refused, brakings, stalls, skipped, caught_up;
} plant_counts;

static plant_times lateness, computing, elapsed, exchange, empty;
static volatile sig_atomic_t is_over;
static double empty_period;

static void plant_end(int signal)
{
    (void)signal;
    if (!is_over) alarm(PLANT_GRACE); /* ends the process where a step takes longer */
    is_over = 1;
}

/* Waits until the process that started the plant closes its end of the pipe, or has ended, however it did. */
static void *plant_watch(void *nothing)
{
    char byte;
    ssize_t size;
    do size = read(0, &byte, 1);
    while (size > 0 || (size < 0 && errno == EINTR));
    kill(getpid(), SIGTERM);
    return nothing;
}

/* Starts a thread with a small stack, for all memory is locked; whether it runs. */
static int plant_thread(pthread_t *thread, void *(*function)(void *))
{
    pthread_attr_t attributes;
    int is_started;
    if (pthread_attr_init(&attributes) != 0) return 0;
    pthread_attr_setstacksize(&attributes, 256 * 1024);
    is_started = pthread_create(thread, &attributes, function, 0) == 0;
    pthread_attr_destroy(&attributes);
    return is_started;
}

/* Ends with the process that started it: Linux sends a signal, elsewhere (and where a process is stuck in between) a
   pipe on standard input closes. Whether that process is still there. */
static int plant_follow(const plant_options *options)
{
    pthread_t watch;
    signal(SIGINT, plant_end), signal(SIGTERM, plant_end);
    if (signal(SIGHUP, plant_end) == SIG_IGN) signal(SIGHUP, SIG_IGN); /* as `nohup` wants it */
    signal(SIGPIPE, SIG_IGN);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
#endif
    /* it may have ended before the signal was asked for */
    return getppid() == options->parent && plant_thread(&watch, plant_watch);
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
        sum += (double)times->bins[i];
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

/* Sleeps until a time, or until the plant is asked to end. */
static void plant_sleep(double until)
{
    double now = tpl_now();
    while (!is_over && now < until) {
        const double next = until - now < PLANT_NAP ? until : now + PLANT_NAP;
        struct timespec t;
        t.tv_sec = (time_t)next, t.tv_nsec = (long)(1e9 * (next - (double)t.tv_sec));
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0);
        now = tpl_now();
    }
}

/* Waits for a packet until a time, or until the plant is asked to end; what has come by then is taken. */
static int plant_wait(tpl_link *link, double *row, double until)
{
    int n;
    double left;
    do {
        left = until - tpl_now();
        n = tpl_wait(link, row, left < PLANT_NAP ? left : PLANT_NAP);
    } while (!n && !is_over && left > 0.0);
    return n;
}

/* A loop that does nothing, at the same rate: what this computer makes late by itself. */
static void *plant_empty(void *nothing)
{
    double next = tpl_now() + empty_period;
    for (;;) {
        double now;
        plant_sleep(next);
        if (is_over) return nothing;
        now = tpl_now();
        plant_note(&empty, now - next);
        next += empty_period * (1.0 + floor((now - next > 0.0 ? now - next : 0.0) / empty_period));
    }
}

/* Takes the commands that have come, of which the newest acts; whether that of sample k is among them. */
static int plant_read(tpl_link *link, const plant_options *options, plant_counts *counts, const double *out, double k)
{
    static double newest = -1.0;
    const double until = tpl_now() + options->timeout;
    const unsigned long long first = link->read;
    double row[TPL_MOST];
    int is_exact = 0;
    /* in lock-step up to the command of this sample; in real time what has come, but a flood does not stop the clock */
    while (!is_over && !(options->is_lock ? is_exact : link->read - first >= TPL_QUEUE)) {
        double sequence;
        if (!(options->is_lock ? plant_wait(link, row, until) : tpl_take(link, row))) break;
        sequence = row[TPL_SEQUENCE];
        if (tpl_is_hello(row)) tpl_send(link, out, PLANT_OUT);
        else if (!(sequence >= 0.0 && sequence <= k && sequence == floor(sequence))) counts->refused += 1.0;
        else if (sequence == newest) counts->repeated += 1.0;
        else {
            if (sequence < k) counts->late += 1.0;
            else is_exact = 1;
            if (sequence > newest) {
                newest = sequence;
                memcpy(plant.held, row + TPL_HEAD, sizeof plant.held);
            }
        }
    }
    return is_exact;
}

/* Sleeps until the next period; how many steps are due, 0 when the plant is asked to end. */
static double plant_next(const plant_options *options, plant_counts *counts, double *next)
{
    double now, missed, times = 1.0;
    plant_sleep(*next);
    if (is_over) return 0.0;
    now = tpl_now();
    plant_note(&lateness, now - *next);
    if (now - *next > options->period) {
        missed = floor((now - *next) / options->period);
        counts->stalls += 1.0;
        if (options->is_catch) times += missed;
        else counts->skipped += missed;
        *next += missed * options->period;
    }
    *next += options->period;
    return times;
}

/* The plant's loop, from the hello of a controller to the end. */
static void plant_loop(tpl_link *link, const plant_options *options, plant_counts *counts, double *out, double *log)
{
    const size_t width = 1 + NP_FORCES + NO;
    const int has_end = options->steps > 0.0;
    double next = tpl_now() + options->period, in_a_row = 0.0, k = 0.0;
    tpl_send(link, out, PLANT_OUT);
    while (!is_over && !(has_end && k >= options->steps)) {
        double began, received, computed, worked, times = 1.0;
        int is_exact;
        if (!options->is_lock && (times = plant_next(options, counts, &next)) < 1.0) break;
        began = tpl_now();
        is_exact = plant_read(link, options, counts, out, k);
        if (is_over) break;
        received = tpl_now(), worked = plant_processor();
        in_a_row = is_exact ? 0.0 : in_a_row + 1.0;
        counts->answered += is_exact, counts->missing += !is_exact;
        if (options->watchdog > 0.0 && in_a_row >= options->watchdog) {
            counts->brakings += !plant.is_braked;
            plant_brake(out + TPL_HEAD);
        } else {
            plant.is_braked = 0;
            memcpy(plant.force, plant.held, sizeof plant.force);
        }
        for (double run = 0.0; run < times && !is_over && !plant.has_failed && !(has_end && k >= options->steps); run += 1.0) {
            if (log) {
                double *line = log + (size_t)k * width;
                line[0] = k * options->period;
                memcpy(line + 1, plant.force, sizeof plant.force);
                memcpy(line + 1 + NP_FORCES, out + TPL_HEAD, sizeof(double) * NO);
            }
            plant_step(plant.force, out + TPL_HEAD);
            k += 1.0, counts->caught_up += run > 0.0;
        }
        worked = plant_processor() - worked, computed = tpl_now();
        if (plant.has_failed) is_over = 1;
        out[TPL_SEQUENCE] = k, out[TPL_TIME] = k * options->period;
        out[TPL_FLAGS] = (is_over || (has_end && k >= options->steps) ? TPL_END : 0) + (plant.is_braked ? TPL_BRAKES : 0)
            + (plant.has_failed ? TPL_FAILED : 0);
        tpl_send(link, out, PLANT_OUT);
        plant_note(&computing, worked / times), plant_note(&elapsed, (computed - received) / times);
        plant_note(&exchange, received - began + tpl_now() - computed);
    }
    counts->steps = k;
}

static void plant_print_times(const char *name, const plant_times *times)
{
    printf("\"%s\": {\"count\": %.0f, \"median_s\": %.7g, \"p99_s\": %.7g, \"p999_s\": %.7g, \"largest_s\": %.9g},\n", name,
        times->count, plant_share(times, 0.5), plant_share(times, 0.99), plant_share(times, 0.999), times->most);
}

static void plant_print(const plant_counts *counts, const tpl_link *link, const char *locked, const char *fifo)
{
    printf("{\n\"steps\": %.0f, \"answered\": %.0f, \"missing\": %.0f, \"late\": %.0f, \"lost\": %.0f,\n", counts->steps,
        counts->answered, counts->missing, counts->late,
        counts->missing > counts->late ? counts->missing - counts->late : 0.0);
    printf("\"repeated\": %.0f, \"refused\": %.0f, \"strangers\": %llu, \"brakings\": %.0f,\n", counts->repeated,
        counts->refused + (double)link->refused, link->strangers, counts->brakings);
    printf("\"stalls\": %.0f, \"skipped\": %.0f, \"caught_up\": %.0f,\n", counts->stalls, counts->skipped, counts->caught_up);
    plant_print_times("lateness", &lateness), plant_print_times("empty_loop", &empty);
    plant_print_times("computing", &computing), plant_print_times("computing_by_the_clock", &elapsed);
    plant_print_times("exchange", &exchange);
    printf("\"locked\": \"%s\", \"fifo\": \"%s\", \"digest\": \"%016llx\",\n", locked, fifo, plant_digest());
    for (char *c = plant.why; *c; ++c)
        if (*c == '"' || *c == '\\' || *c < ' ') *c = '\'';
    printf("\"failure\": \"%s\"\n}\n", plant.has_failed ? plant.why : "");
}

/* Memory for all rows; null if there is not enough. A page is there once it was written to, so that no period waits for
   one: compilers make `calloc` of `malloc` with `memset`, which writes to none. */
static double *plant_rows(double steps)
{
    const size_t width = sizeof(double) * (1 + NP_FORCES + NO);
    double *rows;
    if (!(steps >= 1.0 && steps <= (double)(SIZE_MAX / width / 2))) return 0;
    rows = (double *)malloc((size_t)steps * width);
    for (size_t i = 0; rows && i < (size_t)steps * width; i += 4096) ((volatile char *)rows)[i] = 0;
    return rows;
}

/* Writes the rows to an open file; 0, or an error number. */
static int plant_write(int record, const double *log, double steps)
{
    const size_t width = 1 + NP_FORCES + NO, rows = (size_t)steps;
    FILE *file = fdopen(record, "wb");
    if (!file || fwrite(log, sizeof(double) * width, rows, file) != rows || fclose(file) != 0) return errno;
    return 0;
}

/* Runs the plant on an open link; an exit code. */
static int plant_run(tpl_link *link, const plant_options *options)
{
    pthread_t thread;
    double out[PLANT_OUT] = {1.0}, row[TPL_MOST], *log = 0;
    plant_counts counts = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    const char *locked = "yes", *fifo = "not asked for: in lock-step";
    int error, has_thread = 0;
    lateness.bins = (uint64_t *)calloc(5 * (size_t)PLANT_BINS, sizeof(uint64_t));
    if (options->record >= 0) log = plant_rows(options->steps);
    if (!lateness.bins || (options->record >= 0 && !log)) return fprintf(stderr, "no memory\n"), PLANT_FAILS;
    computing.bins = lateness.bins + PLANT_BINS, exchange.bins = computing.bins + PLANT_BINS;
    empty.bins = exchange.bins + PLANT_BINS, elapsed.bins = empty.bins + PLANT_BINS;
    if (!plant_begin(options->period, out + TPL_HEAD)) return fprintf(stderr, "%s\n", plant.why), PLANT_FAILS;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) locked = strerror(errno);
    if (!options->is_lock) {
        struct sched_param high;
        high.sched_priority = 50;
        fifo = sched_setscheduler(0, SCHED_FIFO, &high) == 0 ? "yes" : strerror(errno);
    }
    fprintf(stderr, "listening\n");
    fflush(stderr);
    while (!is_over && !options->is_alone && !tpl_wait(link, row, PLANT_NAP)) {} /* for the hello of a controller */
    empty_period = options->period;
    if (!options->is_lock) has_thread = plant_thread(&thread, plant_empty);
    plant_loop(link, options, &counts, out, log);
    is_over = 1;
    alarm(0);
    out[TPL_FLAGS] = TPL_END + (plant.has_failed ? TPL_FAILED : 0);
    for (int i = 0; i < 3; ++i) tpl_send(link, out, PLANT_OUT);
    if (has_thread) pthread_join(thread, 0);
    if (log && (error = plant_write(options->record, log, counts.steps)) != 0)
        return fprintf(stderr, "what it recorded cannot be written: %s\n", strerror(error)), PLANT_FAILS;
    plant_print(&counts, link, locked, fifo);
    return 0;
}

/* HOST PORT PERIOD STEPS MODE(lock|hold|catch) WATCHDOG TIMEOUT RECORD ALONE(0|1) PARENT; the name of shared memory in the
   place of HOST, with the port 0; RECORD is the number of an open file, -1 for none, PARENT the process whose end is the
   plant's, and which holds a pipe on standard input open. Prints a JSON object. */
int main(int argc, char **argv)
{
    tpl_link link;
    plant_options options;
    int error, code;
    if (argc != 11) return 2;
    options.host = argv[1], options.port = atoi(argv[2]);
    options.period = strtod(argv[3], 0), options.steps = strtod(argv[4], 0);
    options.is_lock = !strcmp(argv[5], "lock"), options.is_catch = !strcmp(argv[5], "catch");
    options.watchdog = strtod(argv[6], 0), options.timeout = strtod(argv[7], 0);
    options.record = atoi(argv[8]), options.is_alone = atoi(argv[9]), options.parent = (pid_t)atol(argv[10]);
    if (!(options.period > 0.0 && options.period < HUGE_VAL)) return 2;
    if (!plant_follow(&options)) return PLANT_FAILS;
    error = options.port ? tpl_open_udp(&link, options.host, options.port, 1) : tpl_open_memory(&link, options.host, 1);
    link.command_size = PLANT_IN;
    if (error == EBUSY && link.owner)
        return fprintf(stderr, "the plant with process id %lld holds it\n", link.owner), PLANT_PLACE;
    if (error == EEXIST) return fprintf(stderr, "it is shared memory of another program\n"), PLANT_PLACE;
    if (error) return fprintf(stderr, "%s\n", strerror(error)), PLANT_PLACE;
    code = plant_run(&link, &options);
    if (!options.port) shm_unlink(options.host); /* while it is locked: another plant's stays */
    tpl_close(&link);
    return code;
}

#endif
