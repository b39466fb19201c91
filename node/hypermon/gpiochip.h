/*
 * Target HM_TARGET_GPIOCHIP: five lines of a Linux GPIO chip, by the kernel's own interface (version 2,
 * Linux 5.10 and later), without a library. Two system calls for a nibble.
 *
 *     #define HM_TARGET HM_TARGET_GPIOCHIP
 *     #include "hypermon.h"
 *
 *     static const unsigned lines[5] = { 17, 18, 27, 22, 23 };       data 0 to 3, strobe
 *     hm_port port;
 *     if (hm_gpiochip_open(&port, "/dev/gpiochip0", lines) != 0)
 *         perror("gpiochip0");
 *
 * Drivers change lines one after the other, so HM_EDGES must be 1.
 */
#ifndef HYPERMON_GPIOCHIP_H
#define HYPERMON_GPIOCHIP_H

#include <fcntl.h>
#include <linux/gpio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#if HM_EDGES != 1
#error "HM_TARGET_GPIOCHIP cannot change five lines at once: HM_EDGES must be 1"
#endif

typedef struct hm_port {
    unsigned value;
    int lines;          /* file descriptor */
    size_t failed;      /* writes that the kernel refused: the trace is not whole */
} hm_port;

/* With the strobe, only the strobe is written: the data are there already. */
static inline void hm_port_write(hm_port *port, unsigned before, unsigned value)
{
    struct gpio_v2_line_values values;
    (void)before;
    values.bits = value;
    values.mask = value & HM_STROBE ? HM_STROBE : HM_PORT;
    if (ioctl(port->lines, GPIO_V2_LINE_SET_VALUES_IOCTL, &values) < 0)
        port->failed++;
}

static inline void hm_port_begin(hm_port *port) { (void)port; }
static inline int hm_port_end(hm_port *port) { (void)port; return 0; }

/*
 * Ask for the lines (offsets in the chip: data bits, strobe) as outputs, all 0.
 * Returns 0, or -1 (errno).
 */
static inline int hm_gpiochip_open(hm_port *port, const char *path, const unsigned lines[HM_PINS])
{
    struct gpio_v2_line_request request;
    const int chip = open(path, O_RDWR | O_CLOEXEC);
    unsigned i;
    int done;
    if (chip < 0)
        return -1;
    memset(&request, 0, sizeof request);
    for (i = 0; i < HM_PINS; i++)
        request.offsets[i] = lines[i];
    request.num_lines = HM_PINS;
    request.config.flags = GPIO_V2_LINE_FLAG_OUTPUT;
    memcpy(request.consumer, "hypermon", sizeof "hypermon");
    done = ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request);
    close(chip);
    if (done < 0)
        return -1;
    port->value = 0;
    port->lines = request.fd;
    port->failed = 0;
    return 0;
}

/* Give the lines back. The port may be opened again. */
static inline void hm_gpiochip_close(hm_port *port)
{
    close(port->lines);
    port->lines = -1;
}

#endif /* HYPERMON_GPIOCHIP_H */
