/*
 * Nanoseconds for an event on this machine, all ways in one run: a plain store to memory, a store with a
 * time stamp (what recording by software takes at least), the virtual port, LTTng-UST.
 *
 *     node_cost ROUNDS EVENTS
 *
 * Rounds go through all ways in turn; a line for each way: name, items, and the quickest round's nanoseconds an item.
 */
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"

#ifdef LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "node_cost.h"
#endif

#define BUFFER 4096u

typedef struct record {
    uint64_t time_ns;
    unsigned char id;
    unsigned char payload[2];
} record;

static volatile uint32_t plain[BUFFER];
static volatile record stamped[BUFFER];
static hm_port port;

static void plain_event(unsigned i) { plain[i % BUFFER] = i & 255u; }
static void plain_event2(unsigned i) { plain[i % BUFFER] = (i & 0xffffu) << 8 | 17u; }

static void stamped_event(unsigned i)
{
    stamped[i % BUFFER].time_ns = hm_virtual_now();
    stamped[i % BUFFER].id = (unsigned char)i;
}

static void stamped_event2(unsigned i)
{
    stamped_event(17u);
    stamped[i % BUFFER].payload[0] = (unsigned char)i;
    stamped[i % BUFFER].payload[1] = (unsigned char)(i >> 8);
}

static void port_nibble(unsigned i) { hm_nibble(&port, i); }
static void port_word(unsigned i) { hm_word(&port, i); }
static void port_event(unsigned i) { hm_event(&port, i & 255u, NULL, 0); }

static void port_event2(unsigned i)
{
    unsigned char payload[2];
    hm_put16(payload, i);
    hm_event(&port, 17, payload, 2);
}

#ifdef LTTNG
static void lttng_event(unsigned i) { lttng_ust_tracepoint(hypermon_cost, event, (uint8_t)i); }
static void lttng_event2(unsigned i) { lttng_ust_tracepoint(hypermon_cost, event2, 17, (uint16_t)i); }
#endif

static const struct {
    const char *way, *item;
    void (*write)(unsigned i);
} WAYS[] = {
    { "memory", "event", plain_event }, { "memory", "event2", plain_event2 },
    { "stamped", "event", stamped_event }, { "stamped", "event2", stamped_event2 },
    { "virtual", "nibble", port_nibble }, { "virtual", "event", port_event },
    { "virtual", "event2", port_event2 }, { "virtual", "word", port_word },
#ifdef LTTNG
    { "lttng", "event", lttng_event }, { "lttng", "event2", lttng_event2 },
#endif
};
#define COUNT (sizeof WAYS / sizeof *WAYS)

int main(int argc, char **argv)
{
    double best[COUNT];
    unsigned rounds, events, round, i;
    size_t way;
    if (argc != 3)
        return 2;
    rounds = (unsigned)atoi(argv[1]);
    events = (unsigned)atoi(argv[2]);
    if (hm_virtual_open(&port, 16 * (size_t)events) != 0)
        return 1;
    for (round = 0; round < rounds; round++)
        for (way = 0; way < COUNT; way++) {
            const uint64_t begin = hm_virtual_now();
            double took;
            port.count = 0;
            for (i = 0; i < events; i++)
                WAYS[way].write(i);
            took = (double)(hm_virtual_now() - begin) / events;
            if (round == 0 || took < best[way])
                best[way] = took;
        }
    for (way = 0; way < COUNT; way++)
        printf("%s %s %.2f\n", WAYS[way].way, WAYS[way].item, best[way]);
    return port.missing != 0;
}
