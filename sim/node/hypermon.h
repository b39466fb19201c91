/*
 * hypermon.h: write events through a node's 5-bit port. Header only, C99 (and C++).
 *
 *     #define _POSIX_C_SOURCE 200809L          (the virtual port asks the clock)
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     hm_virtual_open(&port, 100000);
 *     hm_event(&port, MY_EVENT, bytes, 3);     id and up to 14 bytes
 *
 * A port has five bits: 3..0 a nibble, 4 the strobe that says "now". What the nibbles mean is a
 * matter between the program and the host:
 *
 *   nibble framing   each nibble is an event of its own: hm_nibble()
 *   event framing    a nibble with the number of bytes 1..15, then two nibbles a byte, the low one
 *                    first; the first byte is the event's id: hm_event(). A length of 0 is a
 *                    filler, which hosts ignore: hm_nibble(port, 0) between two events.
 *
 * Two macros, to be set before the include and the same for everything that shares a port:
 *
 *   HM_EDGES    1 (default): a nibble is two writes, strobe 0 then 1, as the port of 1990 wanted it;
 *                  the board takes the rising edge and the data before it.
 *               2: a nibble is one write that toggles the strobe; tell the board
 *                  `--edge both`, which takes the data after the edge.
 *   HM_TARGET   where the port is:
 *               HM_TARGET_VIRTUAL (default): in memory, each write stamped with the real time, for
 *                  the virtual board;
 *               HM_TARGET_NONE: nowhere; the calls compile to almost nothing, to see what
 *                  observing costs;
 *               HM_TARGET_CUSTOM: yours.
 *
 * A target is a type and three functions, which must exist before this file's last part; for your
 * own, define them before the include:
 *
 *   typedef struct hm_port { unsigned strobe; ... } hm_port;   strobe: 0 at first, then this file's
 *   static void hm_port_write(hm_port *port, unsigned value);  put value (0..31) on the five pins at
 *                  once; the pins then hold it for two board clocks and a nanosecond at least
 *   static void hm_port_begin(hm_port *port);                  an event begins: keep interrupts out
 *   static int hm_port_end(hm_port *port);                     it is written: let them in; 0, or 1 if
 *                  the target has taken it back and wants it again
 *
 * Threads: a port belongs to one thread (or interrupt level) at a time; different ports need no lock.
 * Nothing here allocates, locks or calls the system between hm_virtual_open() and
 * hm_virtual_save(), but for the clock.
 */
#ifndef HYPERMON_H
#define HYPERMON_H

#include <stddef.h>
#include <stdint.h>

#define HM_TARGET_NONE 0
#define HM_TARGET_VIRTUAL 1
#define HM_TARGET_CUSTOM 2

#ifndef HM_TARGET
#define HM_TARGET HM_TARGET_VIRTUAL
#endif

#ifndef HM_EDGES
#define HM_EDGES 1
#endif

#if HM_EDGES != 1 && HM_EDGES != 2
#error "HM_EDGES must be 1 (strobe 0, then 1) or 2 (the strobe toggles)"
#endif

/* Bytes that fit an event behind its id. */
#define HM_PAYLOAD_MAX 14u
/* The strobe's place in the port. */
#define HM_STROBE 0x10u


/* ------------------------------------------------------------------------------- target: none -- */

#if HM_TARGET == HM_TARGET_NONE

typedef struct hm_port {
    unsigned strobe;
} hm_port;

static inline void hm_port_write(hm_port *port, unsigned value) { (void)port; (void)value; }
static inline void hm_port_begin(hm_port *port) { (void)port; }
static inline int hm_port_end(hm_port *port) { (void)port; return 0; }


/* ---------------------------------------------------------------------------- target: virtual -- */

#elif HM_TARGET == HM_TARGET_VIRTUAL

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef CLOCK_MONOTONIC
#error "define _POSIX_C_SOURCE 200809L before the first #include: the virtual port needs clock_gettime()"
#endif

/* The board's clock, and how long a value then stays on a port: two clocks and a nanosecond. */
#ifndef HM_CLOCK_HZ
#define HM_CLOCK_HZ 100000000u
#endif
#define HM_HOLD_NS ((2u * UINT64_C(1000000000) + HM_CLOCK_HZ - 1u) / HM_CLOCK_HZ + 1u)

/*
 * A silence of 10 ms inside an event ends it for the reader. A microcontroller masks its interrupts
 * while it writes one; a thread cannot keep the scheduler out, so an event in which it was stopped
 * for longer than this is taken back and written again, before hm_event() returns. Every
 * stamp that remains is the time of a write that happened.
 */
#define HM_TORN_NS UINT64_C(5000000)

/* One write to a port. */
typedef struct hm_write {
    uint64_t time_ns;
    unsigned value;
} hm_write;

/* Members are for reading, all but `strobe` and `begin` between events. */
typedef struct hm_port {
    unsigned strobe;
    unsigned begin_strobe;
    hm_write *writes;   /* in order of time, HM_HOLD_NS apart at least */
    size_t count;
    size_t capacity;
    size_t begin;       /* where the open event begins */
    size_t missing;     /* writes that found no room: the trace is not whole */
    size_t torn;        /* events taken back and written again */
    uint64_t free_ns;   /* from when on the port may change */
} hm_port;

/* The time that stamps the writes: nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t hm_virtual_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/*
 * Make a port with room for so many writes (an event of n bytes, id included, is
 * HM_EDGES == 1 ? 4n + 2 : 2n + 1). The memory is touched here, so that no page fault falls into the
 * time that is measured. Returns 0, or -1 (ENOMEM). A port starts at 0, at the board's pins too.
 */
static inline int hm_virtual_open(hm_port *port, size_t capacity)
{
    memset(port, 0, sizeof *port);
    if (capacity > SIZE_MAX / sizeof *port->writes) {
        errno = ENOMEM;
        return -1;
    }
    port->writes = (hm_write *)malloc((capacity ? capacity : 1) * sizeof *port->writes);
    if (port->writes == NULL)
        return -1;
    memset(port->writes, 0, (capacity ? capacity : 1) * sizeof *port->writes);
    port->capacity = capacity;
    return 0;
}

/* Give the memory back. The port may be opened again. */
static inline void hm_virtual_close(hm_port *port)
{
    free(port->writes);
    memset(port, 0, sizeof *port);
}

/*
 * Returns when the value is on the port: as soon as the one before it has been there for
 * HM_HOLD_NS, which is spent spinning. The stamp is read after that wait and before the return, so whatever
 * the thread did before the call happened before the stamp, and whatever it does next happens after.
 * Without room for another write it is counted in `missing`, in the same time.
 */
static inline void hm_port_write(hm_port *port, unsigned value)
{
    uint64_t now = hm_virtual_now();
    while (now < port->free_ns)
        now = hm_virtual_now();
    port->free_ns = now + HM_HOLD_NS;
    if (port->count < port->capacity) {
        port->writes[port->count].time_ns = now;
        port->writes[port->count].value = value & 31u;
        port->count++;
    } else {
        port->missing++;
    }
}

static inline void hm_port_begin(hm_port *port)
{
    port->begin = port->count;
    port->begin_strobe = port->strobe;
}

static inline int hm_port_end(hm_port *port)
{
    size_t i;
    for (i = port->begin + 1; i < port->count; i++)
        if (port->writes[i].time_ns - port->writes[i - 1].time_ns > HM_TORN_NS) {
            port->count = port->begin;
            port->strobe = port->begin_strobe;
            port->torn++;
            return 1;
        }
    return 0;
}

/*
 * Write what all ports did as one stimulus for the virtual board: CSV with the header
 * `time_ns,node,port`, a row a write, sorted by time, ties by node. ports[i] is node i's; their threads
 * must be done with them. Times count from start_ns, which must not be later than
 * any write (take hm_virtual_now() before the threads start).
 * Returns 0; -1 if a write is missing or too early, if memory or `out` failed (errno says which:
 * EOVERFLOW, EINVAL, ENOMEM or the stream's).
 */
static inline int hm_virtual_save(FILE *out, hm_port *const *ports, unsigned nodes, uint64_t start_ns)
{
    size_t *next = (size_t *)calloc(nodes ? nodes : 1, sizeof *next);
    unsigned i;
    if (next == NULL)
        return -1;
    for (i = 0; i < nodes; i++)
        if (ports[i]->missing || (ports[i]->count && ports[i]->writes[0].time_ns < start_ns)) {
            errno = ports[i]->missing ? EOVERFLOW : EINVAL;
            free(next);
            return -1;
        }
    fputs("time_ns,node,port\n", out);
    for (;;) {
        const hm_write *first = NULL;
        unsigned node = 0;
        for (i = 0; i < nodes; i++)
            if (next[i] < ports[i]->count) {
                const hm_write *write = &ports[i]->writes[next[i]];
                if (first == NULL || write->time_ns < first->time_ns) {
                    first = write;
                    node = i;
                }
            }
        if (first == NULL)
            break;
        next[node]++;
        fprintf(out, "%" PRIu64 ",%u,%u\n", first->time_ns - start_ns, node, first->value);
    }
    free(next);
    return fflush(out) != 0 || ferror(out) ? -1 : 0;
}

#elif HM_TARGET != HM_TARGET_CUSTOM
#error "HM_TARGET must be HM_TARGET_VIRTUAL, HM_TARGET_NONE or HM_TARGET_CUSTOM"
#endif


/* ------------------------------------------------------------------------------- what one calls -- */

/* One nibble, 0..15: an event in nibble framing, a filler if 0 between events in event framing. */
static inline void hm_nibble(hm_port *port, unsigned nibble)
{
    const unsigned data = nibble & 15u;
#if HM_EDGES == 1
    hm_port_write(port, data);
    hm_port_write(port, data | HM_STROBE);
#else
    port->strobe ^= HM_STROBE;
    hm_port_write(port, data | port->strobe);
#endif
}

/*
 * One event: its id and length bytes of payload (NULL is allowed if there are none). The board
 * stamps it with the time of its first nibble.
 * Returns 0; -1, and nothing is written, if length is more than HM_PAYLOAD_MAX.
 */
static inline int hm_event(hm_port *port, unsigned id, const void *payload, size_t length)
{
    const unsigned char *bytes = (const unsigned char *)payload;
    size_t i;
    if (length > HM_PAYLOAD_MAX)
        return -1;
    do {
        hm_port_begin(port);
        hm_nibble(port, (unsigned)length + 1u);
        hm_nibble(port, id);
        hm_nibble(port, id >> 4);
        for (i = 0; i < length; i++) {
            hm_nibble(port, bytes[i]);
            hm_nibble(port, (unsigned)bytes[i] >> 4);
        }
    } while (hm_port_end(port));
    return 0;
}

/* Numbers in a payload are little-endian, whatever the node is. */
static inline void hm_put16(unsigned char *at, unsigned value)
{
    at[0] = (unsigned char)(value & 0xffu);
    at[1] = (unsigned char)(value >> 8 & 0xffu);
}

static inline void hm_put32(unsigned char *at, uint32_t value)
{
    hm_put16(at, (unsigned)(value & 0xffffu));
    hm_put16(at + 2, (unsigned)(value >> 16));
}

#endif /* HYPERMON_H */
