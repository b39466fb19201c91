/*
 * hypermon.h: write events through a node's 5-bit port. Header only, C99 (and C++); copy this file
 * and the folder hypermon/ next to it.
 *
 *     #define HM_TARGET HM_TARGET_RP2040_SIO
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     hm_rp2040_open(&port);
 *     hm_event(&port, MY_EVENT, bytes, 3);     id and up to 14 bytes
 *
 * A port has five bits: 3..0 a nibble, 4 the strobe that says "now". (With HM_BITS 8 it has nine, and all
 * that is said here of nibbles is said of bytes; for boards built so.) What the nibbles mean is a
 * matter between the program and the host:
 *
 *   nibbles  each is an event of its own: hm_nibble()
 *   words    eight nibbles are 32 bits, the lowest first: hm_word()
 *   events   a nibble with the number of bytes 1..15, then two nibbles a byte, the low one first; the
 *            first byte is the event's id: hm_event(). A length of 0 is a filler, which
 *            hosts ignore: hm_nibble(port, 0) between two events.
 *
 * Macros, to be set before the include and the same for everything that shares a port:
 *
 *   HM_EDGES       1 (default): a nibble is two writes, strobe 0 then 1, as the port of 1990 wanted it;
 *                     the board takes the rising edge and the data before it.
 *                  2: a nibble is one write that toggles the strobe; tell the board `--edge both`,
 *                     which takes the data after the edge.
 *   HM_BITS        4 (default): data bits of the port. 8: an event is its length and a write a byte.
 *   HM_INTERRUPTS  1: interrupts are disabled during a write, so that handlers may write to
 *                     the same port (default on bare metal). 0: they do not write to it.
 *   HM_CLOCK_HZ    the board's clock, 100 MHz by default: how long a value must stay on the pins.
 *   HM_TARGET      where the port is, one of the following; its file lists further settings.
 */
#ifndef HYPERMON_H
#define HYPERMON_H

#include <stddef.h>
#include <stdint.h>

#define HM_TARGET_NONE 0        /* nowhere: calls compile to almost nothing, to see what observing costs */
#define HM_TARGET_VIRTUAL 1     /* in memory, for the virtual board (default): hypermon/virtual.h */
#define HM_TARGET_CUSTOM 2      /* yours, see below */
#define HM_TARGET_REGISTER 3    /* a register: microcontrollers, soft cores: hypermon/register.h */
#define HM_TARGET_MMAP 4        /* a register under Linux, mapped from /dev/mem and the like: hypermon/mmap.h */
#define HM_TARGET_GPIOCHIP 5    /* five lines of a Linux GPIO chip: hypermon/gpiochip.h */
#define HM_TARGET_RP2040_SIO 6  /* a Raspberry Pi Pico, by its processor: hypermon/rp2040_sio.h */
#define HM_TARGET_RP2040_PIO 7  /* a Raspberry Pi Pico, by its PIO, a store an event: hypermon/rp2040_pio.h */
#define HM_TARGET_ARDUINO 8     /* digitalWrite(): hypermon/arduino.h */
#define HM_TARGET_LIBGPIOD 9    /* five lines of a Linux GPIO chip, by libgpiod 2: hypermon/libgpiod.h */
#define HM_TARGET_SPI 10        /* two wires of an SPI master, no port: hypermon/bytes.h */
#define HM_TARGET_UART 11       /* one wire of a UART, no port: hypermon/bytes.h */
#define HM_TARGET_ITM 12        /* the SWO pin of a Cortex-M, no port: hypermon/itm.h */

#ifndef HM_TARGET
#define HM_TARGET HM_TARGET_VIRTUAL
#endif

#ifndef HM_EDGES
#define HM_EDGES 1
#endif

#if HM_EDGES != 1 && HM_EDGES != 2
#error "HM_EDGES must be 1 (strobe 0, then 1) or 2 (the strobe toggles)"
#endif

#ifndef HM_BITS
#define HM_BITS 4
#endif

#if HM_BITS != 4 && HM_BITS != 8
#error "HM_BITS must be 4 (a nibble a write) or 8 (a byte)"
#endif

#ifndef HM_CLOCK_HZ
#define HM_CLOCK_HZ 100000000u
#endif

/* Bytes that fit into an event after its id. */
#define HM_PAYLOAD_MAX 14u
/* The strobe's place in the port, the data below it, and all of it. */
#define HM_STROBE (1u << HM_BITS)
#define HM_DATA (HM_STROBE - 1u)
#define HM_PORT (HM_STROBE | HM_DATA)
#define HM_PINS (HM_BITS + 1)

/*
 * A target is a type and three functions, which must exist before this file's last part; for your
 * own (HM_TARGET_CUSTOM), define them before the include:
 *
 *   typedef struct hm_port { unsigned value; ... } hm_port;    value: what is on the pins between
 *                  items, 0 at first; this file keeps it
 *   static void hm_port_write(hm_port *port, unsigned before, unsigned value);
 *                  put value (0..31) on the pins at once, which show before; they then hold it for
 *                  two board clocks and a nanosecond at least
 *   static void hm_port_begin(hm_port *port);    an item begins: keep interrupts out
 *   static int hm_port_end(hm_port *port);       it is written: let them in; 0, or 1 if the target
 *                  has taken it back and wants it again
 *
 * Threads: a port belongs to one thread, core (or interrupt level) at a time; different ports need no
 * lock. Nothing that writes allocates or locks, nor calls the system, but for the virtual port's
 * clock, HM_TARGET_GPIOCHIP and HM_TARGET_LIBGPIOD.
 */
#if HM_TARGET == HM_TARGET_NONE
#include "hypermon/none.h"
#elif HM_TARGET == HM_TARGET_VIRTUAL
#include "hypermon/virtual.h"
#elif HM_TARGET == HM_TARGET_REGISTER
#include "hypermon/register.h"
#elif HM_TARGET == HM_TARGET_MMAP
#include "hypermon/mmap.h"
#elif HM_TARGET == HM_TARGET_GPIOCHIP
#include "hypermon/gpiochip.h"
#elif HM_TARGET == HM_TARGET_RP2040_SIO
#include "hypermon/rp2040_sio.h"
#elif HM_TARGET == HM_TARGET_RP2040_PIO
#include "hypermon/rp2040_pio.h"
#elif HM_TARGET == HM_TARGET_ARDUINO
#include "hypermon/arduino.h"
#elif HM_TARGET == HM_TARGET_LIBGPIOD
#include "hypermon/libgpiod.h"
#elif HM_TARGET == HM_TARGET_SPI || HM_TARGET == HM_TARGET_UART
#include "hypermon/bytes.h"
#elif HM_TARGET == HM_TARGET_ITM
#include "hypermon/itm.h"
#elif HM_TARGET != HM_TARGET_CUSTOM
#error "HM_TARGET must be one of the HM_TARGET_ names of hypermon.h"
#endif


/* ------------------------------------------------------------------------------- what one calls -- */

/* These have such functions of their own. */
#define HM_TARGET_WITHOUT_PORT (HM_TARGET == HM_TARGET_SPI || HM_TARGET == HM_TARGET_UART || HM_TARGET == HM_TARGET_ITM)

#if HM_TARGET != HM_TARGET_RP2040_PIO && !HM_TARGET_WITHOUT_PORT

/* One write, between hm_port_begin() and hm_port_end(). The pins before it, and after it. */
static inline unsigned hm_put(hm_port *port, unsigned before, unsigned value)
{
#if HM_EDGES == 1
    const unsigned data = value & HM_DATA;
    hm_port_write(port, before, data);
    hm_port_write(port, data, data | HM_STROBE);
    return data | HM_STROBE;
#else
    const unsigned change = ((before ^ value) & HM_DATA) | HM_STROBE;
    hm_port_write(port, before, before ^ change);
    return before ^ change;
#endif
}

/* A byte by its nibbles, the lower first; or at once. */
static inline unsigned hm_put_byte(hm_port *port, unsigned before, unsigned byte)
{
#if HM_BITS == 4
    before = hm_put(port, before, byte);
    byte >>= 4;
#endif
    return hm_put(port, before, byte);
}

/* One nibble: an event in nibble framing, a filler if 0 between events in event framing. With HM_BITS 8 a byte. */
static inline void hm_nibble(hm_port *port, unsigned nibble)
{
    do {
        hm_port_begin(port);
        port->value = hm_put(port, port->value, nibble);
    } while (hm_port_end(port));
}

/* One word, for a node in word mode. The board stamps it with the time of its first nibble. */
static inline void hm_word(hm_port *port, uint32_t word)
{
    unsigned now, i;
    do {
        hm_port_begin(port);
        now = port->value;
        for (i = 0; i < 32; i += HM_BITS)
            now = hm_put(port, now, (unsigned)(word >> i) & HM_DATA);
        port->value = now;
    } while (hm_port_end(port));
}

/*
 * One event: its id and length bytes of payload (NULL is allowed if there are none). The board
 * stamps it with the time of its first nibble.
 * Returns 0; -1, and nothing is written, if length is more than HM_PAYLOAD_MAX.
 */
static inline int hm_event(hm_port *port, unsigned id, const void *payload, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)payload;
    unsigned now;
    size_t i;
    if (length > HM_PAYLOAD_MAX)
        return -1;
    do {
        hm_port_begin(port);
        now = hm_put(port, port->value, (unsigned)length + 1u);
        now = hm_put_byte(port, now, id);
        for (i = 0; i < length; i++)
            now = hm_put_byte(port, now, bytes[i]);
        port->value = now;
    } while (hm_port_end(port));
    return 0;
}

#endif

#if !HM_TARGET_WITHOUT_PORT && (HM_TARGET != HM_TARGET_RP2040_PIO || HM_ITEMS == HM_ITEMS_NIBBLES)

/*
 * One round of the wire check: 0, then each data wire alone, then all. Call it over and over while
 * the host runs `hypermon wirecheck`, which names the wires that are swapped, stuck or missing.
 */
static inline void hm_wire_check(hm_port *port)
{
    unsigned bit;
    hm_nibble(port, 0);
    for (bit = 0; bit < HM_BITS; bit++)
        hm_nibble(port, 1u << bit);
    hm_nibble(port, HM_DATA);
}

#endif

/* Numbers in a payload are little-endian, whatever the node is. */
static inline void hm_put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value & 0xffu);
    at[1] = (unsigned char)(value >> 8 & 0xffu);
}

static inline void hm_put32(unsigned char *at, uint32_t value)
{
    hm_put16(at, (unsigned)(value & 0xffffu));
    hm_put16(at + 2, (unsigned)(value >> 16));
}

#endif /* HYPERMON_H */
