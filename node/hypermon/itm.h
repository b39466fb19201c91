/*
 * Target HM_TARGET_ITM: the SWO pin of a Cortex-M3 or later, by the stimulus ports of its ITM. A program that writes
 * to stimulus ports already, ITM_SendChar() for instance, needs nothing of this file: each of its writes is an event.
 *
 *     #define HM_TARGET HM_TARGET_ITM
 *     #define HM_CPU_HZ 72000000u              clock of the trace port, which is mostly the processor's
 *     #define HM_SWO_BAUD 2000000u             the rate of --front-rate swo=2000000
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     (make SWO an output, as your chip wants it: DBGMCU_CR of an STM32)
 *     hm_itm_open(&port);
 *
 * hm_event(): the id is the number of the stimulus port, 0 to 31. The payload has 1, 2 or 4 bytes, and is one store.
 * A write waits while the ITM's FIFO has no room. Interrupts may write at any time, too. The ITM must not be
 * multiplexed with an ETM (no formatter).
 *
 * Registers: ARMv7-M Architecture Reference Manual, C1.7 and C1.10.
 */
#ifndef HYPERMON_ITM_H
#define HYPERMON_ITM_H

#ifndef HM_ITM_WORD             /* a register */
#define HM_ITM_WORD(address) (*(volatile uint32_t *)(uintptr_t)(address))
#define HM_ITM_HALF(address) (*(volatile uint16_t *)(uintptr_t)(address))
#define HM_ITM_BYTE(address) (*(volatile uint8_t *)(uintptr_t)(address))
#endif
#define HM_ITM_STIM(port) (0xe0000000u + 4u * (port))
#define HM_ITM_TER 0xe0000e00u          /* a stimulus port is enabled */
#define HM_ITM_TCR 0xe0000e80u          /* so is the ITM: bit 0 */
#define HM_ITM_LAR 0xe0000fb0u
#define HM_ITM_TPIU_ACPR 0xe0040010u
#define HM_ITM_TPIU_SPPR 0xe00400f0u
#define HM_ITM_TPIU_FFCR 0xe0040304u
#define HM_ITM_DEMCR 0xe000edfcu

typedef struct hm_port {
    unsigned value;
} hm_port;

#ifdef HM_SWO_BAUD
/* SWO in UART coding, without formatter; all stimulus ports. */
static inline void hm_itm_open(hm_port *port)
{
    port->value = 0;
    HM_ITM_WORD(HM_ITM_DEMCR) |= 1u << 24;                      /* TRCENA */
    HM_ITM_WORD(HM_ITM_TPIU_SPPR) = 2;                          /* NRZ */
    HM_ITM_WORD(HM_ITM_TPIU_ACPR) = ((HM_CPU_HZ) + (HM_SWO_BAUD) / 2u) / (HM_SWO_BAUD) - 1u;
    HM_ITM_WORD(HM_ITM_TPIU_FFCR) = 0x100;
    HM_ITM_WORD(HM_ITM_LAR) = 0xc5acce55u;
    HM_ITM_WORD(HM_ITM_TCR) = 1u << 16 | 1u;
    HM_ITM_WORD(HM_ITM_TER) = 0xffffffffu;
}
#endif

/*
 * One event: its id, which is the number of a stimulus port, and 1, 2 or 4 bytes of payload.
 * Returns 0; -1, and nothing is written, for another id or length, or if the ITM or the stimulus port is not enabled.
 */
static inline int hm_event(hm_port *port, unsigned id, const void *payload, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)payload;
    (void)port;
    if (id > 31 || (length != 1 && length != 2 && length != 4))
        return -1;
    if (!(HM_ITM_WORD(HM_ITM_TCR) & 1u) || !(HM_ITM_WORD(HM_ITM_TER) >> id & 1u))
        return -1;
    while (!(HM_ITM_WORD(HM_ITM_STIM(id)) & 1u)) { }
    if (length == 1)
        HM_ITM_BYTE(HM_ITM_STIM(id)) = bytes[0];
    else if (length == 2)
        HM_ITM_HALF(HM_ITM_STIM(id)) = (uint16_t)(bytes[0] | bytes[1] << 8);
    else
        HM_ITM_WORD(HM_ITM_STIM(id)) = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16
                                       | (uint32_t)bytes[3] << 24;
    return 0;
}

#endif /* HYPERMON_ITM_H */
