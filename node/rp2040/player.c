/*
 * A node emulator for a Raspberry Pi Pico: plays a workload on GP2 to GP6 (data 0 to 3, strobe), each item
 * at its time, as a node's own software would, through hypermon.h.
 *
 *     hypermon emulate RUN --node 3 --uf2 node3.uf2
 *
 * builds it, with the workload. Hold BOOTSEL, plug the Pico in, copy the file to it; it plays at once, and
 * again after each copy. What it says when is kept by the Pico's crystal.
 *
 * A workload is bytes: for each item the clocks since the one before (since the beginning), 4 bytes, lowest
 * first; kind and length in bytes, 4 bits each; then the bytes: of a nibble one, of a word four, of
 * an event its id and payload. The kind 0 ends it.
 */
#include "hypermon.h"

#define SYSTICK_CSR 0xe000e010u
#define SYSTICK_RVR 0xe000e014u
#define SYSTICK_CVR 0xe000e018u
#define SYSTICK_MASK 0xffffffu

enum { END, NIBBLE, WORD, EVENT };

extern const unsigned char workload[];
int main(void);

static hm_port port;
static uint32_t ticks;  /* of the processor's clock, since the beginning, as they were last looked at */

static uint32_t clocks(void)
{
    const uint32_t now = ~HM_RP2040_WORD(SYSTICK_CVR);  /* it counts down, 24 bits */
    ticks += (now - ticks) & SYSTICK_MASK;
    return ticks;
}

static uint32_t word_at(const unsigned char *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

int main(void)
{
    const unsigned char *at = workload;
    uint32_t due;
    hm_rp2040_open(&port);
    HM_RP2040_WORD(SYSTICK_RVR) = SYSTICK_MASK;
    HM_RP2040_WORD(SYSTICK_CVR) = 0;
    HM_RP2040_WORD(SYSTICK_CSR) = 5u;
    ticks = ~HM_RP2040_WORD(SYSTICK_CVR);
    due = ticks;
    while (at[4] >> 4 != END) {
        const size_t length = at[4] & 15u;
        due += word_at(at);
        while ((int32_t)(clocks() - due) < 0) { }
#if HM_TARGET != HM_TARGET_RP2040_PIO  /* which takes items of one kind, events here */
        if (at[4] >> 4 == NIBBLE)
            hm_nibble(&port, at[5]);
        else if (at[4] >> 4 == WORD)
            hm_word(&port, word_at(at + 5));
        else
#endif
            hm_event(&port, at[5], at + 6, length - 1u);
        at += 5u + length;
    }
    return 0;
}
