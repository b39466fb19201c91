/*
 * Target HM_TARGET_MMAP: a register under Linux, through a file that can be mapped (/dev/mem,
 * /dev/gpiomem, a UIO device, a PCI resource). No system call for an event. A Raspberry Pi 1 to 4:
 *
 *     #define _DEFAULT_SOURCE
 *     #define HM_TARGET HM_TARGET_MMAP
 *     #define HM_STYLE HM_STYLE_SETCLEAR
 *     #define HM_SHIFT 17                      GPIO17 to 20 are the data, GPIO21 the strobe
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     (make the pins outputs: pinctrl set 17-21 op dl)
 *     hm_mmap_open(&port, "/dev/gpiomem", 0, 0x1c, 0x28);     GPSET0, GPCLR0
 *
 * A Raspberry Pi 5 toggles: HM_STYLE_XOR, and hm_mmap_open(&port, "/dev/gpiomem0", 0x11000, 0, 0).
 *
 * HM_STYLE, HM_SHIFT, HM_REGISTER are those of hypermon/register.h. The scheduler may stop a thread
 * within an event; if that is for longer than 10 ms the host marks the event as aborted.
 *
 * HM_HOLD_READS is 1 here if not said: the bus takes stores faster than the board can read them, and a read
 * returns only when the store before it has arrived.
 */
#ifndef HYPERMON_MMAP_H
#define HYPERMON_MMAP_H

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef HM_ADDRESS
#error "with HM_TARGET_MMAP, hm_mmap_open() sets the address of the registers, not HM_ADDRESS"
#endif
#ifndef HM_HOLD_READS
#define HM_HOLD_READS 1
#endif
#ifndef HM_INTERRUPTS
#define HM_INTERRUPTS 0
#endif

#include "register.h"

#define HM_MMAP_BYTES 4096u

/*
 * Map the 4 KiB at `base` (a multiple of 4 KiB, whatever the system's pages are) of a file and begin with the
 * registers at the offsets `at` and, with HM_STYLE_SETCLEAR, `clear`. Returns 0, or -1 (errno).
 */
static inline int hm_mmap_open(hm_port *port, const char *path, off_t base, size_t at, size_t clear)
{
    const int file = open(path, O_RDWR | O_SYNC);
    const off_t within = base % (off_t)sysconf(_SC_PAGESIZE);
    char *page;
    if (file < 0)
        return -1;
    page = (char *)mmap(NULL, (size_t)within + HM_MMAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, base - within);
    close(file);
    if ((void *)page == MAP_FAILED)
        return -1;
    hm_register_open(port, (volatile HM_REGISTER *)(void *)(page + within + at),
                     (volatile HM_REGISTER *)(void *)(page + within + clear));
    return 0;
}

/* Give the mapping back. The port may be opened again. */
static inline void hm_mmap_close(hm_port *port)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    munmap((void *)((uintptr_t)port->at & ~(page - 1u)), HM_MMAP_BYTES);
    port->at = NULL;
}

#endif /* HYPERMON_MMAP_H */
