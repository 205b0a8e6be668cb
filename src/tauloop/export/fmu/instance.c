/* An instance of an FMU: values by reference, the states of both interfaces, and the integrator of co-simulation.

   Included before this file: `hybrid.c`, `system.c` and sizes: TL_FREE parameters, NI inputs, NY states, NO outputs,
   NS modes, NG speeds with dry friction, NP constants of the equations, NK numbers that samples keep, TL_PERIOD s between
   samples (0 without), TL_OWN, the function that samples call (0 without), TL_SAFE (whether that function handles inputs
   that are not numbers), TL_TOKEN, TL_DAMAGED (whether the table of parameters has another hash), TL_FORMS closed forms,
   and tables: tl_start of all values, tl_parameter of each constant, tl_nominal of states, tl_near of each guard, tl_guess
   of coordinates, tl_modes. The machine's routines and the functions of the standard follow after it. */

#include <stdio.h>
#include <stdlib.h>

/* Values in the order of their references, which begin at zero with the time. */
enum {
    AT_PARAMETERS = 1,
    AT_INPUTS = AT_PARAMETERS + TL_FREE,
    AT_STATES = AT_INPUTS + NI,
    AT_RATES = AT_STATES + NY,
    AT_OUTPUTS = AT_RATES + NY,
    AT_MODES = AT_OUTPUTS + NO,
    AT_GUARDS = AT_MODES + NS,
    AT_TURNS = AT_GUARDS + NS,
    TL_VALUES = AT_TURNS + NG
};

/* Modes of an instance. */
enum { TL_MADE = 1, TL_BEGINNING = 2, TL_EVENT = 4, TL_CONTINUOUS = 8, TL_STEPPING = 16, TL_OVER = 32, TL_FAILED = 64 };
#define TL_RUNNING (TL_EVENT | TL_CONTINUOUS | TL_STEPPING)

/* State of an instance without its environment: a block of memory that can be copied. */
typedef struct {
    int mode, is_current, is_new;  /* values agree with the states; inputs have changed */
    double origin, sample;         /* time of the first sample, s, and number of samples */
    double v[TL_VALUES], p[NP + 1], z[NK + 1], guess[NQ + 1], base[NQ + 1], known[TL_KNOWN + 1], worst[6], slopes[1];
    double room[TL_ROOM(NY + 1, NS, NQ, TL_KNOWN, TL_STAGES, TL_DEGREE, TL_IMPLICIT)];
    int pivots[TL_PIVOTS(NY + 1, TL_IMPLICIT)];
    tl_run run;
    tl_data data;
} tl_memory;

typedef struct tl_instance tl_instance;
struct tl_instance {
    tl_memory at;
    int is_exchange, is_logging;
    char *name;
    void *owner;
    /* (instance, whether it is an error, message) */
    void (*tell)(tl_instance *of, int is_error, const char *text);
    void (*log)(void);         /* the importer's function, of the standard's type */
    void (*update)(void);      /* likewise, of intermediate updates */
    int may_return;
};

static void tl_say(tl_instance *of, const char *text)
{
    if (of->tell) of->tell(of, 1, text);
}

/* Pointers of the run into this instance's own memory. */
static void tl_connect(tl_memory *at)
{
    const tl_data data = {.in = at->v + AT_INPUTS, .held = at->z, .p = at->p, .z = at->z, .slopes = at->slopes,
        .worst = at->worst, .own = TL_OWN};
    at->data = data;
    at->run.y = at->v + AT_STATES, at->run.s = at->v + AT_MODES, at->run.guess = at->guess, at->run.known = at->known;
    at->run.slopes = at->slopes, at->run.data = &at->data;
    tl_prepare(&tl_system, &tl_steps, &at->run, at->room, at->pivots);
}

/* Copies the memory of another instance, or of this one at another time. */
static void tl_take(tl_memory *to, const tl_memory *from)
{
    const tl_run *r = &from->run;
    memmove(to, from, sizeof *to);
    tl_connect(to);
    to->run.is_known = r->is_known, to->run.crowded = r->crowded, to->run.is_event = r->is_event;
    to->run.has_jacobian = r->has_jacobian, to->run.has_factors = r->has_factors;
    to->run.is_behind_event = r->is_behind_event, to->run.evaluations = r->evaluations;
    to->run.rejected = r->rejected, to->run.steps = r->steps, to->run.events = r->events;
    to->run.last_length = r->last_length, to->run.last_error = r->last_error;
}

static void tl_reset(tl_instance *of)
{
    tl_memory *at = &of->at;
    memset(at, 0, sizeof *at);
    at->mode = TL_MADE;
    memcpy(at->v, tl_start, sizeof at->v);
    memcpy(at->guess, tl_guess, sizeof(double) * NQ);
    memcpy(at->base, tl_guess, sizeof(double) * NQ);
    at->worst[0] = 1.0, at->worst[1] = 1e300;
    at->run.step = TL_FIRST, at->run.rtol = TL_RTOL, at->run.atol = TL_ATOL, at->run.longest = TL_LONGEST;
    tl_connect(at);
}

/* Returns why an instance cannot be created; null without an error. */
static const char *tl_wrong(const char *token)
{
    if (!token || strcmp(token, TL_TOKEN))
        return "the token (guid) is not that of this FMU: its binary and its modelDescription.xml do not belong together";
    return TL_DAMAGED ? "the parameters in this library are damaged: install the FMU again" : 0;
}

static tl_instance *tl_new(const char *name, int is_exchange, int is_logging)
{
    tl_instance *of = calloc(1, sizeof *of);
    const size_t length = name ? strlen(name) : 0;
    if (!of) return 0;
    of->name = calloc(length + 1, 1);
    if (!of->name) {
        free(of);
        return 0;
    }
    if (length) memcpy(of->name, name, length);
    of->is_exchange = is_exchange, of->is_logging = is_logging;
    tl_reset(of);
    return of;
}

static void tl_free(tl_instance *of)
{
    if (of) free(of->name);
    free(of);
}

/* Returns whether a call is allowed now; logs why not. */
static int tl_may(tl_instance *of, int modes, const char *what)
{
    static const char *const names[] = {"instantiated", "in initialization", "in event mode", "in continuous-time mode",
        "between steps", "terminated", "in error"};
    char text[160];
    int k = 0;
    if (!of) return 0;
    if (of->at.mode & modes) return 1;
    while (k < 6 && !(of->at.mode >> k & 1)) ++k;
    snprintf(text, sizeof text, "%s is not allowed while the instance is %s", what, names[k]);
    tl_say(of, text);
    return 0;
}

/* Reports why the equations have no solution. */
static void tl_explain(tl_instance *of, double time);

/* Returns the time of the next sample. */
static double tl_due(const tl_memory *at)
{
    return at->origin + at->sample * TL_PERIOD;
}

/* Returns whether a sample is due; importers round times. */
static int tl_is_due(const tl_memory *at, double time)
{
    return TL_PERIOD > 0.0 && time >= tl_due(at) - 1e-9 * TL_PERIOD;
}

/* Runs a sample at the current time. */
static int tl_sample(tl_instance *of)
{
    tl_memory *at = &of->at;
    double zero = 0.0;
    int good = (at->sample > 0.0 || system_begin(&at->run, at->run.time, at->run.y, &zero, 0))
        && system_sample(&at->run, at->run.time, at->run.y, 0, 0);
    for (int i = 0; i < NK; ++i) zero += at->z[i] - at->z[i];
    at->sample += 1.0;
    return good && zero == 0.0;
}

/* Updates the numbers that follow from set values; at the start also the dependent states. */
static int tl_settle(tl_instance *of)
{
    tl_memory *at = &of->at;
    double left = 0.0;
    for (int i = 0; i < NP; ++i) at->p[i] = at->v[AT_PARAMETERS + tl_parameter[i]];
    at->run.time = at->v[0];
    if (at->mode & (TL_MADE | TL_BEGINNING)) {
        memcpy(at->guess, tl_guess, sizeof(double) * NQ);
        if (!system_begin(&at->run, at->run.time, at->run.y, &left, 0)) return 0;
        if (TL_PERIOD > 0.0) {
            at->sample = 0.0;
            if (!tl_sample(of)) return 0;
        }
        memcpy(at->base, at->guess, sizeof(double) * NQ);
    }
    return 1;
}

/* Newton's method continues from the current coordinates. */
static void tl_arrived(tl_memory *at)
{
    memcpy(at->base, at->guess, sizeof(double) * NQ);
}

/* Computes rates, guards and outputs at the states. Returns whether they exist. */
static int tl_refresh(tl_instance *of)
{
    tl_memory *at = &of->at;
    double zero = 0.0, kept[NQ + 1];
    int good;
    if (at->is_current) return 1;
    good = tl_settle(of);
    memcpy(kept, at->guess, sizeof(double) * NQ);
    memcpy(at->guess, at->base, sizeof(double) * NQ);
    good = good && system_rate(&at->run, at->v[0], at->v + AT_STATES, at->v + AT_RATES, at->v + AT_GUARDS);
    good = good && system_turns(&at->run, at->v[0], at->v + AT_STATES, at->v + AT_TURNS, 0);
    good = good && system_outputs(&at->run, at->v[0], at->v + AT_STATES, at->v + AT_OUTPUTS, 0);
    for (int i = AT_RATES; i < AT_MODES; ++i) zero += at->v[i] - at->v[i];
    /* A guard that is zero or rounding is not an event; it counts from a distance beyond zero. */
    for (int i = 0; i < NS; ++i)
        at->v[AT_GUARDS + i] += at->v[AT_MODES + i] != 0.0 ? tl_near[i] : -tl_near[i];
    if (!good || zero != 0.0) {
        tl_explain(of, at->v[0]);
        return 0;
    }
    if (!NY) tl_arrived(at); /* functions continue from their last pose */
    else if (at->mode == TL_STEPPING) memcpy(at->guess, kept, sizeof(double) * NQ); /* reading values changes nothing */
    return at->is_current = 1;
}

/* Reads values by reference. Returns whether all exist. Inputs, states and parameters need no equations. */
static int tl_get(tl_instance *of, const unsigned *refs, size_t n, double *values)
{
    for (size_t i = 0; i < n; ++i) {
        const int k = refs[i] < TL_VALUES ? (int)refs[i] : TL_VALUES;
        if (k == TL_VALUES) {
            char text[80];
            snprintf(text, sizeof text, "there is no Float64 (Real) value with reference %u", refs[i]);
            tl_say(of, text);
            return 0;
        }
        if (k >= (of->at.mode == TL_BEGINNING ? AT_STATES : AT_RATES)
            && of->at.mode & (TL_BEGINNING | TL_RUNNING) && !tl_refresh(of)) return 0;
        values[i] = of->at.v[k];
    }
    return 1;
}

/* Sets values by reference. Returns whether all may be set now and are numbers within their bounds. */
static int tl_set(tl_instance *of, const unsigned *refs, size_t n, const double *values)
{
    tl_memory *at = &of->at;
    const int is_start = at->mode & (TL_MADE | TL_BEGINNING);
    char text[160];
    for (size_t i = 0; i < n; ++i) {
        const int k = refs[i] < TL_VALUES ? (int)refs[i] : TL_VALUES;
        const char *wrong = 0;
        if (k == TL_VALUES) wrong = "there is no such Float64 (Real) value";
        else if (k < AT_PARAMETERS || k >= AT_RATES) wrong = "it is calculated";
        else if (k >= AT_STATES && !(is_start && tl_settable[k - AT_STATES])) wrong = "it is a state, and set as such";
        else if (k < AT_INPUTS && at->mode == TL_CONTINUOUS) wrong = "parameters change at events only";
        else if (!(values[i] - values[i] == 0.0) && !(TL_SAFE && k >= AT_INPUTS)) wrong = "it would be no finite number";
        else if (k < AT_INPUTS && !(values[i] >= tl_least[k - 1] && values[i] <= tl_most[k - 1]))
            wrong = "it would be beyond its bounds";
        if (wrong) {
            snprintf(text, sizeof text, "value %u cannot be set to %g: %s", refs[i], values[i], wrong);
            tl_say(of, text);
            return 0;
        }
    }
    for (size_t i = 0; i < n; ++i)
        if (at->v[refs[i]] != values[i]) at->v[refs[i]] = values[i], at->is_new = 1;
    at->is_current = 0;
    return 1;
}

static int tl_begin(tl_instance *of, double time, int has_tolerance, double tolerance)
{
    tl_memory *at = &of->at;
    if (has_tolerance && !(tolerance >= 1e-14 && tolerance < 1.0)) {
        tl_say(of, "no step can meet that tolerance: give 1e-14 or more");
        return 0;
    }
    if (has_tolerance) at->run.rtol = tolerance, at->run.atol = tolerance * (TL_ATOL / TL_RTOL);
    at->v[0] = at->origin = time, at->is_current = 0, at->mode = TL_BEGINNING;
    return 1;
}

static int tl_begun(tl_instance *of)
{
    if (!tl_refresh(of)) return 0;
    of->at.mode = of->is_exchange ? TL_EVENT : TL_STEPPING;
    if (!of->is_exchange) of->at.sample = 0.0; /* the first step samples the values that are set until then */
    of->at.is_current = 0, of->at.is_new = 1;
    return 1;
}

static int tl_agreed(tl_instance *of)
{
    tl_memory *at = &of->at;
    if (tl_agree(&tl_system, &at->run)) return 1;
    tl_explain(of, at->v[0]);
    return 0;
}

/* Updates the modes and takes a due sample; reports whether states changed. Returns whether it succeeded. */
static int tl_update(tl_instance *of, int *changed)
{
    tl_memory *at = &of->at;
    double before[NY + 1];
    if (!tl_settle(of)) return tl_explain(of, at->v[0]), 0;
    memcpy(before, at->run.y, sizeof(double) * NY);
    at->run.is_known = 0, at->is_current = 0;
    if (tl_is_due(at, at->v[0]) && !tl_sample(of)) return tl_explain(of, at->v[0]), 0;
    if (NY && !tl_agreed(of)) return 0;
    tl_arrived(at);
    *changed = memcmp(before, at->run.y, sizeof(double) * NY) != 0;
    return 1;
}

/* Returns whether to stop after a step of co-simulation. */
typedef int (*tl_between)(tl_instance *of);

/* Co-simulates up to a time. Returns whether it was reached. */
static int tl_go(tl_instance *of, double until, tl_between between)
{
    tl_memory *at = &of->at;
    tl_run *r = &at->run;
    int code = TL_STEPPED;
    const double most = r->steps + r->rejected + TL_DEFAULT_MAX_STEPS;
    if (!tl_settle(of)) return tl_explain(of, r->time), 0;
    if (at->is_new) r->is_known = 0, at->is_new = 0;
    at->is_current = 0;
    while (r->time < until) {
        double limit = until;
        if (tl_is_due(at, r->time)) {
            if (!tl_sample(of)) return tl_explain(of, r->time), 0;
            r->is_known = 0;
        }
        /* a sample at the end, to rounding, belongs to the next step and its inputs */
        if (TL_PERIOD > 0.0 && tl_due(at) < until - 1e-9 * TL_PERIOD) limit = tl_due(at);
        if (!NY) r->time = limit;
        else code = r->steps + r->rejected < most ? tl_next(&tl_system, &tl_steps, r, limit) : TL_CROWDED;
        at->v[0] = r->time, at->is_current = 0;
        if (code != TL_STEPPED) {
            if (code == TL_CROWDED)
                tl_say(of, "events or steps pile up: ask for larger errors or stiff steps; dry friction of the machine "
                    "itself that sticks makes steps endlessly short");
            else tl_explain(of, r->time);
            return 0;
        }
        if (between && r->time < until && between(of)) break;
    }
    if (NY && NS && !r->is_known && !tl_agreed(of)) return 0;
    tl_arrived(at);
    return 1;
}

/* Returns whether a step may have this start and end; importers round times. */
static int tl_is_step(tl_instance *of, double from, double length)
{
    char text[160];
    const double off = from - of->at.v[0];
    if (length >= 0.0 && length - length == 0.0 && fabs(off) <= 1e-9 * (1.0 + fabs(from))) return 1;
    snprintf(text, sizeof text, "a step of %g s from %.9g s cannot be made: the instance is at %.9g s", length, from,
        of->at.v[0]);
    tl_say(of, text);
    return 0;
}

static int tl_set_states(tl_instance *of, const double *x, size_t n)
{
    if (n != NY) return tl_say(of, "another number of continuous states is meant"), 0;
    if (NY && memcmp(of->at.v + AT_STATES, x, sizeof(double) * NY)) {
        memcpy(of->at.v + AT_STATES, x, sizeof(double) * NY);
        of->at.is_current = 0;
    }
    return 1;
}

static int tl_copy(tl_instance *of, int from, size_t size, double *to, size_t n)
{
    if (n != size) return tl_say(of, "another number of values is meant"), 0;
    if (from >= AT_RATES && !tl_refresh(of)) return 0;
    memcpy(to, of->at.v + from, sizeof(double) * n);
    return 1;
}

/* Copies of an instance's memory. */
static int tl_save(tl_instance *of, void **state)
{
    if (!*state) *state = malloc(sizeof(tl_memory));
    if (!*state) return tl_say(of, "no memory for a state"), 0;
    memcpy(*state, &of->at, sizeof(tl_memory));
    return 1;
}

static int tl_restore(tl_instance *of, const void *state)
{
    if (!state) return tl_say(of, "there is no state to go back to"), 0;
    tl_take(&of->at, state);
    return 1;
}

/* A serialized state starts with a mark of its FMU. */
enum { TL_MARK = 40 };

static int tl_serialize(tl_instance *of, const void *state, char *bytes, size_t size)
{
    if (!state || size != TL_MARK + sizeof(tl_memory)) return tl_say(of, "a serialized state has another size"), 0;
    memset(bytes, 0, TL_MARK);
    strncpy(bytes, TL_TOKEN, TL_MARK - 1);
    memcpy(bytes + TL_MARK, state, sizeof(tl_memory));
    return 1;
}

static int tl_deserialize(tl_instance *of, const char *bytes, size_t size, void **state)
{
    if (size != TL_MARK + sizeof(tl_memory) || strncmp(bytes, TL_TOKEN, TL_MARK - 1))
        return tl_say(of, "these bytes are no state of this FMU"), 0;
    if (!*state) *state = malloc(sizeof(tl_memory));
    if (!*state) return tl_say(of, "no memory for a state"), 0;
    memcpy(*state, bytes + TL_MARK, sizeof(tl_memory));
    return 1;
}
