/*
 * A Pico as a node: ten times a second event 1 with a counter, on GP2 to GP5 (data) and GP6 (strobe).
 * The library writes to state machine 0 of PIO0 directly; the program claims it, so that nothing else in the SDK takes it.
 */
#include "hardware/clocks.h"
#include "hardware/pio.h"
#include "pico/stdlib.h"

#define HM_CPU_HZ (SYS_CLK_KHZ * 1000u)
#include "hypermon.h"

enum { TICK = 1 };

/* Reserves the instructions that the library writes. Its own program then replaces these. */
static void claim_pio(void)
{
    static const uint16_t reserved[32 - HM_PIO_FIRST] = { 0 };
    const struct pio_program program = { .instructions = reserved, .length = 32 - HM_PIO_FIRST, .origin = HM_PIO_FIRST };
    pio_add_program_at_offset(pio0, &program, HM_PIO_FIRST);
    pio_sm_claim(pio0, HM_PIO_MACHINE);
}

int main(void)
{
    hm_port port;
    unsigned char payload[4];
    uint32_t count = 0;
    claim_pio();
    hm_rp2040_open(&port);
    for (;;) {
        hm_put32(payload, count++);
        hm_event(&port, TICK, payload, sizeof payload);
        sleep_ms(100);
    }
}
