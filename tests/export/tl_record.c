/* A real-time component for tests: writes pins as doubles to a file, a row in every servo period, to the last bit.
   Only for simulations, whose threads may write files. loadrt tl_record pins=N file=PATH */

#include <stdio.h>
#include <rtapi.h>
#include <rtapi_app.h>
#include <hal.h>

MODULE_LICENSE("GPL");

#define MOST 32

static int pins = 1;
RTAPI_MP_INT(pins, "numbers in a row");
static char *file = "record.bin";
RTAPI_MP_STRING(file, "where to");

static int component;
static hal_float_t **values;
static hal_bit_t **is_on;
static FILE *out;

static void record(void *unused, long period)
{
    double row[MOST];
    (void)unused;
    (void)period;
    if (!**is_on) return;
    for (int i = 0; i < pins; ++i) row[i] = *values[i];
    fwrite(row, sizeof(double), (size_t)pins, out);
}

int rtapi_app_main(void)
{
    int failed = 0;
    component = hal_init("tl_record");
    if (component < 0) return component;
    values = hal_malloc(MOST * sizeof *values);
    is_on = hal_malloc(sizeof *is_on);
    out = fopen(file, "wb");
    if (!values || !is_on || !out || pins > MOST) failed = -1;
    for (int i = 0; i < pins && !failed; ++i)
        failed = hal_pin_float_newf(HAL_IN, &values[i], component, "tl_record.in-%02d", i);
    if (!failed) failed = hal_pin_bit_newf(HAL_IN, is_on, component, "tl_record.on");
    if (!failed) failed = hal_export_funct("tl_record", record, 0, 1, 0, component);
    if (failed) {
        hal_exit(component);
        return failed;
    }
    hal_ready(component);
    return 0;
}

void rtapi_app_exit(void)
{
    if (out) fclose(out);
    hal_exit(component);
}
