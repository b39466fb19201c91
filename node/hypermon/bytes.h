/*
 * Targets HM_TARGET_SPI and HM_TARGET_UART: a node with two wires (clock and data of an SPI master; a chip
 * select, if you like), or with one (the transmit line of a UART: 8 data bits, no parity, 1 stop bit).
 *
 *     #define HM_TARGET HM_TARGET_UART
 *     #define HM_BYTE_DATA 0x40013804u         USART1->DR of an STM32F1: a store sends a byte
 *     #define HM_BYTE_STATUS 0x40013800u       USART1->SR ...
 *     #define HM_BYTE_ROOM 0x80u               ... has this bit while there is room for one (TXE)
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     (set up the SPI or the UART, as your chip wants it)
 *     hm_bytes_open(&port);
 *
 *   HM_BYTE_DATA     address of the register that sends a byte
 *   HM_BYTE_STATUS   address of the register that says whether there is room
 *   HM_BYTE_ROOM     bits of it that are set while there is
 *   HM_BYTE_FULL     or: bits of it that are set while there is not (a PL011: UARTFR, 0x20)
 *   HM_BYTE_WIDTH    type of the registers: uint32_t if not said. For an SPI that sends as many
 *                    bytes as a store is wide: uint8_t
 *   HM_BYTE_PUT(b)   instead of all of these: a statement that sends the byte b, and waits for room
 *
 * An event of n bytes is n + 2 on the wire: its length with the complement of that, the bytes, and a CRC-8.
 * The board stamps it at its first edge, less a constant. Bytes of an event may be apart; those of
 * different ports do not mix.
 *
 *   hm_event()   for a node in event mode
 *   hm_word()    for a node in word mode: four bytes, without a check
 *   hm_byte()    for a node in nibble mode: two nibbles, the lower first, without a check
 *
 * An SPI may have any mode, with the highest bit first. Modes 1 and 2 need `--edge falling` on the board. The option
 * --front-rate gives the rate.
 */
#ifndef HYPERMON_BYTES_H
#define HYPERMON_BYTES_H

#include "interrupts.h"

#if HM_BITS != 4 || HM_EDGES != 1
#error "HM_TARGET_SPI and HM_TARGET_UART send bytes: HM_BITS and HM_EDGES have no meaning"
#endif

typedef struct hm_port {
    unsigned value;
} hm_port;

#ifndef HM_BYTE_PUT
#ifndef HM_BYTE_WIDTH
#define HM_BYTE_WIDTH uint32_t
#endif
#define HM_BYTE_AT(address) (*(volatile HM_BYTE_WIDTH *)(uintptr_t)(address))
#if defined(HM_BYTE_ROOM)
#define HM_BYTE_WAITS() (!(*(volatile uint32_t *)(uintptr_t)(HM_BYTE_STATUS) & (HM_BYTE_ROOM)))
#elif defined(HM_BYTE_FULL)
#define HM_BYTE_WAITS() (*(volatile uint32_t *)(uintptr_t)(HM_BYTE_STATUS) & (HM_BYTE_FULL))
#else
#error "HM_BYTE_ROOM or HM_BYTE_FULL must say when there is room for a byte: see hypermon/bytes.h"
#endif
#define HM_BYTE_PUT(byte) do { while (HM_BYTE_WAITS()) { } HM_BYTE_AT(HM_BYTE_DATA) = (HM_BYTE_WIDTH)(byte); } while (0)
#endif

static inline void hm_bytes_open(hm_port *port) { port->value = 0; }

static inline uint32_t hm_bytes_begin(void)
{
#if HM_INTERRUPTS
    return hm_interrupts_off();
#else
    return 0;
#endif
}

static inline void hm_bytes_end(uint32_t before)
{
#if HM_INTERRUPTS
    hm_interrupts_on(before);
#else
    (void)before;
#endif
}

/* Sends a byte. The CRC-8 after it: x^8 + x^2 + x + 1, the highest bit first, four bits at a time. */
static inline unsigned hm_bytes_put(unsigned crc, unsigned byte)
{
    static const unsigned char after[16] = {
        0x00, 0x07, 0x0e, 0x09, 0x1c, 0x1b, 0x12, 0x15, 0x38, 0x3f, 0x36, 0x31, 0x24, 0x23, 0x2a, 0x2d};
    HM_BYTE_PUT(byte & 255u);
    crc ^= byte & 255u;
    crc = (crc << 4 & 255u) ^ after[crc >> 4];
    return (crc << 4 & 255u) ^ after[crc >> 4];
}

/* One byte: two nibbles of a node in nibble mode. */
static inline void hm_byte(hm_port *port, unsigned byte)
{
    const uint32_t interrupts = hm_bytes_begin();
    (void)port;
    HM_BYTE_PUT(byte & 255u);
    hm_bytes_end(interrupts);
}

/* One word, for a node in word mode. */
static inline void hm_word(hm_port *port, uint32_t word)
{
    const uint32_t interrupts = hm_bytes_begin();
    unsigned i;
    (void)port;
    for (i = 0; i < 32; i += 8)
        HM_BYTE_PUT((unsigned)(word >> i) & 255u);
    hm_bytes_end(interrupts);
}

/*
 * One event: its id and length bytes of payload (NULL is allowed if there are none).
 * Returns 0; -1, and nothing is written, if length is more than HM_PAYLOAD_MAX.
 */
static inline int hm_event(hm_port *port, unsigned id, const void *payload, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)payload;
    const unsigned size = (unsigned)length + 1u;
    uint32_t interrupts;
    unsigned crc;
    size_t i;
    (void)port;
    if (length > HM_PAYLOAD_MAX)
        return -1;
    interrupts = hm_bytes_begin();
    crc = hm_bytes_put(0xffu, size | (size ^ 15u) << 4);
    crc = hm_bytes_put(crc, id);
    for (i = 0; i < length; i++)
        crc = hm_bytes_put(crc, bytes[i]);
    HM_BYTE_PUT(crc);
    hm_bytes_end(interrupts);
    return 0;
}

#endif /* HYPERMON_BYTES_H */
