/* Plain items of COMPACT payloads, many at a time, for compact.c.

   Every loop stops before what it does not know, and at every fault; what begins there is for next() in compact.c. The
   first item of a payload is none for these loops. */

#ifndef HYPERMON_COMPACT_FAST_H
#define HYPERMON_COMPACT_FAST_H

#include "compact_reader.h"

/* A plain item's number, node and first write; its groups are in `word`, from bit 0. */
struct front {
    uint32_t gap;
    unsigned bits; /* of the number */
    uint32_t tail; /* from the node on */
    unsigned node;
};

/* 0 if it is a code, has a fault, or is out of order. */
static inline int read_front(uint64_t word, unsigned node_mask, unsigned nodes, unsigned before, struct front *front) {
    /* Bits of the number: up to the first group without bit 3, which is one of seven. */
    uint32_t stop = ~(uint32_t)word & 0x8888888u;
    if (!stop)
        return 0;
    unsigned bits = (unsigned)__builtin_ctz(stop) + 1;
    uint32_t x = (uint32_t)word & ((1u << bits) - 1) & 0x7777777u;
    x = (x & 0x07070707u) | (x & 0x70707070u) >> 1;
    x = (x & 0x003f003fu) | (x & 0x3f003f00u) >> 2;
    front->gap = (x & 0xfffu) | (x >> 16) << 12;
    front->bits = bits;
    front->tail = (uint32_t)(word >> bits);
    front->node = front->tail & node_mask;
    /* Not `&&`: the length of a number cannot be foretold. */
    return !(((bits > 4) & !(word >> (bits - 4) & 7)) | (front->node >= nodes) |
             ((front->gap == 0) & (front->node <= before)));
}

/* Groups of the longest item, and of what its copy reads beyond. */
enum { ROOMY = 112 };

/* Events, where all nodes are in event mode and the longest item is there: every item has the same steps. */
static inline void hurry_events(struct reader *r, const struct rows *out, int unit) {
    const unsigned wide = 4 * (unsigned)r->wide, node_mask = (1u << wide) - 1, nodes = (unsigned)r->nodes;
    const uint8_t *data = r->data;
    int64_t *windows = out->window;
    uint8_t *node_of = out->node, *bytes = out->bytes;
    uint32_t *value = out->value;
    int32_t *ends = out->ends;
    int64_t at = r->at, window = r->window, row = r->row, byte = r->byte;
    const int64_t end = r->end - ROOMY, first = row;
    unsigned before = (unsigned)r->node, size = 0;
    struct front front;
    while (at <= end) {
        uint64_t word = word64(data + (at >> 1)) >> (at & 1) * 4;
        if (!read_front(word, node_mask, nodes, before, &front))
            break;
        if (!(front.tail >> wide & SIZE))
            break;
        size = front.tail >> wide & SIZE;
        at += (front.bits + wide) / 4 + (unsigned)unit;
        const uint8_t *from = data + (at >> 1);
        unsigned odd = (at & 1) * 4;
        uint64_t low = word64(from), high = word64(from + 8);
        low = low >> odd | high << 1 << (63 - odd);
        high = high >> odd | (uint64_t)from[16] << 1 << (63 - odd);
        window += front.gap;
        before = front.node;
        windows[row] = window;
        node_of[row] = (uint8_t)front.node;
        value[row] = (uint32_t)low & 255;
        put64(bytes + byte, low >> 8 | high << 56);
        put64(bytes + byte + 8, high >> 8);
        byte += size - 1;
        ends[row++] = (int32_t)byte;
        at += 2 * size;
    }
    if (row == first)
        return;
    memset(out->state + first, WHOLE, (size_t)(row - first));
    r->open = 1;
    r->length = 2 * size;
    r->further = at - 2 * size;
    r->first_byte = byte - (size - 1);
    r->at = at;
    r->window = window;
    r->row = row;
    r->byte = byte;
    r->node = (int32_t)before;
}

/* Words, where all nodes are in word mode. */
static inline void hurry_words(struct reader *r, const struct rows *out, int unit) {
    const unsigned wide = 4 * (unsigned)r->wide, node_mask = (1u << wide) - 1, nodes = (unsigned)r->nodes;
    const uint8_t *data = r->data;
    int64_t *windows = out->window;
    uint8_t *node_of = out->node;
    uint32_t *value = out->value;
    int64_t at = r->at, window = r->window, row = r->row;
    const int64_t end = r->end - ROOMY, first = row;
    unsigned before = (unsigned)r->node;
    struct front front;
    while (at <= end) {
        uint64_t word = word64(data + (at >> 1)) >> (at & 1) * 4;
        if (!read_front(word, node_mask, nodes, before, &front))
            break;
        at += (front.bits + wide) / 4;
        window += front.gap;
        before = front.node;
        windows[row] = window;
        node_of[row] = (uint8_t)front.node;
        value[row++] = (uint32_t)(word64(data + (at >> 1)) >> (at & 1) * 4);
        at += WORD_GROUPS;
    }
    if (row == first)
        return;
    memset(out->state + first, WHOLE, (size_t)(row - first));
    for (int64_t k = first; k < row; k++)
        out->ends[k] = (int32_t)r->byte;
    r->open = 1;
    r->length = (uint32_t)(WORD_GROUPS - unit);
    r->further = at - r->length;
    r->first_byte = r->byte;
    r->at = at;
    r->window = window;
    r->row = row;
    r->node = (int32_t)before;
}

/* Nibbles, where no payload has a head. */
static inline void hurry_nibbles(struct reader *r, const struct rows *out, int unit) {
    const unsigned wide = 4 * (unsigned)r->wide, node_mask = (1u << wide) - 1, nodes = (unsigned)r->nodes;
    const unsigned most = (1u << 4 * unit) - 1;
    const uint8_t *data = r->data;
    int64_t *windows = out->window;
    uint8_t *node_of = out->node, *nibble = out->nibble;
    int64_t at = r->at, window = r->window, row = r->row;
    const unsigned rest = wide + 4 * (unsigned)unit; /* bits after the number */
    const int64_t end = r->end - 17;
    unsigned before = (unsigned)r->node;
    struct front front;
    while (at <= end) {
        uint64_t word = word64(data + (at >> 1)) >> (at & 1) * 4;
        /* Two from one word of 60 bits, if they fit: what a step waits for is the word. */
        unsigned used = 0;
        for (int k = 0; k < 2; k++) {
            if (!read_front(word, node_mask, nodes, before, &front))
                goto done;
            if (k && used + front.bits + rest > 60)
                break;
            word >>= front.bits + rest;
            used += front.bits + rest;
            at += (front.bits + rest) / 4;
            window += front.gap;
            before = front.node;
            windows[row] = window;
            node_of[row] = (uint8_t)front.node;
            nibble[row++] = (uint8_t)(front.tail >> wide & most);
        }
    }
done:
    r->at = at;
    r->window = window;
    r->row = row;
    r->node = (int32_t)before;
}

/* Items of any mode, while sixteen groups and all they can say are there. */
static inline void hurry(struct reader *r, const struct rows *out, int unit) {
    const unsigned wide = 4 * (unsigned)r->wide, node_mask = (1u << wide) - 1, most = (1u << 4 * unit) - 1;
    const int64_t end = r->end - 17;
    struct front front;
    while (r->at <= end) {
        uint64_t word = word64(r->data + (r->at >> 1)) >> (r->at & 1) * 4;
        if (!read_front(word, node_mask, (unsigned)r->nodes, (unsigned)r->node, &front))
            return;
        unsigned nibble = front.tail >> wide & most;
        int mode = r->mode[front.node];
        int64_t at = r->at + (front.bits + wide) / 4 + (unsigned)unit;
        uint32_t further = mode == EVENT ? 2 * (nibble & SIZE) : mode == WORD ? (uint32_t)(WORD_GROUPS - unit) : 0;
        if ((mode == EVENT && !further) || at + further > r->end)
            return;
        r->at = at;
        r->window += front.gap;
        r->node = (int32_t)front.node;
        item_row(r, out, r->window, front.node, nibble, further, unit);
    }
}

#endif
