/* Types of FMI 2.0, and its names for `faces.c`.

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

#define TL_VERSION "2.0"
#define TL_INSTANCE fmi2Component
#define TL_OF(name) fmi2##name
#define TL_WORD(name) "fmi2" #name
#define TL_EXPORT FMI2_Export
/* Names that the standard prescribes if several FMUs are linked together. */
#if defined FMI2_FUNCTION_PREFIX && !defined FMI2_HEADERS
#define TL_PREFIX FMI2_FUNCTION_PREFIX
#endif
/* Words that differ between versions. */
#define TL_NUMBERS "Real"
#define TL_GET_STATE GetFMUstate
#define TL_SET_STATE SetFMUstate
#define TL_FREE_STATE FreeFMUstate
#define TL_STATE_SIZE SerializedFMUstateSize
#define TL_SERIALIZE SerializeFMUstate
#define TL_DESERIALIZE DeSerializeFMUstate
#define TL_STATE fmi2FMUstate
#define TL_REAL fmi2Real
#define TL_GET_RATES GetDerivatives
