/* LTTng's description of an event: a node and its nibble. It is included several times. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER hypermon

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_events.h"

#if !defined(LTTNG_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENTS_H

#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    hypermon, nibble, LTTNG_UST_TP_ARGS(int, node, int, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint8_t, node, node) lttng_ust_field_integer(uint8_t, value, value)))

#endif

#include <lttng/tracepoint-event.h>
