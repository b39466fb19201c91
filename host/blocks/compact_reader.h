/* What the readers of COMPACT payloads share: compact.c, which says what they do, and compact_fast.h. */

#ifndef HYPERMON_COMPACT_READER_H
#define HYPERMON_COMPACT_READER_H

#include <stdint.h>
#include <string.h>

/* Indices of REASONS in host/blocks/compact_c.py. */
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
    uint32_t length;   /* groups after its first write */
    int64_t further;   /* where they begin */
    int64_t first_byte;
    uint8_t mode[32];
    int32_t all; /* the mode of all nodes; NIBBLE if they differ */
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

static inline void put64(uint8_t *data, uint64_t word) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(data, &word, 8);
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

#endif
