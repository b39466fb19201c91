/* Payloads of COMPACT blocks into columns (docs/frame-format.md, COMPACT), for host/wire/compact_c.py.

   The same as read() of host/wire/compact.py, which says what is legal; tests hold the two together. No byte
   outside a payload is read and no row written that its groups do not pay for, whatever the bytes are. */

#include <stdint.h>
#include <string.h>

/* Indices of REASONS in host/wire/compact_c.py. */
enum {
    LEGAL, CUT_SHORT, LONG_ZERO, TOO_LONG, UNKNOWN_CODE, EMPTY_VECTOR, NO_SUCH_STROBES, NO_SUCH_NODE, NOT_FIRST,
    NO_ORDER, BEHIND_LAST, NO_HEAD, BAD_HEAD, LONG_WINDOW, NO_BYTES, NO_ABORT, ABORT_LENGTH, ABORT_FILLER,
    LATE_FIRST, LATE_NIBBLE, BEFORE_TIME
};

enum { NIBBLE, WORD, EVENT };              /* modes of a node */
enum { WHOLE, ABORTED, ABORTED_NAMELESS }; /* states of an item; nameless: not even the event's id came */
enum { WINDOW, ABORT, LATE };              /* codes */

enum { MORE = 8, GAP_GROUPS = 7, HEAD_GROUPS = 32, WORD_GROUPS = 8, SIZE = 15 };

/* Where `unit` is an argument: groups of a write, 1 of a nibble, 2 of a byte, the low one first. */

/* Rows of all payloads; `value`, `state`, `ends` and `bytes` with item modes only, `nibble` without. */
struct rows {
    int64_t *window;
    uint8_t *node;
    uint8_t *nibble;
    uint32_t *value; /* nibble or byte, word or the event's id */
    uint8_t *state;
    int32_t *ends; /* where in `bytes` its payload ends; it begins where that of the row before it ends */
    uint8_t *bytes;
};

/* One of every payload. `rows`: how many of them; the window and the nodes are of the first and the last item
   that is not late. A payload that is not legal has `reason` and `position`, and no rows. */
struct found {
    int64_t rows;
    int64_t last_window;
    int64_t position;
    int32_t reason;
    int32_t first_node;
    int32_t last_node;
    int32_t code;
};

struct reader {
    const uint8_t *data;
    int64_t at, end; /* groups */
    int64_t window;
    int32_t nodes, wide, node;
    int32_t reason;
    int64_t position, begin;
    int32_t code;
    int64_t row, byte; /* of the rows of all payloads */
    int64_t first_row;
    /* Whether ABORTED may follow, and what the last item was. */
    int32_t open;
    uint32_t length;   /* groups behind its first write */
    int64_t further;   /* where they begin */
    int64_t first_byte;
    uint8_t mode[32];
};

static inline unsigned group(const uint8_t *data, int64_t at) {
    return data[at >> 1] >> (at & 1 ? 4 : 0) & 15;
}

static inline int fail(struct reader *r, int reason, int64_t position) {
    r->reason = reason;
    r->position = position;
    return -1;
}

static inline int take(struct reader *r) {
    if (r->at == r->end)
        return fail(r, CUT_SHORT, r->at);
    return (int)group(r->data, r->at++);
}

static int64_t number(struct reader *r) {
    int64_t value = 0;
    for (int k = 0; k < GAP_GROUPS; k++) {
        int next = take(r);
        if (next < 0)
            return -1;
        value |= (int64_t)(next & (MORE - 1)) << 3 * k;
        if (!(next & MORE))
            return k && !next ? fail(r, LONG_ZERO, r->at - 1) : value;
    }
    return fail(r, TOO_LONG, r->at - 1);
}

/* So many groups, low one first. */
static int64_t field(struct reader *r, int groups) {
    int64_t value = 0;
    for (int k = 0; k < groups; k++) {
        int next = take(r);
        if (next < 0)
            return -1;
        value |= (int64_t)next << 4 * k;
    }
    return value;
}

/* Bytes that begin at any group. */
static inline void copy_bytes(const uint8_t *data, int64_t at, uint8_t *to, int64_t count) {
    const uint8_t *from = data + (at >> 1);
    if (at & 1)
        for (int64_t k = 0; k < count; k++)
            to[k] = (uint8_t)(from[k] >> 4 | from[k + 1] << 4);
    else
        memcpy(to, from, (size_t)count);
}

static inline uint64_t word64(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Sixteen bytes that begin at any group, where there are AMPLE groups to read and as many bytes to write. */
enum { AMPLE = 40 };
static inline void copy_sixteen(const uint8_t *data, int64_t at, uint8_t *to) {
    const uint8_t *from = data + (at >> 1);
    uint64_t words[2];
    memcpy(words, from, 16);
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (at & 1) {
        uint64_t low = words[0], high = words[1];
        words[0] = low >> 4 | high << 60;
        words[1] = high >> 4 | (uint64_t)from[16] << 60;
    }
    memcpy(to, words, 16);
#else
    copy_bytes(data, at, to, 16);
#endif
}

/* The row of an item with node and first write, whose further groups are there, at r->at. */
static inline void item_row(struct reader *r, const struct rows *out, int64_t window, unsigned node, unsigned nibble,
                            uint32_t further, int unit) {
    int64_t row = r->row++;
    out->window[row] = window;
    out->node[row] = (uint8_t)node;
    out->state[row] = WHOLE;
    r->open = r->mode[node] != NIBBLE;
    r->further = r->at;
    r->length = further;
    r->first_byte = r->byte;
    if (r->mode[node] == EVENT) {
        out->value[row] = group(r->data, r->at) | group(r->data, r->at + 1) << 4;
        if (r->end - r->at >= AMPLE)
            copy_sixteen(r->data, r->at + 2, out->bytes + r->byte);
        else
            copy_bytes(r->data, r->at + 2, out->bytes + r->byte, further / 2 - 1);
        r->byte += further / 2 - 1;
    } else {
        uint32_t value = nibble;
        if (r->mode[node] == WORD && r->end - r->at >= AMPLE)
            value |= (uint32_t)(word64(r->data + (r->at >> 1)) >> (r->at & 1) * 4) << 4 * unit;
        else
            for (uint32_t k = 0; k < further; k++)
                value |= (uint32_t)group(r->data, r->at + k) << 4 * (k + (uint32_t)unit);
        out->value[row] = value;
    }
    out->ends[row] = (int32_t)r->byte;
    r->at += further;
}

/* How many groups follow the first write; -1 if the item is not legal or not all there. */
static inline int32_t further_groups(struct reader *r, int64_t node, unsigned nibble, int unit) {
    if (node >= r->nodes)
        return fail(r, NO_SUCH_NODE, r->begin);
    int32_t further = 0;
    if (r->mode[node] == EVENT) {
        if ((nibble & SIZE) == 0)
            return fail(r, NO_BYTES, r->begin);
        further = 2 * (int32_t)(nibble & SIZE);
    } else if (r->mode[node] == WORD) {
        further = WORD_GROUPS - unit;
    }
    if (r->end - r->at < further)
        return fail(r, CUT_SHORT, r->end);
    return further;
}

/* Whether an item may stand here. */
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

/* Plain items while sixteen groups and all they can say are there; stops before anything else, and at every
   fault. The first item of a payload is not for this one. */
static inline void hurry(struct reader *r, const struct rows *out, int items, int unit) {
    const unsigned wide = 4 * (unsigned)r->wide, node_mask = (1u << wide) - 1, most = (1u << 4 * unit) - 1;
    int64_t at = r->at, window = r->window, row = r->row;
    const int64_t end = r->end - 17;
    unsigned before = (unsigned)r->node;
    while (at <= end) {
        uint64_t word = word64(r->data + (at >> 1)) >> (at & 1) * 4;
        /* Bits of the number: up to the first group without bit 3, which is one of seven. */
        uint32_t stop = ~(uint32_t)word & 0x8888888u;
        if (!stop)
            break;
        unsigned bits = (unsigned)__builtin_ctz(stop) + 1;
        /* A code, or a fault. Not `&&`: the length of a number cannot be foretold. */
        if ((bits > 4) & !(word >> (bits - 4) & 7))
            break;
        uint32_t x = (uint32_t)word & ((1u << bits) - 1) & 0x7777777u;
        x = (x & 0x07070707u) | (x & 0x70707070u) >> 1;
        x = (x & 0x003f003fu) | (x & 0x3f003f00u) >> 2;
        uint32_t gap = (x & 0xfffu) | (x >> 16) << 12;
        uint32_t tail = (uint32_t)(word >> bits);
        unsigned node = tail & node_mask, nibble = tail >> wide & most;
        if ((node >= (unsigned)r->nodes) | ((gap == 0) & (node <= before)))
            break;
        if (items) {
            int64_t keep = at;
            at += (bits + wide) / 4 + (unsigned)unit;
            uint32_t further = r->mode[node] == EVENT  ? 2 * (nibble & SIZE)
                               : r->mode[node] == WORD ? (uint32_t)(WORD_GROUPS - unit)
                                                       : 0;
            if ((r->mode[node] == EVENT && !further) || at + further > r->end) {
                at = keep;
                break;
            }
            r->row = row;
            r->at = at;
            item_row(r, out, window + gap, node, nibble, further, unit);
            at = r->at;
            row = r->row;
        } else {
            out->window[row] = window + gap;
            out->node[row] = (uint8_t)node;
            out->nibble[row++] = (uint8_t)nibble;
            at += (bits + wide) / 4 + (unsigned)unit;
        }
        window += gap;
        before = node;
    }
    r->at = at;
    r->window = window;
    r->row = row;
    r->node = (int32_t)before;
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
    r->at = HEAD_GROUPS;
    return 0;
}

static inline int payload(struct reader *r, const struct rows *out, int64_t time, int items, int unit) {
    if (items && head(r) < 0)
        return -1;
    while (r->end - r->at > 1) {
        if (next(r, out, time, items, unit) < 0)
            return -1;
        if (r->row > r->first_row)
            hurry(r, out, items, unit);
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
