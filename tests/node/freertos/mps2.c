/* From reset to main() on the MPS2, whose memory is zero at first and filled by QEMU; and the end of the run. */
#include <stdint.h>

int main(void);
void enter(void);
void leave(void);

const void *const first[2] __attribute__((section(".enter"), used)) = {(const void *)0x20042000, (const void *)enter};

/* Arm's semihosting: SYS_EXIT, ADP_Stopped_ApplicationExit. */
void leave(void)
{
    __asm__ volatile ("movs r0, #0x18\n\tldr r1, =0x20026\n\tbkpt #0xab" : : : "r0", "r1", "memory");
    for (;;) { }
}

void enter(void)
{
    *(volatile uint32_t *)0x4002801cu = 24u;    /* FPGAIO_PRESCALE: its counter counts microseconds of 25 MHz */
    main();
    leave();
}
