/* The functions of FMI 3.0 that the other version does not have, or has in another form. */

static void tl_tell3(tl_instance *of, int is_error, const char *text)
{
    fmi3LogMessageCallback log = (fmi3LogMessageCallback)of->log;
    if (log && (of->is_logging || is_error))
        log(of->owner, is_error ? fmi3Error : fmi3OK, is_error ? "logStatusError" : "logEvents", text);
}

static fmi3Instance tl_new3(fmi3String name, fmi3String token, int is_exchange, fmi3Boolean logging,
    fmi3InstanceEnvironment owner, fmi3LogMessageCallback log)
{
    tl_instance *of;
    const char *wrong = tl_wrong(token);
    if (wrong) {
        if (log) log(owner, fmi3Error, "logStatusError", wrong);
        return 0;
    }
    if (!(of = tl_new(name, is_exchange, logging))) return 0;
    of->owner = owner, of->log = (void (*)(void))log, of->tell = tl_tell3;
    return of;
}

FMI3_Export fmi3Instance TL_NAME(fmi3InstantiateModelExchange)(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3InstanceEnvironment owner, fmi3LogMessageCallback log)
{
    return tl_new3(name, token, 1, logging, owner, log);
}

FMI3_Export fmi3Instance TL_NAME(fmi3InstantiateCoSimulation)(fmi3String name, fmi3String token, fmi3String resources,
    fmi3Boolean visible, fmi3Boolean logging, fmi3Boolean has_event_mode, fmi3Boolean may_return,
    const fmi3ValueReference required[], size_t n_required, fmi3InstanceEnvironment owner, fmi3LogMessageCallback log,
    fmi3IntermediateUpdateCallback update)
{
    tl_instance *of;
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
    if (log) log(owner, fmi3Error, "logStatusError", "there is no scheduled execution");
    return 0;
}

TL_CALL(EnterInitializationMode)(fmi3Instance c, fmi3Boolean has_tolerance, fmi3Float64 tolerance,
    fmi3Float64 start, fmi3Boolean has_stop, fmi3Float64 stop)
{
    TL_WHERE(TL_MADE, EnterInitializationMode);
    return tl_done(c, tl_begin(c, start, has_tolerance, tolerance));
}

TL_CALL(GetFloat64)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, fmi3Float64 values[],
    size_t n_values)
{
    TL_WHERE(~0, GetFloat64);
    return TL_DONE(n == n_values && tl_get(c, refs, n, values));
}

TL_CALL(SetFloat64)(fmi3Instance c, const fmi3ValueReference refs[], size_t n, const fmi3Float64 values[],
    size_t n_values)
{
    TL_WHERE(TL_MADE | TL_BEGINNING | TL_RUNNING, SetFloat64);
    return TL_DONE(n == n_values && tl_set(c, refs, n, values));
}

#define TL_TYPE3(name) \
    TL_NONE(Get##name, fmi3##name values[], size_t n_values) TL_NONE(Set##name, const fmi3##name values[], size_t n_values)
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
TL_NONE(GetBinary, size_t sizes[], fmi3Binary values[], size_t n_values)
TL_NONE(SetBinary, const size_t sizes[], const fmi3Binary values[], size_t n_values)
TL_NONE(GetClock, fmi3Clock values[])
TL_NONE(SetClock, const fmi3Clock values[])
TL_NONE(GetIntervalDecimal, fmi3Float64 intervals[], fmi3IntervalQualifier qualifiers[])
TL_NONE(GetIntervalFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[], fmi3IntervalQualifier qualifiers[])
TL_NONE(GetShiftDecimal, fmi3Float64 shifts[])
TL_NONE(GetShiftFraction, fmi3UInt64 counters[], fmi3UInt64 resolutions[])
TL_NONE(SetIntervalDecimal, const fmi3Float64 intervals[])
TL_NONE(SetIntervalFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])
TL_NONE(SetShiftDecimal, const fmi3Float64 shifts[])
TL_NONE(SetShiftFraction, const fmi3UInt64 counters[], const fmi3UInt64 resolutions[])

TL_ABSENT(GetNumberOfVariableDependencies, "dependencies do not change", fmi3ValueReference reference, size_t *n)
TL_ABSENT(GetVariableDependencies, "dependencies do not change", fmi3ValueReference dependent, size_t places[],
    fmi3ValueReference independents[], size_t elements[], fmi3DependencyKind kinds[], size_t n)
/* Directional and adjoint derivatives. */
#define TL_DERIVATIVE3(name, what) \
    TL_ABSENT(name, what, const fmi3ValueReference unknowns[], size_t n_unknowns, const fmi3ValueReference knowns[], \
        size_t n_knowns, const fmi3Float64 seed[], size_t n_seed, fmi3Float64 sensitivity[], size_t n_sensitivity)
TL_DERIVATIVE3(GetDirectionalDerivative, "there are no directional derivatives")
TL_DERIVATIVE3(GetAdjointDerivative, "there are no adjoint derivatives")
TL_ABSENT(GetOutputDerivatives, "there are no derivatives of outputs", const fmi3ValueReference refs[], size_t n,
    const fmi3Int32 orders[], fmi3Float64 values[], size_t n_values)
TL_ABSENT(ActivateModelPartition, "there is no scheduled execution", fmi3ValueReference clock, fmi3Float64 time)
TL_SIMPLE(EnterConfigurationMode, ~0, return tl_absent(c, "nothing can be configured"))
TL_SIMPLE(ExitConfigurationMode, ~0, return tl_absent(c, "nothing can be configured"))
TL_SIMPLE(EnterStepMode, ~0, return tl_absent(c, "co-simulation has no event mode here"))

/* Model exchange. */

TL_SIMPLE(EvaluateDiscreteStates, TL_BEGINNING | TL_EVENT, return fmi3OK)

TL_CALL(UpdateDiscreteStates)(fmi3Instance c, fmi3Boolean *needed, fmi3Boolean *end, fmi3Boolean *nominals,
    fmi3Boolean *values, fmi3Boolean *has_next, fmi3Float64 *next)
{
    int changed = 0;
    TL_WHERE(TL_EVENT, UpdateDiscreteStates);
    *needed = *end = *nominals = *values = *has_next = 0, *next = 0.0;
    if (!tl_update(c, &changed)) return tl_done(c, 0);
    *values = changed != 0, *has_next = TL_PERIOD > 0.0, *next = tl_due(&((tl_instance *)c)->at);
    return fmi3OK;
}

#define TL_COUNT3(name, count) \
    TL_CALL(name)(fmi3Instance c, size_t *n) \
    { \
        *n = count; \
        return fmi3OK; \
    }
TL_COUNT3(GetNumberOfEventIndicators, NS + NG)
TL_COUNT3(GetNumberOfContinuousStates, NY)

/* Co-simulation. */

/* Asks the importer after a step of the integrator whether to stop. */
static int tl_between3(tl_instance *of)
{
    fmi3IntermediateUpdateCallback update = (fmi3IntermediateUpdateCallback)of->update;
    fmi3Boolean is_wanted = 0;
    fmi3Float64 when = of->at.v[0];
    if (!update) return 0;
    update(of->owner, of->at.v[0], 0, 1, 1, of->may_return != 0, &is_wanted, &when);
    return of->may_return && is_wanted && when <= of->at.v[0];
}

TL_CALL(DoStep)(fmi3Instance c, fmi3Float64 from, fmi3Float64 length, fmi3Boolean is_final,
    fmi3Boolean *event, fmi3Boolean *end, fmi3Boolean *early, fmi3Float64 *last)
{
    tl_instance *of = c;
    int good;
    TL_WHERE(TL_STEPPING, DoStep);
    *event = *end = *early = 0, *last = of->at.v[0];
    if (!tl_is_step(of, from, length)) return fmi3Error;
    good = tl_go(of, from + length, of->update ? tl_between3 : 0);
    *last = of->at.v[0], *early = good && *last < from + length;
    return tl_done(of, good);
}
