/* What an event costs LTTng-UST: the tracepoint of node_cost.c. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER hypermon_cost
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./node_cost.h"

#if !defined(NODE_COST_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define NODE_COST_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(hypermon_cost, event,
    LTTNG_UST_TP_ARGS(uint8_t, id),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint8_t, id, id)))

LTTNG_UST_TRACEPOINT_EVENT(hypermon_cost, event2,
    LTTNG_UST_TP_ARGS(uint8_t, id, uint16_t, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(uint8_t, id, id) lttng_ust_field_integer(uint16_t, value, value)))

#endif

#include <lttng/tracepoint-event.h>
