/* A small importer of FMI 3.0 over the standard's own headers: a controller and a plant, step by step.

   importer PLANT TOKEN CONTROLLER TOKEN STEP COUNT PAIRS... : each pair is read from one instance and set in the other
   before the other's step: p1:c2 from the plant's reference 1 to the controller's 2, c2:p1 the other way. s5=0.1 sets the
   controller's. Prints the plant's continuous states at the end. */

#include "fmi3Functions.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#define CALL(of, name) ((name##TYPE *)find((of)->code, #name))
#define MUST(call) if ((call) != fmi3OK) { fprintf(stderr, "%s failed\n", #call); exit(1); }

typedef struct {
    void *code;
    fmi3Instance instance;
} block;

static void *find(void *code, const char *name)
{
    void *symbol = dlsym(code, name);
    if (!symbol) fprintf(stderr, "%s is missing\n", name), exit(1);
    return symbol;
}

static void note(fmi3InstanceEnvironment owner, fmi3Status status, fmi3String category, fmi3String message)
{
    (void)owner, (void)status;
    fprintf(stderr, "%s: %s\n", category, message);
}

static block loaded(const char *path, const char *token)
{
    block of = {dlopen(path, RTLD_NOW | RTLD_LOCAL), 0};
    if (!of.code) fprintf(stderr, "%s\n", dlerror()), exit(1);
    of.instance = CALL(&of, fmi3InstantiateCoSimulation)("one", token, "", false, false, false, false, 0, 0, 0, note, 0);
    if (!of.instance) exit(1);
    MUST(CALL(&of, fmi3EnterInitializationMode)(of.instance, true, 1e-10, 0.0, false, 0.0))
    return of;
}

static void step(block *of, double time, double length)
{
    bool event, end, early;
    double last;
    MUST(CALL(of, fmi3DoStep)(of->instance, time, length, true, &event, &end, &early, &last))
}

static void pass(block *from, unsigned there, block *to, unsigned here)
{
    double value;
    MUST(CALL(from, fmi3GetFloat64)(from->instance, &there, 1, &value, 1))
    MUST(CALL(to, fmi3SetFloat64)(to->instance, &here, 1, &value, 1))
}

int main(int count, char **words)
{
    block plant = loaded(words[1], words[2]), controller = loaded(words[3], words[4]);
    const double length = strtod(words[5], 0);
    const long steps = strtol(words[6], 0, 10);
    size_t n;
    unsigned a, b;
    double value;
    for (int i = 7; i < count; ++i)
        if (sscanf(words[i], "s%u=%lf", &a, &value) == 2)
            MUST(CALL(&controller, fmi3SetFloat64)(controller.instance, &a, 1, &value, 1))
    MUST(CALL(&plant, fmi3ExitInitializationMode)(plant.instance))
    MUST(CALL(&controller, fmi3ExitInitializationMode)(controller.instance))
    for (long k = 0; k < steps; ++k) {
        for (int i = 7; i < count; ++i)
            if (sscanf(words[i], "p%u:c%u", &a, &b) == 2) pass(&plant, a, &controller, b);
        step(&controller, (double)k * length, length);
        for (int i = 7; i < count; ++i)
            if (sscanf(words[i], "c%u:p%u", &a, &b) == 2) pass(&controller, a, &plant, b);
        step(&plant, (double)k * length, length);
    }
    MUST(CALL(&plant, fmi3GetNumberOfContinuousStates)(plant.instance, &n))
    for (unsigned i = 1; i < n + 1; ++i) {
        const unsigned state = strtoul(getenv("FIRST_STATE"), 0, 10) + i - 1;
        MUST(CALL(&plant, fmi3GetFloat64)(plant.instance, &state, 1, &value, 1))
        printf("%.17g\n", value);
    }
    CALL(&plant, fmi3FreeInstance)(plant.instance);
    CALL(&controller, fmi3FreeInstance)(controller.instance);
    return 0;
}
