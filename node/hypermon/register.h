/*
 * Target HM_TARGET_REGISTER: five neighbouring bits of a register, which are pins (HM_BITS 8: nine).
 *
 *     #define HM_TARGET HM_TARGET_REGISTER
 *     #define HM_STYLE HM_STYLE_BSRR
 *     #define HM_ADDRESS 0x48000418u           GPIOB->BSRR of an STM32F3
 *     #define HM_SHIFT 3                       PB3 to PB6 are the data, PB7 the strobe
 *     #define HM_CPU_HZ 72000000u
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     (make the pins outputs, as your chip wants it)
 *     hm_register_open(&port);
 *
 *   HM_STYLE        what a store to the register does:
 *     HM_STYLE_WHOLE     it is all the register's bits; the others become 0: a port in an FPGA
 *     HM_STYLE_XOR       a 1 toggles its pin: RP2040 SIO, Raspberry Pi 5, AVR (PINx), SAM, LPC; others stay
 *     HM_STYLE_BSRR      bits 15..0 set pins, 31..16 clear them: STM32 and its kin; others stay
 *     HM_STYLE_SETCLEAR  one register sets, another (HM_ADDRESS_CLEAR) clears: Raspberry Pi 1 to 4,
 *                        ESP32, nRF52; others stay. Not all five pins at once, so HM_EDGES must be 1
 *   HM_ADDRESS      of the register. If it is not defined, hm_register_open() takes pointers instead.
 *   HM_REGISTER     its type, uint32_t if not said.
 *   HM_SHIFT        place of data bit 0; the strobe is HM_BITS places higher. 0 if not said.
 *   HM_CPU_HZ       the processor's clock: where its stores could follow each other faster than the board
 *                   can read, there are nops between them. Without it there are none.
 *   HM_HOLD_READS   reads of the register after every store, for buses that would let stores follow
 *                   each other too fast; 0 if not said.
 */
#ifndef HYPERMON_REGISTER_H
#define HYPERMON_REGISTER_H

#include "interrupts.h"

#define HM_STYLE_WHOLE 1
#define HM_STYLE_XOR 2
#define HM_STYLE_BSRR 3
#define HM_STYLE_SETCLEAR 4

#ifndef HM_STYLE
#error "HM_STYLE must say what a store to the register does: see hypermon/register.h"
#endif
#if HM_STYLE == HM_STYLE_SETCLEAR && HM_EDGES != 1
#error "HM_STYLE_SETCLEAR cannot change five pins at once: HM_EDGES must be 1"
#endif

#ifndef HM_REGISTER
#define HM_REGISTER uint32_t
#endif
#ifndef HM_SHIFT
#define HM_SHIFT 0
#endif
#if HM_STYLE == HM_STYLE_BSRR && HM_SHIFT + HM_BITS > 15
#error "with HM_STYLE_BSRR the port must lie within 16 bits: HM_SHIFT is 11 at most, or 7 with HM_BITS 8"
#endif
#ifndef HM_HOLD_READS
#define HM_HOLD_READS 0
#endif

/*
 * How long a value stays, in ns: with one edge the data are stable for a board clock, the flip-flops' aperture and
 * the skew of five wires, a nanosecond each, before the strobe; with two, for two clocks
 * and an aperture after it. Two stores are a processor clock apart at least.
 */
#define HM_HOLD_NS ((HM_EDGES * 1000000000u + HM_CLOCK_HZ - 1u) / HM_CLOCK_HZ + 3u - HM_EDGES)
#define HM_HOLD_NOPS (int)((HM_HOLD_NS * ((HM_CPU_HZ) / 1000000u) + 999u) / 1000u - 1u)

typedef struct hm_port {
    unsigned value;
#if HM_INTERRUPTS
    uint32_t interrupts;
#endif
#ifndef HM_ADDRESS
    volatile HM_REGISTER *at;
    volatile HM_REGISTER *clear;
#endif
} hm_port;

#ifdef HM_ADDRESS
#define HM_AT(port) ((volatile HM_REGISTER *)(uintptr_t)(HM_ADDRESS))
#define HM_CLEAR_AT(port) ((volatile HM_REGISTER *)(uintptr_t)(HM_ADDRESS_CLEAR))
#else
#define HM_AT(port) ((port)->at)
#define HM_CLEAR_AT(port) ((port)->clear)
#endif

static inline void hm_port_write(hm_port *port, unsigned before, unsigned value)
{
#if HM_HOLD_READS
    int i;
#endif
#if HM_STYLE == HM_STYLE_WHOLE
    *HM_AT(port) = (HM_REGISTER)((HM_REGISTER)value << HM_SHIFT);
#elif HM_STYLE == HM_STYLE_XOR
    *HM_AT(port) = (HM_REGISTER)((HM_REGISTER)(before ^ value) << HM_SHIFT);
#elif HM_STYLE == HM_STYLE_BSRR
    *HM_AT(port) = (HM_REGISTER)value << HM_SHIFT | (HM_REGISTER)(value ^ HM_PORT) << (16 + HM_SHIFT);
#else
    if (!(value & HM_STROBE))  /* the strobe falls with the data that go, or before them */
        *HM_CLEAR_AT(port) = (HM_REGISTER)((HM_REGISTER)(value ^ HM_PORT) << HM_SHIFT);
    *HM_AT(port) = (HM_REGISTER)((HM_REGISTER)value << HM_SHIFT);
#endif
#if HM_HOLD_READS
    for (i = 0; i < HM_HOLD_READS; i++)
        (void)*HM_AT(port);
#endif
#ifdef HM_CPU_HZ
    if (HM_HOLD_NOPS > 4) {     /* too many in a row: each round takes at least four */
        int rounds;
        for (rounds = (HM_HOLD_NOPS + 3) / 4; rounds > 0; rounds--)
            __asm__ volatile ("nop\n\tnop\n\tnop\n\tnop");
    }
    __asm__ volatile (".rept %c0\n\tnop\n\t.endr" : : "i"(HM_HOLD_NOPS > 4 ? 0 : HM_HOLD_NOPS));
#endif
    (void)port;
    (void)before;
}

static inline void hm_port_begin(hm_port *port)
{
#if HM_INTERRUPTS
    const uint32_t before = hm_interrupts_off();  /* first, and then the port */
    port->interrupts = before;
#else
    (void)port;
#endif
}

static inline int hm_port_end(hm_port *port)
{
#if HM_INTERRUPTS
    hm_interrupts_on(port->interrupts);
#else
    (void)port;
#endif
    return 0;
}

/*
 * Begin with a port whose pins are outputs already: all become 0. With HM_STYLE_XOR they must be 0 before.
 * `at` and, with HM_STYLE_SETCLEAR, `clear` only if HM_ADDRESS is not defined.
 */
#ifdef HM_ADDRESS
static inline void hm_register_open(hm_port *port)
{
#else
static inline void hm_register_open(hm_port *port, volatile HM_REGISTER *at, volatile HM_REGISTER *clear)
{
    port->at = at;
    port->clear = clear;
#endif
    port->value = 0;
    hm_port_write(port, 0, 0);
}

#endif /* HYPERMON_REGISTER_H */
