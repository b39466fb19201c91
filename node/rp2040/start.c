/* From the boot ROM to main(): stack, zeroed memory, 125 MHz from the 12 MHz crystal of a Pico. */
#include <stdint.h>

#define WORD(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* RP2040 Datasheet: 2.14.1, 2.15.7, 2.16.7, 2.18.4. */
#define RESETS 0x4000c000u
#define RESETS_DONE (RESETS + 8u)
#define SET 0x2000u             /* added to an address: a store sets bits ... */
#define CLEAR 0x3000u           /* ... or clears them */
#define PLL_SYS_BIT (1u << 12)
#define CLK_REF_CTRL 0x40008030u
#define CLK_REF_SELECTED 0x40008038u
#define CLK_SYS_CTRL 0x4000803cu
#define CLK_SYS_SELECTED 0x40008044u
#define XOSC_CTRL 0x40024000u
#define XOSC_STATUS 0x40024004u
#define XOSC_STARTUP 0x4002400cu
#define PLL_CS 0x40028000u
#define PLL_PWR 0x40028004u
#define PLL_FBDIV 0x40028008u
#define PLL_PRIM 0x4002800cu

int main(void);
void begin(void);
extern uint32_t zero_begin[], zero_end[];

__asm__(
    ".section .enter, \"ax\"\n"
    ".global enter\n"
    ".type enter, %function\n"
    ".thumb_func\n"
    "enter:\n"
    "    ldr r0, =0x20042000\n"
    "    mov sp, r0\n"
    "    ldr r0, =begin\n"
    "    bx r0\n"
    ".ltorg\n"
    ".text\n");

static void set_clock(void)
{
    WORD(CLK_SYS_CTRL + CLEAR) = 1u;                            /* from clk_ref, while all else changes */
    while (WORD(CLK_SYS_SELECTED) != 1u) { }
    WORD(XOSC_CTRL) = 0xaa0u;
    WORD(XOSC_STARTUP) = 47u;                                   /* 1 ms */
    WORD(XOSC_CTRL) = 0xfab000u | 0xaa0u;
    while (!(WORD(XOSC_STATUS) & 1u << 31)) { }
    WORD(CLK_REF_CTRL) = 2u;                                    /* the crystal */
    while (WORD(CLK_REF_SELECTED) != 4u) { }
    WORD(RESETS + SET) = PLL_SYS_BIT;
    WORD(RESETS + CLEAR) = PLL_SYS_BIT;
    while (!(WORD(RESETS_DONE) & PLL_SYS_BIT)) { }
    WORD(PLL_CS) = 1u;
    WORD(PLL_FBDIV) = 125u;                                     /* 12 MHz * 125 = 1500 MHz ... */
    WORD(PLL_PWR + CLEAR) = 1u << 0 | 1u << 5;
    while (!(WORD(PLL_CS) & 1u << 31)) { }
    WORD(PLL_PRIM) = 6u << 16 | 2u << 12;                       /* ... / 6 / 2 */
    WORD(PLL_PWR + CLEAR) = 1u << 3;
    WORD(CLK_SYS_CTRL) = 0u;                                    /* its other source is the PLL: take that */
    WORD(CLK_SYS_CTRL) = 1u;
    while (WORD(CLK_SYS_SELECTED) != 2u) { }
}

void begin(void)
{
    uint32_t *at;
    for (at = zero_begin; at < zero_end; at++)
        *at = 0;
    set_clock();
    main();
    for (;;)
        __asm__ volatile ("wfi");
}
