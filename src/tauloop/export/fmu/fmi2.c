/* The functions of FMI 2.0 that the other version does not have, or has in another form. */

typedef void (*tl_logger2)(fmi2ComponentEnvironment, fmi2String, fmi2Status, fmi2String, fmi2String, ...);

static void tl_tell2(tl_instance *of, int is_error, const char *text)
{
    tl_logger2 log = (tl_logger2)of->log;
    if (log && (of->is_logging || is_error))
        log(of->owner, of->name, is_error ? fmi2Error : fmi2OK, is_error ? "logStatusError" : "logEvents", "%s", text);
}

FMI2_Export const char *TL_NAME(fmi2GetTypesPlatform)(void) { return "default"; }

FMI2_Export fmi2Component TL_NAME(fmi2Instantiate)(fmi2String name, fmi2Type type, fmi2String guid, fmi2String resources,
    const fmi2CallbackFunctions *functions, fmi2Boolean visible, fmi2Boolean logging)
{
    tl_instance *of;
    const char *wrong = tl_wrong(guid);
    if (!functions || !functions->logger) return 0;
    if (wrong) {
        functions->logger(functions->componentEnvironment, name, fmi2Error, "logStatusError", "%s", wrong);
        return 0;
    }
    if (!(of = tl_new(name, type == fmi2ModelExchange, logging))) return 0;
    of->owner = functions->componentEnvironment, of->log = (void (*)(void))functions->logger, of->tell = tl_tell2;
    return of;
}

TL_CALL(SetupExperiment)(fmi2Component c, fmi2Boolean has_tolerance, fmi2Real tolerance, fmi2Real start,
    fmi2Boolean has_stop, fmi2Real stop)
{
    TL_WHERE(TL_MADE, SetupExperiment);
    if (!tl_begin(c, start, has_tolerance, tolerance)) return tl_done(c, 0);
    ((tl_instance *)c)->at.mode = TL_MADE;
    return fmi2OK;
}

TL_CALL(EnterInitializationMode)(fmi2Component c)
{
    TL_WHERE(TL_MADE, EnterInitializationMode);
    ((tl_instance *)c)->at.mode = TL_BEGINNING;
    return fmi2OK;
}

TL_CALL(GetReal)(fmi2Component c, const fmi2ValueReference refs[], size_t n, fmi2Real values[])
{
    TL_WHERE(~TL_MADE, GetReal);
    return TL_DONE(tl_get(c, refs, n, values));
}

TL_CALL(SetReal)(fmi2Component c, const fmi2ValueReference refs[], size_t n, const fmi2Real values[])
{
    TL_WHERE(TL_MADE | TL_BEGINNING | TL_RUNNING, SetReal);
    return TL_DONE(tl_set(c, refs, n, values));
}

#define TL_TYPE2(name) TL_NONE(Get##name, fmi2##name values[]) TL_NONE(Set##name, const fmi2##name values[])
TL_TYPE2(Integer)
TL_TYPE2(Boolean)
TL_TYPE2(String)

TL_ABSENT(GetDirectionalDerivative, "there are no directional derivatives", const fmi2ValueReference unknowns[],
    size_t n_unknowns, const fmi2ValueReference knowns[], size_t n_knowns, const fmi2Real known[], fmi2Real unknown[])

/* Model exchange. */

TL_CALL(NewDiscreteStates)(fmi2Component c, fmi2EventInfo *info)
{
    const fmi2EventInfo none = {0, 0, 0, 0, 0, 0.0};
    int changed = 0;
    TL_WHERE(TL_EVENT, NewDiscreteStates);
    *info = none;
    if (!tl_update(c, &changed)) return tl_done(c, 0);
    info->valuesOfContinuousStatesChanged = changed;
    info->nextEventTimeDefined = TL_PERIOD > 0.0;
    info->nextEventTime = tl_due(&((tl_instance *)c)->at);
    return fmi2OK;
}

/* Co-simulation. */

/* Importers call these functions only if such variables exist. */
#define TL_DERIVATIVES2(name, what, values) \
    TL_CALL(name)(fmi2Component c, const fmi2ValueReference refs[], size_t n, const fmi2Integer order[], values) \
    { \
        return n ? tl_absent(c, what) : TL_DONE(c); \
    }
TL_DERIVATIVES2(SetRealInputDerivatives, "inputs are held between steps: they have no derivatives", const fmi2Real values[])
TL_DERIVATIVES2(GetRealOutputDerivatives, "there are no derivatives of outputs", fmi2Real values[])

TL_CALL(DoStep)(fmi2Component c, fmi2Real from, fmi2Real length, fmi2Boolean is_final)
{
    tl_instance *of = c;
    TL_WHERE(TL_STEPPING, DoStep);
    if (!tl_is_step(of, from, length)) return fmi2Error;
    return tl_done(of, tl_go(of, from + length, 0));
}

TL_SIMPLE(CancelStep, ~0, return tl_absent(c, "no step is ever pending"))

#define TL_STATUS2(name, type) \
    TL_CALL(name)(fmi2Component c, const fmi2StatusKind kind, type *value) { return fmi2Discard; }
TL_STATUS2(GetStatus, fmi2Status)
TL_STATUS2(GetIntegerStatus, fmi2Integer)
TL_STATUS2(GetStringStatus, fmi2String)

TL_CALL(GetRealStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Real *value)
{
    if (!c || kind != fmi2LastSuccessfulTime) return fmi2Discard;
    *value = ((tl_instance *)c)->at.v[0];
    return fmi2OK;
}

TL_CALL(GetBooleanStatus)(fmi2Component c, const fmi2StatusKind kind, fmi2Boolean *value)
{
    if (!c || kind != fmi2Terminated) return fmi2Discard;
    *value = 0;
    return fmi2OK;
}
