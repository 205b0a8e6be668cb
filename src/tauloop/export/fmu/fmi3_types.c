/* Types of FMI 3.0, and its names for `faces.c`.

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

#define TL_VERSION "3.0"
#define TL_INSTANCE fmi3Instance
#define TL_OF(name) fmi3##name
#define TL_WORD(name) "fmi3" #name
#define TL_EXPORT FMI3_Export
/* Names that the standard prescribes if several FMUs are linked together. */
#if defined FMI3_FUNCTION_PREFIX && !defined FMI3_HEADERS && !defined _WIN32
#define TL_PREFIX FMI3_FUNCTION_PREFIX
#endif
/* Words that differ between versions. */
#define TL_NUMBERS "Float64"
#define TL_GET_STATE GetFMUState
#define TL_SET_STATE SetFMUState
#define TL_FREE_STATE FreeFMUState
#define TL_STATE_SIZE SerializedFMUStateSize
#define TL_SERIALIZE SerializeFMUState
#define TL_DESERIALIZE DeserializeFMUState
#define TL_STATE fmi3FMUState
#define TL_REAL fmi3Float64
#define TL_GET_RATES GetContinuousStateDerivatives
