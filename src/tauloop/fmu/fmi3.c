/* The functions of FMI 3.0 over an instance.

   Types are those of the standard's header, of which nothing else is needed; with FMI3_HEADERS the header itself is
   included, and the compiler compares. */

#ifdef FMI3_HEADERS
#include "fmi3Functions.h"
#else
#include <stdbool.h>
#include <stdint.h>
typedef void *fmi3Instance;
typedef void *fmi3InstanceEnvironment;
typedef void *fmi3FMUState;
typedef uint32_t fmi3ValueReference;
typedef float fmi3Float32;
typedef double fmi3Float64;
typedef int8_t fmi3Int8;
typedef uint8_t fmi3UInt8;
typedef int16_t fmi3Int16;
typedef uint16_t fmi3UInt16;
typedef int32_t fmi3Int32;
typedef uint32_t fmi3UInt32;
typedef int64_t fmi3Int64;
typedef uint64_t fmi3UInt64;
typedef bool fmi3Boolean;
typedef const char *fmi3String;
typedef uint8_t fmi3Byte;
typedef const fmi3Byte *fmi3Binary;
typedef bool fmi3Clock;
typedef enum { fmi3OK, fmi3Warning, fmi3Discard, fmi3Error, fmi3Fatal } fmi3Status;
typedef enum {
    fmi3Independent, fmi3Constant, fmi3Fixed, fmi3Tunable, fmi3Discrete, fmi3Dependent
} fmi3DependencyKind;
typedef enum { fmi3IntervalNotYetKnown, fmi3IntervalUnchanged, fmi3IntervalChanged } fmi3IntervalQualifier;
typedef void (*fmi3LogMessageCallback)(fmi3InstanceEnvironment, fmi3Status, fmi3String, fmi3String);
typedef void (*fmi3ClockUpdateCallback)(fmi3InstanceEnvironment);
typedef void (*fmi3IntermediateUpdateCallback)(fmi3InstanceEnvironment, fmi3Float64, fmi3Boolean, fmi3Boolean,
    fmi3Boolean, fmi3Boolean, fmi3Boolean *, fmi3Float64 *);
typedef void (*fmi3LockPreemptionCallback)(void);
typedef void (*fmi3UnlockPreemptionCallback)(void);
#ifndef FMI3_Export
#ifdef _WIN32
#define FMI3_Export __declspec(dllexport)
#elif defined __GNUC__
#define FMI3_Export __attribute__((visibility("default")))
#else
#define FMI3_Export
#endif
#endif
#endif

/* Names as the standard makes them where several FMUs are linked together. */
#if defined FMI3_FUNCTION_PREFIX && !defined FMI3_HEADERS && !defined _WIN32
#define TL_PASTE(a, b) a##b
#define TL_JOIN(a, b) TL_PASTE(a, b)
#define TL_NAME(name) TL_JOIN(FMI3_FUNCTION_PREFIX, name)
#else
#define TL_NAME(name) name
#endif
#define TL_CALL FMI3_Export fmi3Status

static void tl_tell3(tl_instance *of, int is_error, const char *text)
{
    fmi3LogMessageCallback log = (fmi3LogMessageCallback)of->log;
    if (log && (of->is_logging || is_error))
        log(of->owner, is_error ? fmi3Error : fmi3OK, is_error ? "logStatusError" : "logEvents", text);
}

/* A call that may be made in some modes; where it cannot be done the instance is in error. */
static fmi3Status tl_done3(tl_instance *of, int good)
{
    if (!good && of) of->at.mode = TL_FAILED;
    return good ? fmi3OK : fmi3Error;
}
#define TL_WHERE3(modes, what) if (!tl_may(c, modes, what)) return fmi3Error

FMI3_Export const char *TL_NAME(fmi3GetVersion)(void) { return "3.0"; }

TL_CALL TL_NAME(fmi3SetDebugLogging)(fmi3Instance c, fmi3Boolean on, size_t n, const fmi3String categories[])
{
    (void)n, (void)categories;
    TL_WHERE3(~0, "fmi3SetDebugLogging");
    ((tl_instance *)c)->is_logging = on;
    return fmi3OK;
}

static fmi3Instance tl_new3(fmi3String name, fmi3String token, int is_exchange, fmi3Boolean logging,
    fmi3InstanceEnvironment owner, fmi3LogMessageCallback log)
{
    tl_instance *of;
    if (!token || strcmp(token, TL_TOKEN)) {
        if (log)
            log(owner, fmi3Error, "logStatusError", "the instantiation token is not that of this FMU: its binary and its "
                "modelDescription.xml do not belong together");
        return 0;
    }
    if (!(of = tl_new(name, is_exchange, logging))) return 0;
    of->owner = owner, of->log = (void (*)(void))log, of->tell = tl_tell3;
    return of;
}

FMI3_Export fmi3Instance TL_NAME(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment owner, fmi3LogMessageCallback log)
{
    (void)resources, (void)visible;
    return tl_new3(name, token, 1, logging, owner, log);
}

FMI3_Export fmi3Instance TL_NAME(fmi3InstantiateCoSimulation)(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean has_event_mode, fmi3Boolean may_return,
    const fmi3ValueReference required[], size_t n_required, fmi3InstanceEnvironment owner, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update)
{
    tl_instance *of;
    (void)resources, (void)visible, (void)required, (void)n_required;
    if (has_event_mode) {
        if (log) log(owner, fmi3Error, "logStatusError", "co-simulation has no event mode here: hasEventMode is false");
        return 0;
    }
    of = tl_new3(name, token, 0, logging, owner, log);
    if (of) of->update = (void (*)(void))update, of->may_return = may_return;
    return of;
}

FMI3_Export fmi3Instance TL_NAME(fmi3InstantiateScheduledExecution)(fmi3String name, fmi3String token,
    fmi3String resources, fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment owner,
    fmi3LogMessageCallback log, fmi3ClockUpdateCallback clock, fmi3LockPreemptionCallback lock,
    fmi3UnlockPreemptionCallback unlock)
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)clock, (void)lock, (void)unlock;
    if (log) log(owner, fmi3Error, "logStatusError", "there is no scheduled execution");
    return 0;
}

FMI3_Export void TL_NAME(fmi3FreeInstance)(fmi3Instance c) { tl_free(c); }

TL_CALL TL_NAME(fmi3EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
    fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop)
{
    (void)has_stop, (void)stop;
    TL_WHERE3(TL_MADE, "fmi3EnterInitializationMode");
    return tl_done3(c, tl_begin(c, start, has_tolerance, tolerance));
}

TL_CALL TL_NAME(fmi3ExitInitializationMode)(fmi3Instance c)
{
    TL_WHERE3(TL_BEGINNING, "fmi3ExitInitializationMode");
    return tl_done3(c, tl_begun(c));
}

TL_CALL TL_NAME(fmi3EnterEventMode)(fmi3Instance c)
{
    TL_WHERE3(TL_CONTINUOUS | TL_EVENT, "fmi3EnterEventMode");
    ((tl_instance *)c)->at.mode = TL_EVENT;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3Terminate)(fmi3Instance c)
{
    TL_WHERE3(TL_RUNNING, "fmi3Terminate");
    ((tl_instance *)c)->at.mode = TL_OVER;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3Reset)(fmi3Instance c)
{
    TL_WHERE3(~0, "fmi3Reset");
    tl_reset(c);
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3GetFloat64)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, fmi3Float64 values[],
    size_t n_values)
{
    TL_WHERE3(~0, "fmi3GetFloat64");
    return n == n_values && tl_get(c, refs, n, values) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3SetFloat64)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, const fmi3Float64 values[],
    size_t n_values)
{
    TL_WHERE3(TL_MADE | TL_BEGINNING | TL_RUNNING, "fmi3SetFloat64");
    return n == n_values && tl_set(c, refs, n, values) ? fmi3OK : fmi3Error;
}

/* There are no variables of other types. */
static fmi3Status tl_none3(fmi3Instance c, size_t n)
{
    if (n && c) tl_say(c, "all variables of this FMU are Float64");
    return n || !c ? fmi3Error : fmi3OK;
}
#define TL_TYPE3(name) \
    TL_CALL TL_NAME(fmi3Get##name)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, fmi3##name values[], \
        size_t n_values) \
    { \
        (void)refs, (void)values, (void)n_values; \
        return tl_none3(c, n); \
    } \
    TL_CALL TL_NAME(fmi3Set##name)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, const fmi3##name values[], \
        size_t n_values) \
    { \
        (void)refs, (void)values, (void)n_values; \
        return tl_none3(c, n); \
    }
TL_TYPE3(Float32)
TL_TYPE3(Int8)
TL_TYPE3(UInt8)
TL_TYPE3(Int16)
TL_TYPE3(UInt16)
TL_TYPE3(Int32)
TL_TYPE3(UInt32)
TL_TYPE3(Int64)
TL_TYPE3(UInt64)
TL_TYPE3(Boolean)
TL_TYPE3(String)

TL_CALL TL_NAME(fmi3GetBinary)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, size_t sizes[],
    fmi3Binary values[], size_t n_values)
{
    (void)refs, (void)sizes, (void)values, (void)n_values;
    return tl_none3(c, n);
}

TL_CALL TL_NAME(fmi3SetBinary)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, const size_t sizes[],
    const fmi3Binary values[], size_t n_values)
{
    (void)refs, (void)sizes, (void)values, (void)n_values;
    return tl_none3(c, n);
}

/* Functions of clocks, which there are none of: references, their number, and so many arrays. */
#define TL_CLOCK3(name, ...) \
    TL_CALL TL_NAME(name)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, __VA_ARGS__) \
    { \
        (void)refs; \
        return tl_none3(c, n); \
    }
#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
TL_CLOCK3(fmi3GetClock, fmi3Clock values[])
TL_CLOCK3(fmi3SetClock, const fmi3Clock values[])
TL_CLOCK3(fmi3GetIntervalDecimal, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
TL_CLOCK3(fmi3GetIntervalFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])
TL_CLOCK3(fmi3GetShiftDecimal, fmi3Float64 shifts[])
TL_CLOCK3(fmi3GetShiftFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
TL_CLOCK3(fmi3SetIntervalDecimal, const fmi3Float64 intervals[])
TL_CLOCK3(fmi3SetIntervalFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
TL_CLOCK3(fmi3SetShiftDecimal, const fmi3Float64 shifts[])
TL_CLOCK3(fmi3SetShiftFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])

/* What modelDescription.xml says that there is not. */
#define TL_ABSENT3(name, what, ...) \
    TL_CALL TL_NAME(name)(fmi3Instance c, __VA_ARGS__) \
    { \
        if (c) tl_say(c, what); \
        return fmi3Error; \
    }
TL_ABSENT3(fmi3GetNumberOfVariableDependencies, "dependencies do not change", fmi3ValueReference reference, size_t *n)
TL_ABSENT3(fmi3GetVariableDependencies, "dependencies do not change", fmi3ValueReference dependent, size_t places[],
    fmi3ValueReference independents[], size_t elements[], fmi3DependencyKind kinds[], size_t n)
TL_ABSENT3(fmi3GetDirectionalDerivative, "there are no directional derivatives", const fmi3ValueReference unknowns[],
    size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
    fmi3Float64 sensitivity[], size_t n_sensitivity)
TL_ABSENT3(fmi3GetAdjointDerivative, "there are no adjoint derivatives", const fmi3ValueReference unknowns[],
    size_t n_unknowns, const fmi3ValueReference knowns[], size_t n_knowns, const fmi3Float64 seed[], size_t n_seed,
    fmi3Float64 sensitivity[], size_t n_sensitivity)
TL_ABSENT3(fmi3GetOutputDerivatives, "there are no derivatives of outputs", const fmi3ValueReference refs[], size_t n,
    const fmi3Int32 orders[], fmi3Float64 values[], size_t n_values)
TL_ABSENT3(fmi3ActivateModelPartition, "there is no scheduled execution", fmi3ValueReference clock, fmi3Float64 time)
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

static fmi3Status tl_absent3(fmi3Instance c, const char *text)
{
    if (c) tl_say(c, text);
    return fmi3Error;
}

TL_CALL TL_NAME(fmi3EnterConfigurationMode)(fmi3Instance c) { return tl_absent3(c, "nothing can be configured"); }
TL_CALL TL_NAME(fmi3ExitConfigurationMode)(fmi3Instance c) { return tl_absent3(c, "nothing can be configured"); }
TL_CALL TL_NAME(fmi3EnterStepMode)(fmi3Instance c) { return tl_absent3(c, "co-simulation has no event mode here"); }

TL_CALL TL_NAME(fmi3GetFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    TL_WHERE3(~0, "fmi3GetFMUState");
    return tl_save(c, state) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3SetFMUState)(fmi3Instance c, fmi3FMUState state)
{
    TL_WHERE3(~0, "fmi3SetFMUState");
    return tl_restore(c, state) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3FreeFMUState)(fmi3Instance c, fmi3FMUState *state)
{
    (void)c;
    if (state) free(*state), *state = 0;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3SerializedFMUStateSize)(fmi3Instance c, fmi3FMUState state, size_t *size)
{
    (void)c, (void)state;
    *size = TL_MARK + sizeof(tl_memory);
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3SerializeFMUState)(fmi3Instance c, fmi3FMUState state, fmi3Byte bytes[], size_t size)
{
    return tl_serialize(c, state, (char *)bytes, size) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3DeserializeFMUState)(fmi3Instance c, const fmi3Byte bytes[], size_t size, fmi3FMUState *state)
{
    return tl_deserialize(c, (const char *)bytes, size, state) ? fmi3OK : fmi3Error;
}

/* Model exchange. */

TL_CALL TL_NAME(fmi3EvaluateDiscreteStates)(fmi3Instance c)
{
    TL_WHERE3(TL_BEGINNING | TL_EVENT, "fmi3EvaluateDiscreteStates");
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *needed, fmi3Boolean *end, fmi3Boolean *nominals,
    fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next)
{
    int changed = 0;
    TL_WHERE3(TL_EVENT, "fmi3UpdateDiscreteStates");
    *needed = *end = *nominals = *values = *has_next = 0, *next = 0.0;
    if (!tl_update(c, &changed)) return tl_done3(c, 0);
    *values = changed != 0, *has_next = TL_PERIOD > 0.0, *next = tl_due(&((tl_instance *)c)->at);
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3EnterContinuousTimeMode)(fmi3Instance c)
{
    TL_WHERE3(TL_EVENT, "fmi3EnterContinuousTimeMode");
    ((tl_instance *)c)->at.mode = TL_CONTINUOUS;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3CompletedIntegratorStep)(fmi3Instance c, fmi3Boolean is_final, fmi3Boolean *event, fmi3Boolean *end)
{
    (void)is_final;
    TL_WHERE3(TL_CONTINUOUS, "fmi3CompletedIntegratorStep");
    *event = *end = 0;
    if (!tl_refresh(c)) return fmi3Error;
    tl_arrived(&((tl_instance *)c)->at);
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3SetTime)(fmi3Instance c, fmi3Float64 time)
{
    TL_WHERE3(TL_EVENT | TL_CONTINUOUS, "fmi3SetTime");
    ((tl_instance *)c)->at.v[0] = time;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3SetContinuousStates)(fmi3Instance c, const fmi3Float64 x[], size_t n)
{
    TL_WHERE3(TL_CONTINUOUS, "fmi3SetContinuousStates");
    return tl_set_states(c, x, n) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3GetContinuousStateDerivatives)(fmi3Instance c, fmi3Float64 rates[], size_t n)
{
    TL_WHERE3(TL_BEGINNING | TL_RUNNING, "fmi3GetContinuousStateDerivatives");
    return tl_copy(c, AT_RATES, NY, rates, n) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3GetEventIndicators)(fmi3Instance c, fmi3Float64 guards[], size_t n)
{
    TL_WHERE3(TL_BEGINNING | TL_RUNNING, "fmi3GetEventIndicators");
    return tl_copy(c, AT_GUARDS, NS, guards, n) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3GetContinuousStates)(fmi3Instance c, fmi3Float64 x[], size_t n)
{
    TL_WHERE3(TL_BEGINNING | TL_RUNNING, "fmi3GetContinuousStates");
    return tl_copy(c, AT_STATES, NY, x, n) ? fmi3OK : fmi3Error;
}

TL_CALL TL_NAME(fmi3GetNominalsOfContinuousStates)(fmi3Instance c, fmi3Float64 nominals[], size_t n)
{
    if (!c || n != NY) return fmi3Error;
    for (size_t i = 0; i < n; ++i) nominals[i] = tl_nominal[i];
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3GetNumberOfEventIndicators)(fmi3Instance c, size_t *n)
{
    (void)c;
    *n = NS;
    return fmi3OK;
}

TL_CALL TL_NAME(fmi3GetNumberOfContinuousStates)(fmi3Instance c, size_t *n)
{
    (void)c;
    *n = NY;
    return fmi3OK;
}

/* Co-simulation. */

/* Asks the importer, after a step of the integrator, whether to stop there. */
static int tl_between3(tl_instance *of)
{
    fmi3IntermediateUpdateCallback update = (fmi3IntermediateUpdateCallback)of->update;
    fmi3Boolean is_wanted = 0;
    fmi3Float64 when = of->at.v[0];
    if (!update) return 0;
    update(of->owner, of->at.v[0], 0, 1, 1, of->may_return != 0, &is_wanted, &when);
    return of->may_return && is_wanted && when <= of->at.v[0];
}

TL_CALL TL_NAME(fmi3DoStep)(fmi3Instance c, fmi3Float64 from, fmi3Float64 length, fmi3Boolean is_final,
    fmi3Boolean *event, fmi3Boolean *end, fmi3Boolean *early, fmi3Float64 *last)
{
    tl_instance *of = c;
    int good;
    (void)is_final;
    TL_WHERE3(TL_STEPPING, "fmi3DoStep");
    *event = *end = *early = 0, *last = of->at.v[0];
    if (!tl_is_step(of, from, length)) return fmi3Error;
    good = tl_go(of, from + length, of->update ? tl_between3 : 0);
    *last = of->at.v[0], *early = good && *last < from + length;
    return tl_done3(of, good);
}
