/* Five pins of an RP2040, for its processor or for its PIO. Registers: RP2040 Datasheet, 2.19.6 and 2.3.1.7. */
#ifndef HYPERMON_RP2040_PINS_H
#define HYPERMON_RP2040_PINS_H

/* First of the five pins: data 0 to 3, then the strobe. */
#ifndef HM_PIN
#define HM_PIN 2
#endif
#if HM_PIN < 0 || HM_PIN + HM_BITS > 29
#error "HM_PIN is the first of five pins, 0..25, or of nine, 0..21"
#endif
/* The processor's clock. */
#ifndef HM_CPU_HZ
#define HM_CPU_HZ 125000000u
#endif

#define HM_RP2040_WORD(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define HM_RP2040_SIO_OUT_CLR 0xd0000018u
#define HM_RP2040_SIO_OE_SET 0xd0000024u
#define HM_RP2040_RESETS 0x4000c000u
#define HM_RP2040_CLEAR 0x3000u         /* added to a peripheral's address: a store clears bits */
#define HM_RP2040_IO_BANK0_CTRL 0x40014004u
#define HM_RP2040_FUNCTION_SIO 5u
#define HM_RP2040_FUNCTION_PIO0 6u

/* Take these blocks (bits of RESETS) out of reset. */
static inline void hm_rp2040_start(uint32_t blocks)
{
    HM_RP2040_WORD(HM_RP2040_RESETS + HM_RP2040_CLEAR) = blocks;
    while (~HM_RP2040_WORD(HM_RP2040_RESETS + 8u) & blocks) { }
}

/* Make the five pins outputs, 0, that this function drives. */
static inline void hm_rp2040_pins(uint32_t function)
{
    unsigned i;
    hm_rp2040_start(1u << 5 | 1u << 8);         /* IO_BANK0, PADS_BANK0 */
    HM_RP2040_WORD(HM_RP2040_SIO_OUT_CLR) = HM_PORT << HM_PIN;
    HM_RP2040_WORD(HM_RP2040_SIO_OE_SET) = HM_PORT << HM_PIN;
    for (i = 0; i < HM_PINS; i++)
        HM_RP2040_WORD(HM_RP2040_IO_BANK0_CTRL + 8u * (HM_PIN + i)) = function;
}

#endif /* HYPERMON_RP2040_PINS_H */
