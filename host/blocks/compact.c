/* Payloads of COMPACT blocks into columns (docs/frame-format.md, COMPACT), for host/blocks/compact_c.py.

   The same as read() of host/blocks/compact.py, which says what is legal; tests hold the two together. No byte
   outside a payload is read and no row written that its groups do not pay for, whatever the bytes are. */

#include "compact_fast.h"

/* Whether an item may be here. */
static inline int placed(struct reader *r, int64_t gap, int node, int64_t time) {
    if (r->row == r->first_row && r->window != time)
        return fail(r, NOT_FIRST, r->begin);
    if (gap == 0 && node <= r->node)
        return fail(r, NO_ORDER, r->begin);
    return 0;
}

static int window_code(struct reader *r, const struct rows *out, int64_t time, int items, int unit) {
    int64_t gap = number(r);
    if (gap < 0)
        return -1;
    int64_t vector = field(r, 4 * r->wide);
    if (vector < 0)
        return -1;
    if (vector == 0)
        return fail(r, EMPTY_VECTOR, r->begin);
    if (vector >> r->nodes)
        return fail(r, NO_SUCH_STROBES, r->begin);
    int count = __builtin_popcountll((unsigned long long)vector);
    if (items)
        for (int node = 0; node < r->nodes; node++)
            if (vector >> node & 1 && r->mode[node] != NIBBLE)
                return fail(r, LONG_WINDOW, r->begin);
    if (r->end - r->at < count * unit)
        return fail(r, CUT_SHORT, r->end);
    r->window += gap;
    if (placed(r, gap, __builtin_ctzll((unsigned long long)vector), time) < 0)
        return -1;
    int node = 0;
    for (uint64_t rest = (uint64_t)vector; rest; rest &= rest - 1) {
        node = __builtin_ctzll(rest);
        unsigned nibble = group(r->data, r->at++);
        if (unit == 2)
            nibble |= group(r->data, r->at++) << 4;
        if (items) {
            item_row(r, out, r->window, (unsigned)node, nibble, 0, unit);
        } else {
            out->window[r->row] = r->window;
            out->node[r->row] = (uint8_t)node;
            out->nibble[r->row++] = (uint8_t)nibble;
        }
    }
    r->node = node;
    return 0;
}

static int late_code(struct reader *r, const struct rows *out, int unit) {
    if (r->row == r->first_row)
        return fail(r, LATE_FIRST, r->begin);
    int64_t age = number(r);
    if (age < 0)
        return -1;
    int64_t node = field(r, r->wide);
    int64_t nibble = node < 0 ? -1 : field(r, unit);
    if (nibble < 0)
        return -1;
    if (node < r->nodes && r->mode[node] == NIBBLE)
        return fail(r, LATE_NIBBLE, r->begin);
    int32_t further = further_groups(r, node, (unsigned)nibble, unit);
    if (further < 0)
        return -1;
    int64_t window = r->window - (age >= 1 << 20 ? age - (1 << 21) : age);
    if (window < 0)
        return fail(r, BEFORE_TIME, r->begin);
    item_row(r, out, window, (unsigned)node, (unsigned)nibble, (uint32_t)further, unit);
    return 0;
}

static int abort_code(struct reader *r, const struct rows *out, int unit) {
    if (!r->open)
        return fail(r, NO_ABORT, r->begin);
    int64_t filler = unit * field(r, 2); /* groups */
    if (filler < 0)
        return -1;
    if (filler == 0 || filler > r->length)
        return fail(r, ABORT_LENGTH, r->begin);
    for (int64_t k = 1; k <= filler; k++)
        if (group(r->data, r->further + r->length - k))
            return fail(r, ABORT_FILLER, r->begin);
    int64_t row = r->row - 1;
    int event = r->mode[out->node[row]] == EVENT;
    int64_t whole = ((int64_t)r->length - filler) / 2; /* bytes */
    out->state[row] = event && whole == 0 ? ABORTED_NAMELESS : ABORTED;
    if (event) {
        r->byte = r->first_byte + (whole > 1 ? whole - 1 : 0);
        out->ends[row] = (int32_t)r->byte;
    }
    r->open = 0;
    return 0;
}

static int plain_item(struct reader *r, const struct rows *out, int64_t time, int items, int unit) {
    int64_t gap = number(r);
    if (gap < 0)
        return -1;
    int64_t node = field(r, r->wide);
    int64_t nibble = node < 0 ? -1 : field(r, unit);
    if (nibble < 0)
        return -1;
    int32_t further = further_groups(r, node, (unsigned)nibble, unit);
    if (further < 0)
        return -1;
    r->window += gap;
    if (placed(r, gap, (int)node, time) < 0)
        return -1;
    r->node = (int32_t)node;
    if (items) {
        item_row(r, out, r->window, (unsigned)node, (unsigned)nibble, (uint32_t)further, unit);
    } else {
        out->window[r->row] = r->window;
        out->node[r->row] = (uint8_t)node;
        out->nibble[r->row++] = (uint8_t)nibble;
    }
    return 0;
}

/* What begins at r->at, slowly and with every check. */
static int next(struct reader *r, const struct rows *out, int64_t time, int items, int unit) {
    r->begin = r->at;
    unsigned first = group(r->data, r->at);
    if (!(first & MORE) || group(r->data, r->at + 1))
        return plain_item(r, out, time, items, unit);
    r->code = (int32_t)(first & (MORE - 1));
    if (r->code > (items ? LATE : WINDOW))
        return fail(r, UNKNOWN_CODE, r->at);
    r->at += 2;
    if (r->code == WINDOW)
        return window_code(r, out, time, items, unit);
    return r->code == ABORT ? abort_code(r, out, unit) : late_code(r, out, unit);
}

static inline uint32_t word32(const uint8_t *data) {
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

static int head(struct reader *r) {
    if (r->end < HEAD_GROUPS)
        return fail(r, NO_HEAD, r->end);
    for (int k = 8; k < HEAD_GROUPS / 2; k++)
        if (r->data[k])
            return fail(r, BAD_HEAD, 16);
    uint32_t words = word32(r->data), events = word32(r->data + 4);
    for (int node = 0; node < 32; node++)
        r->mode[node] = events >> node & 1 ? EVENT : words >> node & 1 ? WORD : NIBBLE;
    uint32_t every = r->nodes < 32 ? (1u << r->nodes) - 1 : ~0u;
    r->all = (events & every) == every ? EVENT : (words & ~events & every) == every ? WORD : NIBBLE;
    r->at = HEAD_GROUPS;
    return 0;
}

static inline int payload(struct reader *r, const struct rows *out, int64_t time, int items, int unit) {
    if (items && head(r) < 0)
        return -1;
    while (r->end - r->at > 1) {
        if (next(r, out, time, items, unit) < 0)
            return -1;
        if (r->row == r->first_row)
            continue;
        if (!items) {
            hurry_nibbles(r, out, unit);
        } else {
            if (r->all == EVENT)
                hurry_events(r, out, unit);
            else if (r->all == WORD)
                hurry_words(r, out, unit);
            hurry(r, out, unit);
        }
    }
    if (r->at < r->end && group(r->data, r->at))
        return fail(r, BEHIND_LAST, r->at);
    return 0;
}

static inline int64_t all(const uint8_t *data, const int64_t *ends, const int64_t *times, int64_t count,
                          int32_t nodes, const struct rows *out, struct found *found, int items, int unit) {
    struct reader r;
    memset(&r, 0, sizeof r);
    r.nodes = nodes;
    r.wide = nodes > 16 ? 2 : 1;
    int64_t begin = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t first_byte = r.byte;
        r.data = data + begin;
        r.at = 0;
        r.end = 2 * (ends[k] - begin);
        r.window = times[k];
        r.node = -1;
        r.first_row = r.row;
        r.reason = LEGAL;
        r.position = 0;
        r.open = 0;
        int legal = payload(&r, out, times[k], items, unit) == 0;
        if (!legal) {
            r.row = r.first_row;
            r.byte = first_byte;
        }
        found[k].rows = r.row - r.first_row;
        found[k].reason = r.reason;
        found[k].position = r.position;
        found[k].code = r.code;
        found[k].last_window = r.window;
        found[k].last_node = r.node;
        found[k].first_node = r.row > r.first_row ? out->node[r.first_row] : 0;
        begin = ends[k];
    }
    return r.row;
}

/* Payload k is data[ends[k - 1] .. ends[k]), of a block of time times[k]. There must be room for a row a group,
   and in `bytes` for as many bytes as all payloads have. `unit`: groups of a write. Gives the number of rows. */
int64_t hypermon_compact_2(const uint8_t *data, const int64_t *ends, const int64_t *times, int64_t count,
                           int32_t nodes, int32_t items, int32_t unit, const struct rows *out, struct found *found) {
    if (unit == 1)
        return items ? all(data, ends, times, count, nodes, out, found, 1, 1)
                     : all(data, ends, times, count, nodes, out, found, 0, 1);
    return items ? all(data, ends, times, count, nodes, out, found, 1, 2)
                 : all(data, ends, times, count, nodes, out, found, 0, 2);
}
