/* Items that arrived late, found and merged with those that arrived in order, for host/blocks/item_merge.py, which does the
   same with NumPy; tests hold the two together. */

#include <stdint.h>
#include <string.h>

/* Columns of rows; `ends` is where in `bytes` a row's payload ends, and it begins where that of the row before ends. */
struct items {
    int64_t *window;
    uint8_t *node;
    uint32_t *value;
    uint8_t *state;
    int32_t *ends;
    uint8_t *bytes;
};

static inline int64_t key_of(const int64_t *window, const uint8_t *node, int64_t row) {
    return window[row] * 32 + node[row];
}

/* The rows before the newest one so far, `newest`, in `which`; gives their number, and the newest one now. */
int64_t hypermon_behind_1(const int64_t *window, const uint8_t *node, int64_t count, int64_t *newest, int64_t *which) {
    int64_t last = *newest, found = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t key = key_of(window, node, k);
        which[found] = k;
        found += key < last;
        last = key > last ? key : last;
    }
    *newest = last;
    return found;
}

struct place {
    int64_t row, byte;
};

/* Appends rows `low` to `high`. */
static void copy_rows(const struct items *from, int64_t low, int64_t high, const struct items *to, struct place *place) {
    int64_t count = high - low, row = place->row;
    if (count <= 0)
        return;
    int64_t begin = low ? from->ends[low - 1] : 0, size = from->ends[high - 1] - begin;
    memcpy(to->window + row, from->window + low, (size_t)count * sizeof *to->window);
    memcpy(to->node + row, from->node + low, (size_t)count);
    memcpy(to->value + row, from->value + low, (size_t)count * sizeof *to->value);
    memcpy(to->state + row, from->state + low, (size_t)count);
    if (size)
        memcpy(to->bytes + place->byte, from->bytes + begin, (size_t)size);
    int32_t by = (int32_t)(place->byte - begin);
    for (int64_t k = 0; k < count; k++)
        to->ends[row + k] = from->ends[low + k] + by;
    place->row += count;
    place->byte += size;
}

/* Merges rows in order, without those at `without`, with others in order; of equal ones the others come last. `sizes`:
   how many rows each has. Gives the bytes of the payloads. */
int64_t hypermon_merge_1(const struct items *rows, const int64_t *without, int64_t left_out, const struct items *more,
                         const int64_t sizes[2], const struct items *out) {
    struct place place = {0, 0};
    int64_t other = 0, at = 0;
    for (int64_t k = 0; k <= left_out; k++) {
        int64_t end = k < left_out ? without[k] : sizes[0];
        while (other < sizes[1] && at < end) {
            int64_t key = key_of(more->window, more->node, other), to = at;
            while (to < end && key_of(rows->window, rows->node, to) <= key)
                to++;
            copy_rows(rows, at, to, out, &place);
            at = to;
            if (at == end)
                break;
            int64_t first = key_of(rows->window, rows->node, at), from = other;
            while (other < sizes[1] && key_of(more->window, more->node, other) < first)
                other++;
            copy_rows(more, from, other, out, &place);
        }
        copy_rows(rows, at, end, out, &place);
        at = end + 1;
    }
    copy_rows(more, other, sizes[1], out, &place);
    return place.byte;
}

/* Counts rows. `per_node`, `aborted`: whole and other items of each of 32 nodes, added to; `state` is 0 of a whole one, and may be missing. */
int64_t hypermon_per_node_1(const uint8_t *node, const uint8_t *state, int64_t count, int64_t *per_node,
                            int64_t *aborted) {
    /* Four, so that nodes that follow one another do not wait for each other's sums. */
    int64_t sums[4][32] = {{0}}, cut = 0;
    int64_t k = 0;
    for (; k + 4 <= count; k += 4)
        for (int j = 0; j < 4; j++)
            sums[j][node[k + j] & 31]++;
    for (; k < count; k++)
        sums[0][node[k] & 31]++;
    if (state)
        for (k = 0; k < count; k++)
            cut += state[k] != 0;
    for (int n = 0; n < 32; n++)
        per_node[n] += sums[0][n] + sums[1][n] + sums[2][n] + sums[3][n];
    if (cut)
        for (k = 0; k < count; k++) {
            aborted[node[k] & 31] += state[k] != 0;
            per_node[node[k] & 31] -= state[k] != 0;
        }
    return cut;
}

/* State of a count of windows: the last one, whether it has one item so far and that is whole, windows, and whole items
   that share theirs. */
struct run {
    int64_t window, alone, windows, shared;
};

/* Counts the windows of rows that rise. */
int64_t hypermon_windows_1(const int64_t *window, const uint8_t *state, int64_t count, struct run *run) {
    int64_t last = run->window, alone = run->alone, windows = 0, shared = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t whole = state ? state[k] == 0 : 1, same = window[k] == last;
        windows += 1 - same;
        shared += (same & whole) + (same & alone);
        alone = (1 - same) & whole;
        last = window[k];
    }
    run->window = last;
    run->alone = alone;
    run->windows += windows;
    run->shared += shared;
    return 0;
}

enum { KEY = 16 };

/* Different payloads: their bytes, followed by zeros, and their lengths. `slots`, `mask` + 1 of them, a power of two and
   more than `most`: 1 + the number of the payload, found by its hash; 0 is free. */
struct dictionary {
    uint32_t *slots;
    uint8_t *keys;
    uint8_t *lengths;
    int64_t mask, most, count;
};

static inline uint64_t word64(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* So many bytes, 8 at most, of ones. */
static inline uint64_t ones(int64_t bytes) {
    return bytes >= 8 ? ~(uint64_t)0 : ((uint64_t)1 << 8 * bytes) - 1;
}

/* Numbers payloads in the order in which they first occur; gives 0, or -1 if there are more than `most` different ones,
   or one longer than a key. Payload k is data[offsets[k] .. offsets[k + 1]). */
int64_t hypermon_dictionary_1(const uint8_t *data, const int32_t *offsets, int64_t count, struct dictionary *found,
                              int32_t *numbers) {
    uint64_t masks[KEY + 1][2];
    for (int k = 0; k <= KEY; k++) {
        masks[k][0] = ones(k);
        masks[k][1] = ones(k > 8 ? k - 8 : 0);
    }
    const int64_t ample = offsets[count] - KEY;
    for (int64_t k = 0; k < count; k++) {
        int64_t begin = offsets[k], length = offsets[k + 1] - begin;
        uint8_t rest[KEY] = {0};
        const uint8_t *bytes = data + begin;
        if (length > KEY)
            return -1;
        if (begin > ample) {
            if (length)
                memcpy(rest, bytes, (size_t)length);
            bytes = rest;
        }
        uint64_t low = word64(bytes) & masks[length][0], high = word64(bytes + 8) & masks[length][1];
        uint64_t hash = (low ^ (uint64_t)length << 59) * 0x9e3779b97f4a7c15u;
        hash = (hash ^ hash >> 29 ^ high) * 0xbf58476d1ce4e5b9u;
        int64_t slot = (int64_t)(hash >> 32) & found->mask;
        for (;; slot = (slot + 1) & found->mask) {
            int64_t number = (int64_t)found->slots[slot] - 1;
            if (number < 0) {
                if (found->count == found->most)
                    return -1;
                number = found->count++;
                found->slots[slot] = (uint32_t)found->count;
                memset(found->keys + KEY * number, 0, KEY);
                if (length)
                    memcpy(found->keys + KEY * number, bytes, (size_t)length);
                found->lengths[number] = (uint8_t)length;
            }
            const uint8_t *key = found->keys + KEY * number;
            if (!((word64(key) ^ low) | (word64(key + 8) ^ high) | (uint64_t)(found->lengths[number] ^ length))) {
                numbers[k] = (int32_t)number;
                break;
            }
        }
    }
    return 0;
}

#define DIGIT 11
#define VALUES (1 << DIGIT)

/* The order of times, equal ones in the order in which they are given: in `which`, with the times themselves in
   `sorted`. `room` has 2 * count places. A key is a time, from the least one on, and its index below it; its digits are
   sorted from the lowest on. Gives 0, or -1, and nothing, if the times are so far apart that a key has more than 64
   bits. */
int64_t hypermon_time_order_1(const int64_t *times, int64_t count, int64_t *sorted, int64_t *which, uint64_t *room) {
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (int64_t k = 0; k < count; k++) {
        least = times[k] < least ? times[k] : least;
        most = times[k] > most ? times[k] : most;
    }
    if (count == 0)
        return 0;
    int index_bits = 0, bits = 0;
    uint64_t apart = (uint64_t)most - (uint64_t)least;
    while (index_bits < 63 && ((uint64_t)count - 1) >> index_bits)
        index_bits++;
    while (bits < 64 && apart >> bits)
        bits++;
    if (index_bits + bits > 64)
        return -1;
    uint64_t *from = room, *to = room + count;
    for (int64_t k = 0; k < count; k++)
        from[k] = ((uint64_t)times[k] - (uint64_t)least) << index_bits | (uint64_t)k;
    for (int at = index_bits; at < index_bits + bits; at += DIGIT) {
        int64_t place[VALUES] = {0}, before = 0;
        for (int64_t k = 0; k < count; k++)
            place[from[k] >> at & (VALUES - 1)]++;
        for (int value = 0; value < VALUES; value++) {
            int64_t here = place[value];
            place[value] = before;
            before += here;
        }
        for (int64_t k = 0; k < count; k++)
            to[place[from[k] >> at & (VALUES - 1)]++] = from[k];
        uint64_t *other = from;
        from = to;
        to = other;
    }
    uint64_t mask = ((uint64_t)1 << index_bits) - 1;
    for (int64_t k = 0; k < count; k++) {
        which[k] = (int64_t)(from[k] & mask);
        sorted[k] = (int64_t)((index_bits < 64 ? from[k] >> index_bits : 0) + (uint64_t)least);
    }
    return 0;
}
