/*
 * Target HM_TARGET_VIRTUAL: a port in memory, each write stamped with the real time, for the virtual
 * board.
 *
 *     #define _POSIX_C_SOURCE 200809L          (the virtual port asks the clock)
 *     #include "hypermon.h"
 *
 *     hm_port port;
 *     hm_virtual_open(&port, 100000);          room for 100000 port writes
 */
#ifndef HYPERMON_VIRTUAL_H
#define HYPERMON_VIRTUAL_H

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

/* Members are for reading, all but `value` and `begin` between events. */
typedef struct hm_port {
    unsigned value;
    unsigned begin_value;
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
 * Make a port with room for the given number of writes (an event of n bytes, id included, is
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
static inline void hm_port_write(hm_port *port, unsigned before, unsigned value)
{
    uint64_t now = hm_virtual_now();
    (void)before;
    while (now < port->free_ns)
        now = hm_virtual_now();
    port->free_ns = now + HM_HOLD_NS;
    if (port->count < port->capacity) {
        port->writes[port->count].time_ns = now;
        port->writes[port->count].value = value & HM_PORT;
        port->count++;
    } else {
        port->missing++;
    }
}

static inline void hm_port_begin(hm_port *port)
{
    port->begin = port->count;
    port->begin_value = port->value;
}

static inline int hm_port_end(hm_port *port)
{
    size_t i;
    for (i = port->begin + 1; i < port->count; i++)
        if (port->writes[i].time_ns - port->writes[i - 1].time_ns > HM_TORN_NS) {
            port->count = port->begin;
            port->value = port->begin_value;
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

#endif /* HYPERMON_VIRTUAL_H */
