/*
 * Target HM_TARGET_RP2040_SIO: five pins of a Raspberry Pi Pico, by its processor.
 *
 *     #define HM_TARGET HM_TARGET_RP2040_SIO
 *     #define HM_PIN 2                         GP2 to GP5 are the data, GP6 the strobe (default)
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     hm_rp2040_open(&port);
 *
 * A store to GPIO_OUT_XOR changes the five pins at once and leaves the others alone, so the other core
 * may do with them what it wants. HM_CPU_HZ is 125 MHz if not said. HM_EDGES is 1 or 2.
 */
#ifndef HYPERMON_RP2040_SIO_H
#define HYPERMON_RP2040_SIO_H

#include "rp2040_pins.h"

#define HM_STYLE HM_STYLE_XOR
#define HM_ADDRESS 0xd000001cu          /* GPIO_OUT_XOR */
#define HM_SHIFT HM_PIN

#include "register.h"

static inline void hm_rp2040_open(hm_port *port)
{
    hm_rp2040_pins(HM_RP2040_FUNCTION_SIO);
    hm_register_open(port);
}

#endif /* HYPERMON_RP2040_SIO_H */
