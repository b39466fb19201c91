/*
 * Target HM_TARGET_ARDUINO: five pins of anything that has digitalWrite(). Slow, and it runs everywhere;
 * hypermon/register.h is the fast way.
 *
 *     #define HM_TARGET HM_TARGET_ARDUINO
 *     #include "hypermon.h"
 *
 *     static const uint8_t pins[5] = { 2, 3, 4, 5, 6 };              data 0 to 3, strobe
 *     hm_port port;
 *     void setup() { hm_arduino_open(&port, pins); }
 *
 * The pins change one after the other, the strobe last; so with HM_EDGES 2 tell the board
 * `--edge both --sample before`. A digitalWrite() must take a board clock at least, as all do.
 */
#ifndef HYPERMON_ARDUINO_H
#define HYPERMON_ARDUINO_H

#include <Arduino.h>

/* Interrupts are as they were before, after an item, so that handlers and kernels may write items, too. Elsewhere
 * Arduino's own functions turn them on after each item: there, handlers must not write. */
#if defined(__ARM_ARCH_6M__) || (defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M') || defined(__riscv) \
    || defined(__AVR__) || defined(__XTENSA__)
#include "interrupts.h"
#define HM_ARDUINO_OFF(before) before = hm_interrupts_off()
#define HM_ARDUINO_ON(before) hm_interrupts_on(before)
#else
#define HM_ARDUINO_OFF(before) before = 0; noInterrupts()
#define HM_ARDUINO_ON(before) interrupts()
#endif

#ifndef HM_INTERRUPTS
#define HM_INTERRUPTS 1
#endif

typedef struct hm_port {
    unsigned value;
#if HM_INTERRUPTS
    uint32_t masked;
#endif
    uint8_t pins[HM_PINS];
} hm_port;

/* Only pins that change are written. */
static inline void hm_port_write(hm_port *port, unsigned before, unsigned value)
{
    const unsigned changed = before ^ value;
    unsigned i;
#if HM_EDGES == 1
    if (changed & ~value & HM_STROBE)  /* it falls before the data change */
        digitalWrite(port->pins[HM_BITS], LOW);
#endif
    for (i = 0; i < HM_BITS; i++)
        if (changed >> i & 1u)
            digitalWrite(port->pins[i], value >> i & 1u ? HIGH : LOW);
    if (changed & HM_STROBE && (HM_EDGES == 2 || value & HM_STROBE))
        digitalWrite(port->pins[HM_BITS], value & HM_STROBE ? HIGH : LOW);
}

static inline void hm_port_begin(hm_port *port)
{
    (void)port;
#if HM_INTERRUPTS
    HM_ARDUINO_OFF(port->masked);
#endif
}

static inline int hm_port_end(hm_port *port)
{
    (void)port;
#if HM_INTERRUPTS
    HM_ARDUINO_ON(port->masked);
#endif
    return 0;
}

/* Make the pins (data bits, strobe) outputs, all 0. */
static inline void hm_arduino_open(hm_port *port, const uint8_t pins[HM_PINS])
{
    unsigned i;
    port->value = 0;
    for (i = 0; i < HM_PINS; i++) {
        port->pins[i] = pins[i];
        digitalWrite(pins[i], LOW);
        pinMode(pins[i], OUTPUT);
    }
}

#endif /* HYPERMON_ARDUINO_H */
