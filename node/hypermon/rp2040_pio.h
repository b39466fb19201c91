/*
 * Target HM_TARGET_RP2040_PIO: five pins of a Raspberry Pi Pico, by a state machine of its PIO. The
 * program stores words into its FIFO and continues; the state machine makes nibbles and strobes.
 *
 *     #define HM_TARGET HM_TARGET_RP2040_PIO
 *     #define HM_PIN 2                         GP2 to GP5 are the data, GP6 the strobe (default)
 *     #define HM_ITEMS HM_ITEMS_EVENTS         what is written to this port, and nothing else (default)
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     hm_rp2040_open(&port);
 *
 *   HM_ITEMS_EVENTS   hm_event(): a store for up to 2 bytes of payload, and one for each 4 more
 *   HM_ITEMS_WORDS    hm_word(): a store
 *   HM_ITEMS_NIBBLES  hm_nibble(): a store
 *
 * A nibble takes 4 clocks of the chip (an event's first 5, and 1 more after its last), at 125 MHz 32 ns.
 * Who writes faster than that waits as soon as the FIFO's 8 words are full. The board stamps when the
 * strobe comes, which is when the FIFO is empty before it 5 clocks after the store; so leave time
 * between events, or they queue. Only one edge: HM_EDGES must be 1.
 *
 * Each level of the strobe lasts 2 clocks, 16 ns at 125 MHz. That is enough for a board of 70 MHz and more; for a
 * slower one (HM_CLOCK_HZ), or a faster chip (HM_CPU_HZ), it lasts more, 16 at most.
 *
 * It takes state machine HM_PIO_MACHINE (0) of PIO0 and the upper 8 of its 32 instructions.
 * Registers: RP2040 Datasheet, 3.7.
 */
#ifndef HYPERMON_RP2040_PIO_H
#define HYPERMON_RP2040_PIO_H

#include "interrupts.h"
#include "rp2040_pins.h"

#define HM_ITEMS_EVENTS 1
#define HM_ITEMS_WORDS 2
#define HM_ITEMS_NIBBLES 3

#ifndef HM_ITEMS
#define HM_ITEMS HM_ITEMS_EVENTS
#endif
#ifndef HM_PIO_MACHINE
#define HM_PIO_MACHINE 0
#endif
#if HM_EDGES != 1
#error "HM_TARGET_RP2040_PIO writes with one edge: HM_EDGES must be 1"
#endif
#if HM_BITS != 4
#error "HM_TARGET_RP2040_PIO writes nibbles: HM_BITS must be 4"
#endif
#if HM_PIO_MACHINE < 0 || HM_PIO_MACHINE > 3
#error "HM_PIO_MACHINE is 0..3"
#endif

/* Clocks of a level: as long as one of the board's and a nanosecond. */
#define HM_PIO_LEVEL_NS ((1000000000u + HM_CLOCK_HZ - 1u) / HM_CLOCK_HZ + 1u)
#define HM_PIO_LEVEL_MIN ((HM_PIO_LEVEL_NS * ((HM_CPU_HZ) / 1000000u) + 999u) / 1000u)
#define HM_PIO_LEVEL (HM_PIO_LEVEL_MIN > 2u ? HM_PIO_LEVEL_MIN : 2u)
#if HM_PIO_LEVEL > 16u
#error "HM_TARGET_RP2040_PIO: a level can last 16 clocks of the chip, too few for a board of HM_CLOCK_HZ"
#endif

#define HM_PIO 0x50200000u
#define HM_PIO_CTRL (HM_PIO + 0x00u)
#define HM_PIO_FSTAT (HM_PIO + 0x04u)
#define HM_PIO_TXF (HM_PIO + 0x10u + 4u * HM_PIO_MACHINE)
#define HM_PIO_INSTRUCTION(i) (HM_PIO + 0x48u + 4u * (i))
#define HM_PIO_OF_MACHINE(offset) (HM_PIO + 0xc8u + 0x18u * HM_PIO_MACHINE + (offset))
#define HM_PIO_FULL (1u << (16 + HM_PIO_MACHINE))
#define HM_PIO_SET 0x2000u              /* added to PIO's address: a store sets bits */
#define HM_PIO_FIRST 24u                /* where the program begins; one with jumps is not relocatable */

/* Bits 15..8 of an instruction: opcode, strobe (side-set) and how many clocks more it lasts. */
#define HM_PIO_HEAD(opcode, strobe, more) ((uint32_t)(opcode) << 13 | (uint32_t)(strobe) << 12 | (uint32_t)(more) << 8)
#define HM_PIO_JMP(strobe, more, to) (HM_PIO_HEAD(0, strobe, more) | (HM_PIO_FIRST + (to)))
#define HM_PIO_JMP_X_DEC(strobe, more, to) (HM_PIO_HEAD(0, strobe, more) | 2u << 5 | (HM_PIO_FIRST + (to)))
#define HM_PIO_OUT_PINS_4(strobe, more) (HM_PIO_HEAD(3, strobe, more) | 0u << 5 | 4u)
#define HM_PIO_OUT_X_4(strobe, more) (HM_PIO_HEAD(3, strobe, more) | 1u << 5 | 4u)
#define HM_PIO_OUT_NULL_32(strobe, more) (HM_PIO_HEAD(3, strobe, more) | 3u << 5)
#define HM_PIO_MOV_PINS_X(strobe, more) (HM_PIO_HEAD(5, strobe, more) | 0u << 5 | 1u)
#define HM_PIO_NOP(strobe, more) (HM_PIO_HEAD(5, strobe, more) | 2u << 5 | 2u)

/* All that there is to know is in the PIO. */
typedef struct hm_port {
    unsigned value;
} hm_port;

/* With interrupts out if they may write here too, so that nothing comes between a look at the FIFO and its store. */
static inline uint32_t hm_pio_begin(void)
{
#if HM_INTERRUPTS
    return hm_interrupts_off();
#else
    return 0;
#endif
}

static inline void hm_pio_end(uint32_t before)
{
#if HM_INTERRUPTS
    hm_interrupts_on(before);
#else
    (void)before;
#endif
}

/* A word to the state machine; waits while its FIFO is full. */
static inline void hm_pio_put(uint32_t word)
{
    while (HM_RP2040_WORD(HM_PIO_FSTAT) & HM_PIO_FULL) { }
    HM_RP2040_WORD(HM_PIO_TXF) = word;
}

static inline void hm_rp2040_open(hm_port *port)
{
    static const uint16_t program[] = {
#if HM_ITEMS == HM_ITEMS_EVENTS
        HM_PIO_OUT_X_4(0, 0),           /* 0: the length ... */
        HM_PIO_MOV_PINS_X(0, HM_PIO_LEVEL - 2u),    /* 1: ... is the first nibble, ... */
        HM_PIO_JMP(0, 0, 6),            /* 2: which is there as long before its strobe as the others */
        HM_PIO_OUT_PINS_4(0, HM_PIO_LEVEL - 1u),    /* 3: a byte's low nibble */
        HM_PIO_NOP(1, HM_PIO_LEVEL - 1u),           /* 4 */
        HM_PIO_OUT_PINS_4(0, HM_PIO_LEVEL - 1u),    /* 5: its high nibble */
        HM_PIO_JMP_X_DEC(1, HM_PIO_LEVEL - 1u, 3),  /* 6: strobe; as many bytes as the length says */
        HM_PIO_OUT_NULL_32(1, 0)        /* 7: the rest of the last word is nothing */
#else
        HM_PIO_OUT_PINS_4(0, HM_PIO_LEVEL - 1u),    /* 0: a nibble */
        HM_PIO_NOP(1, HM_PIO_LEVEL - 1u)            /* 1: its strobe */
#endif
    };
    const uint32_t last = HM_PIO_FIRST + sizeof program / sizeof *program - 1u;
    unsigned i;
    port->value = 0;
    hm_rp2040_start(1u << 10);          /* PIO0 */
    for (i = 0; i < sizeof program / sizeof *program; i++)
        HM_RP2040_WORD(HM_PIO_INSTRUCTION(HM_PIO_FIRST + i)) = program[i];
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x00u)) = 1u << 16;                        /* every clock */
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x04u)) = last << 12 | HM_PIO_FIRST << 7;  /* wrap */
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x08u)) =                                  /* FIFO of 8, to the right, ... */
        1u << 30 | 1u << 19 | 1u << 17 | (HM_ITEMS == HM_ITEMS_NIBBLES ? 4u : 0u) << 25;
    HM_RP2040_WORD(HM_PIO_CTRL + HM_PIO_SET) = 16u << HM_PIO_MACHINE;           /* restart: nothing is in it */
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x10u)) = HM_PIO_FIRST;                    /* jmp there */
    /* The pins are made outputs by an instruction, set pindirs, for the data, then for the strobe. */
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x14u)) = 5u << 26 | (uint32_t)HM_PIN << 5;
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x10u)) = 7u << 13 | 4u << 5 | 31u;
    HM_RP2040_WORD(HM_PIO_OF_MACHINE(0x14u)) =                                  /* strobe, 4 pins, data */
        1u << 29 | 4u << 20 | (uint32_t)(HM_PIN + 4) << 10 | (uint32_t)HM_PIN;
    hm_rp2040_pins(HM_RP2040_FUNCTION_PIO0);
    HM_RP2040_WORD(HM_PIO_CTRL + HM_PIO_SET) = 1u << HM_PIO_MACHINE;
}

#if HM_ITEMS == HM_ITEMS_NIBBLES

/* One nibble, 0..15. */
static inline void hm_nibble(hm_port *port, unsigned nibble)
{
    const uint32_t interrupts = hm_pio_begin();
    (void)port;
    hm_pio_put(nibble);
    hm_pio_end(interrupts);
}

#elif HM_ITEMS == HM_ITEMS_WORDS

/* One word, for a node in word mode. */
static inline void hm_word(hm_port *port, uint32_t word)
{
    const uint32_t interrupts = hm_pio_begin();
    (void)port;
    hm_pio_put(word);
    hm_pio_end(interrupts);
}

#else

/*
 * One event: its id and length bytes of payload (NULL is allowed if there are none).
 * Returns 0; -1, and nothing is written, if length is more than HM_PAYLOAD_MAX.
 */
static inline int hm_event(hm_port *port, unsigned id, const void *payload, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)payload;
    uint32_t word = ((uint32_t)length + 1u) | ((uint32_t)id & 255u) << 4;
    unsigned filled = 12;
    uint32_t interrupts;
    size_t i;
    (void)port;
    if (length > HM_PAYLOAD_MAX)
        return -1;
    interrupts = hm_pio_begin();
    for (i = 0; i < length; i++) {
        word |= (uint32_t)bytes[i] << filled;
        filled += 8;
        if (filled > 32) {              /* never 32: an event is an odd number of nibbles */
            hm_pio_put(word);
            filled = 4;
            word = (uint32_t)bytes[i] >> 4;
        }
    }
    hm_pio_put(word);
    hm_pio_end(interrupts);
    return 0;
}

#endif

#endif /* HYPERMON_RP2040_PIO_H */
