/* Runs the controller against a plant in another process: `tauloop run plant`.

   HOST PORT REFERENCE [FAULTS]: shared memory has its name in the place of HOST, and port 0. REFERENCE is a table with the
   columns time, positions, velocities and accelerations of the platform, as `tauloop plan stroke --out` writes it, a row for
   each sample; behind its end it begins again. FAULTS are made on purpose, such as skip:100,lose:200,late:300,twice:400:
   the measurement of that sample is not seen; its command is not sent; is sent with the next one; is sent twice. */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plant_link.h"
#include "@NAME@.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum { REFERENCE_SIZE = @REFERENCE@, ACTUATORS = @ACTUATORS@, WIDTH = TPL_HEAD + @UP@_FORCES };
/* Indices in a measurement of the controller's inputs. */
static const int positions[ACTUATORS] = {@POSITIONS@};
#if @SPEED@
static const int speeds[ACTUATORS] = {@SPEEDS@};
#endif

static double *read_table(const char *path, size_t *rows)
{
    FILE *file = fopen(path, "r");
    static char line[65536];
    size_t room = 0;
    double *table = 0;
    *rows = 0;
    if (!file) return 0;
    while (fgets(line, sizeof line, file)) {
        char *at = line, *end;
        int k = 0;
        if (strtod(line, &end), end == line) continue; /* the head */
        if (*rows == room) {
            double *more;
            room = room ? 2 * room : 1024;
            more = (double *)realloc(table, sizeof(double) * room * REFERENCE_SIZE);
            if (!more) return 0;
            table = more;
        }
        for (k = -1; k < REFERENCE_SIZE; ++k) {
            const double value = strtod(at, &end);
            if (end == at) break;
            if (k >= 0) table[*rows * REFERENCE_SIZE + (size_t)k] = value;
            at = *end == ',' ? end + 1 : end;
        }
        if (k == REFERENCE_SIZE) ++*rows;
    }
    fclose(file);
    return table;
}

/* Whether a fault of a kind is requested at a sample. */
static int is_asked(const char *faults, const char *kind, double sample)
{
    const size_t length = strlen(kind);
    while (*faults) {
        if (!strncmp(faults, kind, length) && faults[length] == ':' && strtod(faults + length + 1, 0) == sample) return 1;
        faults += strcspn(faults, ",");
        faults += *faults == ',';
    }
    return 0;
}

int main(int argc, char **argv)
{
    static @NAME@_controller controller;
    @NAME@_input input;
    tpl_link link;
    size_t rows;
    double row[TPL_MOST], command[WIDTH] = {1.0}, kept[WIDTH], *table;
#if @SPEED@
    double reading[ACTUATORS] = {0.0}, before = 0.0;
#endif
    double last = -1.0, samples = 0.0, flagged = 0.0, begins;
    unsigned all = 0;
    int has_kept = 0, error;
    const char *faults = argc > 4 ? argv[4] : "";
    if (argc < 4 || !(table = read_table(argv[3], &rows)) || !rows)
        return fprintf(stderr, "usage: HOST PORT REFERENCE [FAULTS]\n"), 2;
    if (@NAME@_begin(&controller, @UP@_PARAMETER_HASH)) return fprintf(stderr, "the parameters are others\n"), 2;
    begins = tpl_now();
    do {
        error = atoi(argv[2]) ? tpl_open_udp(&link, argv[1], atoi(argv[2]), 0) : tpl_open_memory(&link, argv[1], 0);
        if (error && tpl_now() - begins < 30.0) usleep(20000);
    } while (error && tpl_now() - begins < 30.0);
    if (error) return fprintf(stderr, "%s\n", strerror(error)), 3;
    memset(&input, 0, sizeof input);
    command[TPL_SEQUENCE] = -1.0;
    while (!tpl_send(&link, command, WIDTH) || !tpl_wait(&link, row, 0.2)) {
        if (tpl_now() - begins > 60.0) return fprintf(stderr, "no plant answers\n"), 3;
        usleep(1000);
    }
    for (;;) {
        const double k = row[TPL_SEQUENCE];
        if ((int)row[TPL_FLAGS] & TPL_END) break;
        if (k > last) {
            const double *reference = table + ((size_t)k % rows) * REFERENCE_SIZE;
            last = k;
            if (!is_asked(faults, "skip", k)) {
                unsigned flags;
                input.time = row[TPL_TIME], input.stamp = k + 1.0;
                for (int i = 0; i < ACTUATORS; ++i) input.position[i] = row[TPL_HEAD + positions[i]];
#if @SPEED@
                for (int i = 0; i < ACTUATORS; ++i) {
                    const double read = row[TPL_HEAD + speeds[i]];
                    input.speed[i] = @DIFFERENCES@ ? (samples > 0.0 ? (read - reading[i]) / (input.time - before) : 0.0) : read;
                    reading[i] = read;
                }
                before = input.time;
#endif
                memcpy((double *)&input + offsetof(@NAME@_input, reference) / sizeof(double), reference,
                    sizeof(double) * REFERENCE_SIZE);
                flags = @NAME@_step(&controller, &input, command + TPL_HEAD);
                command[TPL_SEQUENCE] = k, command[TPL_TIME] = input.time, command[TPL_FLAGS] = flags;
                samples += 1.0, flagged += flags != 0, all |= flags;
                if (is_asked(faults, "late", k)) memcpy(kept, command, sizeof kept), has_kept = 1;
                else if (!is_asked(faults, "lose", k)) {
                    if (has_kept) tpl_send(&link, kept, WIDTH), has_kept = 0;
                    tpl_send(&link, command, WIDTH);
                    if (is_asked(faults, "twice", k)) tpl_send(&link, command, WIDTH);
                }
            }
        }
        if (!tpl_wait(&link, row, 30.0)) return fprintf(stderr, "the plant is silent\n"), 3;
    }
    printf("{\"samples\": %.0f, \"flagged\": %.0f, \"flags\": %u}\n", samples, flagged, all);
    tpl_close(&link);
    free(table);
    return 0;
}
