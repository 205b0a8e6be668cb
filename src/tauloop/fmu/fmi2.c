/* The functions of FMI 2.0 over an instance.

   Types are those of the standard's header, of which nothing else is needed; with FMI2_HEADERS the header itself is
   included, and the compiler compares. */

#ifdef FMI2_HEADERS
#include "fmi2Functions.h"
#else
typedef void *fmi2Component;
typedef void *fmi2ComponentEnvironment;
typedef void *fmi2FMUstate;
typedef unsigned int fmi2ValueReference;
typedef double fmi2Real;
typedef int fmi2Integer;
typedef int fmi2Boolean;
typedef const char *fmi2String;
typedef char fmi2Byte;
typedef enum { fmi2OK, fmi2Warning, fmi2Discard, fmi2Error, fmi2Fatal, fmi2Pending } fmi2Status;
typedef enum { fmi2ModelExchange, fmi2CoSimulation } fmi2Type;
typedef enum { fmi2DoStepStatus, fmi2PendingStatus, fmi2LastSuccessfulTime, fmi2Terminated } fmi2StatusKind;
typedef struct {
    void (*logger)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(fmi2ComponentEnvironment, fmi2Status);
    fmi2ComponentEnvironment componentEnvironment;
} fmi2CallbackFunctions;
typedef struct {
    fmi2Boolean newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged;
    fmi2Boolean valuesOfContinuousStatesChanged, nextEventTimeDefined;
    fmi2Real nextEventTime;
} fmi2EventInfo;
#ifdef _WIN32
#define FMI2_Export __declspec(dllexport)
#elif defined __GNUC__
#define FMI2_Export __attribute__((visibility("default")))
#else
#define FMI2_Export
#endif
#endif

/* Names as the standard makes them where several FMUs are linked together. */
#if defined FMI2_FUNCTION_PREFIX && !defined FMI2_HEADERS
#define TL_PASTE(a, b) a##b
#define TL_JOIN(a, b) TL_PASTE(a, b)
#define TL_NAME(name) TL_JOIN(FMI2_FUNCTION_PREFIX, name)
#else
#define TL_NAME(name) name
#endif
#define TL_CALL FMI2_Export fmi2Status

typedef void (*tl_logger2)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);

static void tl_tell2(tl_instance *of, int is_error, const char *text)
{
    tl_logger2 log = (tl_logger2)of->log;
    if (log && (of->is_logging || is_error))
        log(of->owner, of->name, is_error ? fmi2Error : fmi2OK, is_error ? "logStatusError" : "logEvents", "%s", text);
}

/* A call that may be made in some modes; where it cannot be done the instance is in error. */
static fmi2Status tl_done2(tl_instance *of, int good)
{
    if (!good && of) of->at.mode = TL_FAILED;
    return good ? fmi2OK : fmi2Error;
}
#define TL_WHERE2(modes, what) if (!tl_may(c, modes, what)) return fmi2Error

FMI2_Export const char *TL_NAME(fmi2GetTypesPlatform)(void) { return "default"; }
FMI2_Export const char *TL_NAME(fmi2GetVersion)(void) { return "2.0"; }

TL_CALL TL_NAME(fmi2SetDebugLogging)(fmi2Component c, fmi2Boolean on, size_t n, const fmi2String categories[])
{
    (void)n, (void)categories;
    TL_WHERE2(~0, "fmi2SetDebugLogging");
    ((tl_instance *)c)->is_logging = on;
    return fmi2OK;
}

FMI2_Export fmi2Component TL_NAME(fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    tl_instance *of;
    (void)resources, (void)visible;
    if (!functions || !functions->logger) return 0;
    if (!guid || strcmp(guid, TL_TOKEN)) {
        functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError", "%s",
            "the guid is not that of this FMU: its binary and its modelDescription.xml do not belong together");
        return 0;
    }
    if (!(of = tl_new(name, type == fmi2ModelExchange, logging))) return 0;
    of->owner = functions->componentEnvironment, of->log = (void (*)(void))functions->logger, of->tell = tl_tell2;
    return of;
}

FMI2_Export void TL_NAME(fmi2FreeInstance)(fmi2Component c) { tl_free(c); }

TL_CALL TL_NAME(fmi2SetupExperiment)(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
    fmi2Boolean has_stop, fmi2Real stop)
{
    (void)has_stop, (void)stop;
    TL_WHERE2(TL_MADE, "fmi2SetupExperiment");
    if (!tl_begin(c, start, has_tolerance, tolerance)) return tl_done2(c, 0);
    ((tl_instance *)c)->at.mode = TL_MADE;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2EnterInitializationMode)(fmi2Component c)
{
    TL_WHERE2(TL_MADE, "fmi2EnterInitializationMode");
    ((tl_instance *)c)->at.mode = TL_BEGINNING;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2ExitInitializationMode)(fmi2Component c)
{
    TL_WHERE2(TL_BEGINNING, "fmi2ExitInitializationMode");
    return tl_done2(c, tl_begun(c));
}

TL_CALL TL_NAME(fmi2Terminate)(fmi2Component c)
{
    TL_WHERE2(TL_RUNNING, "fmi2Terminate");
    ((tl_instance *)c)->at.mode = TL_OVER;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2Reset)(fmi2Component c)
{
    TL_WHERE2(~0, "fmi2Reset");
    tl_reset(c);
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2GetReal)(fmi2Component c, const fmi2ValueReference refs[], size_t n, fmi2Real values[])
{
    TL_WHERE2(~TL_MADE, "fmi2GetReal");
    return tl_get(c, refs, n, values) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2SetReal)(fmi2Component c, const fmi2ValueReference refs[], size_t n, const fmi2Real values[])
{
    TL_WHERE2(TL_MADE | TL_BEGINNING | TL_RUNNING, "fmi2SetReal");
    return tl_set(c, refs, n, values) ? fmi2OK : fmi2Error;
}

/* There are no variables of other types. */
static fmi2Status tl_none2(fmi2Component c, size_t n)
{
    if (n && c) tl_say(c, "all variables of this FMU are Real");
    return n || !c ? fmi2Error : fmi2OK;
}
#define TL_TYPE2(name, type) \
    TL_CALL TL_NAME(fmi2Get##name)(fmi2Component c, const fmi2ValueReference refs[], size_t n, type values[]) \
    { \
        (void)refs, (void)values; \
        return tl_none2(c, n); \
    } \
    TL_CALL TL_NAME(fmi2Set##name)(fmi2Component c, const fmi2ValueReference refs[], size_t n, const type values[]) \
    { \
        (void)refs, (void)values; \
        return tl_none2(c, n); \
    }
TL_TYPE2(Integer, fmi2Integer)
TL_TYPE2(Boolean, fmi2Boolean)
TL_TYPE2(String, fmi2String)

TL_CALL TL_NAME(fmi2GetFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    TL_WHERE2(~0, "fmi2GetFMUstate");
    return tl_save(c, state) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2SetFMUstate)(fmi2Component c, fmi2FMUstate state)
{
    TL_WHERE2(~0, "fmi2SetFMUstate");
    return tl_restore(c, state) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2FreeFMUstate)(fmi2Component c, fmi2FMUstate *state)
{
    (void)c;
    if (state) free(*state), *state = 0;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2SerializedFMUstateSize)(fmi2Component c, fmi2FMUstate state, size_t *size)
{
    (void)c, (void)state;
    *size = TL_MARK + sizeof(tl_memory);
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2SerializeFMUstate)(fmi2Component c, fmi2FMUstate state, fmi2Byte bytes[], size_t size)
{
    return tl_serialize(c, state, bytes, size) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2DeSerializeFMUstate)(fmi2Component c, const fmi2Byte bytes[], size_t size, fmi2FMUstate *state)
{
    return tl_deserialize(c, bytes, size, state) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2GetDirectionalDerivative)(fmi2Component c, const fmi2ValueReference unknowns[], size_t n_unknowns,
    const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real known[], fmi2Real unknown[])
{
    (void)unknowns, (void)n_unknowns, (void)knowns, (void)n_knowns, (void)known, (void)unknown;
    if (c) tl_say(c, "there are no directional derivatives");
    return fmi2Error;
}

/* Model exchange. */

TL_CALL TL_NAME(fmi2EnterEventMode)(fmi2Component c)
{
    TL_WHERE2(TL_CONTINUOUS | TL_EVENT, "fmi2EnterEventMode");
    ((tl_instance *)c)->at.mode = TL_EVENT;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2NewDiscreteStates)(fmi2Component c, fmi2EventInfo *info)
{
    const fmi2EventInfo none = {0, 0, 0, 0, 0, 0.0};
    int changed = 0;
    TL_WHERE2(TL_EVENT, "fmi2NewDiscreteStates");
    *info = none;
    if (!tl_update(c, &changed)) return tl_done2(c, 0);
    info->valuesOfContinuousStatesChanged = changed;
    info->nextEventTimeDefined = TL_PERIOD > 0.0;
    info->nextEventTime = tl_due(&((tl_instance *)c)->at);
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2EnterContinuousTimeMode)(fmi2Component c)
{
    TL_WHERE2(TL_EVENT, "fmi2EnterContinuousTimeMode");
    ((tl_instance *)c)->at.mode = TL_CONTINUOUS;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2CompletedIntegratorStep)(fmi2Component c, fmi2Boolean is_final, fmi2Boolean *event, fmi2Boolean *end)
{
    (void)is_final;
    TL_WHERE2(TL_CONTINUOUS, "fmi2CompletedIntegratorStep");
    *event = *end = 0;
    if (!tl_refresh(c)) return fmi2Error;
    tl_arrived(&((tl_instance *)c)->at);
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2SetTime)(fmi2Component c, fmi2Real time)
{
    TL_WHERE2(TL_EVENT | TL_CONTINUOUS, "fmi2SetTime");
    ((tl_instance *)c)->at.v[0] = time;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2SetContinuousStates)(fmi2Component c, const fmi2Real x[], size_t n)
{
    TL_WHERE2(TL_CONTINUOUS, "fmi2SetContinuousStates");
    return tl_set_states(c, x, n) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2GetDerivatives)(fmi2Component c, fmi2Real rates[], size_t n)
{
    TL_WHERE2(TL_BEGINNING | TL_RUNNING, "fmi2GetDerivatives");
    return tl_copy(c, AT_RATES, NY, rates, n) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2GetEventIndicators)(fmi2Component c, fmi2Real guards[], size_t n)
{
    TL_WHERE2(TL_BEGINNING | TL_RUNNING, "fmi2GetEventIndicators");
    return tl_copy(c, AT_GUARDS, NS, guards, n) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2GetContinuousStates)(fmi2Component c, fmi2Real x[], size_t n)
{
    TL_WHERE2(TL_BEGINNING | TL_RUNNING, "fmi2GetContinuousStates");
    return tl_copy(c, AT_STATES, NY, x, n) ? fmi2OK : fmi2Error;
}

TL_CALL TL_NAME(fmi2GetNominalsOfContinuousStates)(fmi2Component c, fmi2Real nominals[], size_t n)
{
    if (!c || n != NY) return fmi2Error;
    for (size_t i = 0; i < n; ++i) nominals[i] = tl_nominal[i];
    return fmi2OK;
}

/* Co-simulation. */

TL_CALL TL_NAME(fmi2SetRealInputDerivatives)(fmi2Component c, const fmi2ValueReference refs[], size_t n,
    const fmi2Integer order[], const fmi2Real values[])
{
    (void)refs, (void)order, (void)values;
    if (n && c) tl_say(c, "inputs are held between steps: they have no derivatives");
    return n || !c ? fmi2Error : fmi2OK;
}

TL_CALL TL_NAME(fmi2GetRealOutputDerivatives)(fmi2Component c, const fmi2ValueReference refs[], size_t n,
    const fmi2Integer order[], fmi2Real values[])
{
    (void)refs, (void)order, (void)values;
    if (n && c) tl_say(c, "there are no derivatives of outputs");
    return n || !c ? fmi2Error : fmi2OK;
}

TL_CALL TL_NAME(fmi2DoStep)(fmi2Component c, fmi2Real from, fmi2Real length, fmi2Boolean is_final)
{
    tl_instance *of = c;
    (void)is_final;
    TL_WHERE2(TL_STEPPING, "fmi2DoStep");
    if (!tl_is_step(of, from, length)) return fmi2Error;
    return tl_done2(of, tl_go(of, from + length, 0));
}

TL_CALL TL_NAME(fmi2CancelStep)(fmi2Component c)
{
    if (c) tl_say(c, "no step is ever pending");
    return fmi2Error;
}

TL_CALL TL_NAME(fmi2GetStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Status *value)
{
    (void)c, (void)kind, (void)value;
    return fmi2Discard;
}

TL_CALL TL_NAME(fmi2GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    if (!c || kind != fmi2LastSuccessfulTime) return fmi2Discard;
    *value = ((tl_instance *)c)->at.v[0];
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2GetIntegerStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Integer *value)
{
    (void)c, (void)kind, (void)value;
    return fmi2Discard;
}

TL_CALL TL_NAME(fmi2GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    if (!c || kind != fmi2Terminated) return fmi2Discard;
    *value = 0;
    return fmi2OK;
}

TL_CALL TL_NAME(fmi2GetStringStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2String *value)
{
    (void)c, (void)kind, (void)value;
    return fmi2Discard;
}
