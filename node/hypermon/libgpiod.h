/*
 * Target HM_TARGET_LIBGPIOD: lines of a Linux GPIO chip, by libgpiod, version 2 or later (link with -lgpiod).
 * For programs that have their lines from it; hypermon/gpiochip.h does the same without a library.
 *
 *     #define HM_TARGET HM_TARGET_LIBGPIOD
 *     #include "hypermon.h"
 *
 *     static const unsigned lines[5] = { 17, 18, 27, 22, 23 };       data 0 to 3, strobe
 *     hm_port port;
 *     if (hm_libgpiod_open(&port, "/dev/gpiochip0", lines) != 0)
 *         perror("gpiochip0");
 *
 * Drivers change lines one after the other, so HM_EDGES must be 1.
 */
#ifndef HYPERMON_LIBGPIOD_H
#define HYPERMON_LIBGPIOD_H

#include <gpiod.h>
#include <stddef.h>

#if HM_EDGES != 1
#error "HM_TARGET_LIBGPIOD cannot change five lines at once: HM_EDGES must be 1"
#endif
#ifdef GPIOD_LINE_BULK_MAX_LINES
#error "this is libgpiod 1; HM_TARGET_LIBGPIOD needs version 2, HM_TARGET_GPIOCHIP does without"
#endif

typedef struct hm_port {
    unsigned value;
    struct gpiod_line_request *request;  /* the program's own will do, if its lines are outputs, 0 */
    unsigned lines[HM_PINS];
    size_t failed;      /* writes that were refused: the trace is not whole */
} hm_port;

/* With the strobe, only the strobe is written: the data are there already. */
static inline void hm_port_write(hm_port *port, unsigned before, unsigned value)
{
    enum gpiod_line_value values[HM_PINS];
    unsigned i;
    int done;
    (void)before;
    if (value & HM_STROBE) {
        done = gpiod_line_request_set_value(port->request, port->lines[HM_BITS], GPIOD_LINE_VALUE_ACTIVE);
    } else {
        for (i = 0; i < HM_PINS; i++)
            values[i] = value >> i & 1u ? GPIOD_LINE_VALUE_ACTIVE : GPIOD_LINE_VALUE_INACTIVE;
        done = gpiod_line_request_set_values_subset(port->request, HM_PINS, port->lines, values);
    }
    if (done != 0)
        port->failed++;
}

static inline void hm_port_begin(hm_port *port) { (void)port; }
static inline int hm_port_end(hm_port *port) { (void)port; return 0; }

/*
 * Ask for the lines (offsets in the chip: data bits, strobe) as outputs, all 0.
 * Returns 0, or -1 (errno).
 */
static inline int hm_libgpiod_open(hm_port *port, const char *path, const unsigned lines[HM_PINS])
{
    struct gpiod_chip *chip = gpiod_chip_open(path);
    struct gpiod_line_settings *settings = gpiod_line_settings_new();
    struct gpiod_line_config *config = gpiod_line_config_new();
    struct gpiod_request_config *request = gpiod_request_config_new();
    unsigned i;
    port->value = 0;
    port->request = NULL;
    port->failed = 0;
    for (i = 0; i < HM_PINS; i++)
        port->lines[i] = lines[i];
    if (chip != NULL && settings != NULL && config != NULL && request != NULL
        && gpiod_line_settings_set_direction(settings, GPIOD_LINE_DIRECTION_OUTPUT) == 0
        && gpiod_line_config_add_line_settings(config, port->lines, HM_PINS, settings) == 0) {
        gpiod_request_config_set_consumer(request, "hypermon");
        port->request = gpiod_chip_request_lines(chip, request, config);
    }
    if (request != NULL)
        gpiod_request_config_free(request);
    if (config != NULL)
        gpiod_line_config_free(config);
    if (settings != NULL)
        gpiod_line_settings_free(settings);
    if (chip != NULL)
        gpiod_chip_close(chip);
    return port->request != NULL ? 0 : -1;
}

/* Give the lines back. The port may be opened again. */
static inline void hm_libgpiod_close(hm_port *port)
{
    gpiod_line_request_release(port->request);
    port->request = NULL;
}

#endif /* HYPERMON_LIBGPIOD_H */
