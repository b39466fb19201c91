/*
 * How interrupts are disabled during a write, with HM_INTERRUPTS 1. For a processor that is
 * not listed here define HM_INTERRUPTS_CUSTOM and two functions before the include:
 *
 *   static inline uint32_t hm_interrupts_off(void);            returns the state before
 *   static inline void hm_interrupts_on(uint32_t before);      restores it
 *
 * The time is that of one item: at most 31 nibbles. Other cores and non-maskable interrupts go on: let
 * them have ports of their own.
 */
#ifndef HYPERMON_INTERRUPTS_H
#define HYPERMON_INTERRUPTS_H

#ifndef HM_INTERRUPTS
#define HM_INTERRUPTS 1
#endif

#if HM_INTERRUPTS && !defined(HM_INTERRUPTS_CUSTOM)

/* Of each processor: how it was before, in a register of it, and how it is made so again. */
#if defined(__ARM_ARCH) && (defined(__ARM_ARCH_6M__) || (defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'))
typedef uint32_t hm_interrupts;                         /* Cortex-M: PRIMASK */
#define HM_INTERRUPTS_OFF(before) __asm__ volatile ("mrs %0, primask\n\tcpsid i" : "=r"(before) : : "memory")
#define HM_INTERRUPTS_ON(before) __asm__ volatile ("msr primask, %0" : : "r"(before) : "memory")
#elif defined(__riscv)
typedef unsigned long hm_interrupts;                    /* RISC-V in machine mode: the bit MIE of mstatus */
#define HM_INTERRUPTS_OFF(before) __asm__ volatile ("csrrci %0, mstatus, 8" : "=r"(before) : : "memory")
#define HM_INTERRUPTS_ON(before) __asm__ volatile ("csrs mstatus, %0" : : "r"((before) & 8u) : "memory")
#elif defined(__AVR__)
typedef uint8_t hm_interrupts;                          /* AVR: the flag I of SREG, at I/O address 0x3f */
#define HM_INTERRUPTS_OFF(before) __asm__ volatile ("in %0, 0x3f\n\tcli" : "=r"(before) : : "memory")
#define HM_INTERRUPTS_ON(before) __asm__ volatile ("out 0x3f, %0" : : "r"(before) : "memory")
#elif defined(__XTENSA__)
typedef uint32_t hm_interrupts;                         /* Xtensa: levels up to 3 wait */
#define HM_INTERRUPTS_OFF(before) __asm__ volatile ("rsil %0, 3" : "=a"(before) : : "memory")
#define HM_INTERRUPTS_ON(before) __asm__ volatile ("wsr.ps %0\n\trsync" : : "a"(before) : "memory")
#else
#error "hypermon.h does not know this processor's interrupts: see hypermon/interrupts.h, or set HM_INTERRUPTS 0"
#endif

static inline uint32_t hm_interrupts_off(void)
{
    hm_interrupts before;
    HM_INTERRUPTS_OFF(before);
    return (uint32_t)before;
}

static inline void hm_interrupts_on(uint32_t before)
{
    HM_INTERRUPTS_ON((hm_interrupts)before);
}

#endif

#endif /* HYPERMON_INTERRUPTS_H */
