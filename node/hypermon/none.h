/* Target HM_TARGET_NONE: nowhere. The calls compile to almost nothing, to see what observing costs. */
#ifndef HYPERMON_NONE_H
#define HYPERMON_NONE_H

typedef struct hm_port {
    unsigned value;
} hm_port;

static inline void hm_port_write(hm_port *port, unsigned before, unsigned value) { (void)port; (void)before; (void)value; }
static inline void hm_port_begin(hm_port *port) { (void)port; }
static inline int hm_port_end(hm_port *port) { (void)port; return 0; }

#endif /* HYPERMON_NONE_H */
