/* Functions that both versions of the standard have, on an instance. The types of one version are defined before. */

#ifdef TL_PREFIX
#define TL_PASTE(a, b) a##b
#define TL_JOIN(a, b) TL_PASTE(a, b)
#define TL_NAME(name) TL_JOIN(TL_PREFIX, name)
#else
#define TL_NAME(name) name
#endif
#define TL_FULL(name) TL_NAME(name)
#define TL_CALL(name) TL_EXPORT TL_OF(Status) TL_FULL(TL_OF(name))
#define TL_DONE(good) ((good) ? TL_OF(OK) : TL_OF(Error))
/* A call that is allowed in some modes of the instance c. */
#define TL_SAY(name) TL_WORD(name)
#define TL_WHERE(modes, name) if (!tl_may(c, modes, TL_SAY(name))) return TL_OF(Error)
/* A function whose only argument is the instance. */
#define TL_SIMPLE(name, modes, ...) \
    TL_CALL(name)(TL_INSTANCE c) \
    { \
        TL_WHERE(modes, name); \
        __VA_ARGS__; \
    }

TL_EXPORT const char *TL_FULL(TL_OF(GetVersion))(void) { return TL_VERSION; }

/* A failure sets the instance to the error state. */
static TL_OF(Status) tl_done(tl_instance *of, int good)
{
    if (!good && of) of->at.mode = TL_FAILED;
    return TL_DONE(good);
}

static TL_OF(Status) tl_turned(tl_instance *of, int mode)
{
    of->at.mode = mode;
    return TL_OF(OK);
}

/* Not supported. */
static TL_OF(Status) tl_absent(TL_INSTANCE c, const char *text)
{
    if (c) tl_say(c, text);
    return TL_OF(Error);
}

static TL_OF(Status) tl_none(TL_INSTANCE c, size_t n)
{
    if (n && c) tl_say(c, "all variables of this FMU are " TL_NUMBERS);
    return TL_DONE(!n && c);
}

/* Functions of variable types without variables: references, their number, and further arguments. */
#define TL_NONE(name, ...) \
    TL_CALL(name)(TL_INSTANCE c, const TL_OF(ValueReference) refs[], size_t n, __VA_ARGS__) { return tl_none(c, n); }
/* Capabilities that modelDescription.xml does not declare. */
#define TL_ABSENT(name, what, ...) \
    TL_CALL(name)(TL_INSTANCE c, __VA_ARGS__) { return tl_absent(c, what); }

TL_CALL(SetDebugLogging)(TL_INSTANCE c, TL_OF(Boolean) on, size_t n, const TL_OF(String) categories[])
{
    TL_WHERE(~0, SetDebugLogging);
    ((tl_instance *)c)->is_logging = on;
    return TL_OF(OK);
}

TL_EXPORT void TL_FULL(TL_OF(FreeInstance))(TL_INSTANCE c) { tl_free(c); }

TL_SIMPLE(ExitInitializationMode, TL_BEGINNING, return tl_done(c, tl_begun(c)))
TL_SIMPLE(EnterEventMode, TL_CONTINUOUS | TL_EVENT, return tl_turned(c, TL_EVENT))
TL_SIMPLE(EnterContinuousTimeMode, TL_EVENT, return tl_turned(c, TL_CONTINUOUS))
TL_SIMPLE(Terminate, TL_RUNNING, return tl_turned(c, TL_OVER))
TL_SIMPLE(Reset, ~0, tl_reset(c); return TL_OF(OK))

TL_CALL(TL_GET_STATE)(TL_INSTANCE c, TL_STATE *state)
{
    TL_WHERE(~0, TL_GET_STATE);
    return TL_DONE(tl_save(c, state));
}

TL_CALL(TL_SET_STATE)(TL_INSTANCE c, TL_STATE state)
{
    TL_WHERE(~0, TL_SET_STATE);
    return TL_DONE(tl_restore(c, state));
}

TL_CALL(TL_FREE_STATE)(TL_INSTANCE c, TL_STATE *state)
{
    if (state) free(*state), *state = 0;
    return TL_OF(OK);
}

TL_CALL(TL_STATE_SIZE)(TL_INSTANCE c, TL_STATE state, size_t *size)
{
    *size = TL_MARK + sizeof(tl_memory);
    return TL_OF(OK);
}

TL_CALL(TL_SERIALIZE)(TL_INSTANCE c, TL_STATE state, TL_OF(Byte) bytes[], size_t size)
{
    return TL_DONE(tl_serialize(c, state, (char *)bytes, size));
}

TL_CALL(TL_DESERIALIZE)(TL_INSTANCE c, const TL_OF(Byte) bytes[], size_t size, TL_STATE *state)
{
    return TL_DONE(tl_deserialize(c, (const char *)bytes, size, state));
}

/* Model exchange. */

TL_CALL(CompletedIntegratorStep)(TL_INSTANCE c, TL_OF(Boolean) is_final, TL_OF(Boolean) *event, TL_OF(Boolean) *end)
{
    TL_WHERE(TL_CONTINUOUS, CompletedIntegratorStep);
    *event = *end = 0;
    if (!tl_refresh(c)) return TL_OF(Error);
    tl_arrived(&((tl_instance *)c)->at);
    return TL_OF(OK);
}

TL_CALL(SetTime)(TL_INSTANCE c, TL_REAL time)
{
    TL_WHERE(TL_EVENT | TL_CONTINUOUS, SetTime);
    ((tl_instance *)c)->at.v[0] = time;
    return TL_OF(OK);
}

TL_CALL(SetContinuousStates)(TL_INSTANCE c, const TL_REAL x[], size_t n)
{
    TL_WHERE(TL_CONTINUOUS, SetContinuousStates);
    return TL_DONE(tl_set_states(c, x, n));
}

#define TL_COPY(name, from, size) \
    TL_CALL(name)(TL_INSTANCE c, TL_REAL values[], size_t n) \
    { \
        TL_WHERE(TL_BEGINNING | TL_RUNNING, name); \
        return TL_DONE(tl_copy(c, from, size, values, n)); \
    }
TL_COPY(TL_GET_RATES, AT_RATES, NY)
TL_COPY(GetEventIndicators, AT_GUARDS, NS + NG)
TL_COPY(GetContinuousStates, AT_STATES, NY)

TL_CALL(GetNominalsOfContinuousStates)(TL_INSTANCE c, TL_REAL nominals[], size_t n)
{
    if (!c || n != NY) return TL_OF(Error);
    for (size_t i = 0; i < n; ++i) nominals[i] = tl_nominal[i];
    return TL_OF(OK);
}
