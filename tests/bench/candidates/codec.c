/* Three ways to write single nibbles as a compact stream, for bench_candidates.py: writers and readers.

   A writer returns the bytes written. A reader returns the rows read, -1 if the bytes are not legal. `owner` is
   the node and, in the upper half, its nibble. */

#include <stdint.h>

static int pieces(uint32_t number, int bits) {
    int count = 1;
    while (number >>= bits)
        count++;
    return count;
}

static inline void put(uint8_t *out, int64_t at, unsigned group) {
    if (at & 1)
        out[at >> 1] |= (uint8_t)(group << 4);
    else
        out[at >> 1] = (uint8_t)group;
}

int64_t write_groups(const uint32_t *gap, const uint8_t *owner, int64_t rows, uint8_t *out) {
    int64_t at = 0;
    for (int64_t row = 0; row < rows; row++) {
        uint32_t number = gap[row];
        for (int left = pieces(number, 3); left; left--, number >>= 3)
            put(out, at++, (number & 7) | (left > 1 ? 8 : 0));
        put(out, at++, owner[row] & 15);
        put(out, at++, owner[row] >> 4);
    }
    return (at + 1) / 2;
}

int64_t write_bytes(const uint32_t *gap, const uint8_t *owner, int64_t rows, uint8_t *out) {
    uint8_t *begin = out;
    for (int64_t row = 0; row < rows; row++) {
        uint32_t number = gap[row];
        *out++ = owner[row];
        for (int left = pieces(number, 7); left; left--, number >>= 7)
            *out++ = (uint8_t)((number & 127) | (left > 1 ? 128 : 0));
    }
    return out - begin;
}

int64_t write_halfwords(const uint32_t *gap, const uint8_t *owner, int64_t rows, uint8_t *out) {
    uint8_t *begin = out;
    for (int64_t row = 0; row < rows; row++) {
        uint32_t number = gap[row];
        *out++ = number < 255 ? (uint8_t)number : 255;
        *out++ = owner[row];
        if (number < 255)
            continue;
        for (int left = pieces(number, 15); left; left--, number >>= 15) {
            *out++ = (uint8_t)number;
            *out++ = (uint8_t)((number >> 8 & 127) | (left > 1 ? 128 : 0));
        }
    }
    return out - begin;
}

static inline unsigned group(const uint8_t *data, int64_t at) {
    return data[at >> 1] >> (at & 1 ? 4 : 0) & 15;
}

int64_t read_groups(const uint8_t *data, int64_t bytes, int64_t *time, uint8_t *node, uint8_t *nibble) {
    int64_t at = 0, end = 2 * bytes, row = 0, now = 0;
    while (end - at >= 3) {
        uint32_t number = 0;
        unsigned next;
        int bit = 0;
        do {
            if (at == end || bit > 18)
                return -1;
            next = group(data, at++);
            number |= (next & 7) << bit;
            bit += 3;
        } while (next & 8);
        if (end - at < 2)
            return -1;
        time[row] = now += number;
        node[row] = (uint8_t)group(data, at);
        nibble[row++] = (uint8_t)group(data, at + 1);
        at += 2;
    }
    return end - at > 1 || (end > at && group(data, at)) ? -1 : row;
}

int64_t read_bytes(const uint8_t *data, int64_t bytes, int64_t *time, uint8_t *node, uint8_t *nibble) {
    int64_t at = 0, row = 0, now = 0;
    while (at < bytes) {
        unsigned owner = data[at++], next;
        uint32_t number = 0;
        int bit = 0;
        do {
            if (at == bytes || bit > 14)
                return -1;
            next = data[at++];
            number |= (next & 127) << bit;
            bit += 7;
        } while (next & 128);
        time[row] = now += number;
        node[row] = owner & 15;
        nibble[row++] = (uint8_t)(owner >> 4);
    }
    return row;
}

int64_t read_halfwords(const uint8_t *data, int64_t bytes, int64_t *time, uint8_t *node, uint8_t *nibble) {
    int64_t at = 0, row = 0, now = 0;
    if (bytes & 1)
        return -1;
    while (at < bytes) {
        uint32_t number = data[at];
        unsigned owner = data[at + 1], next;
        at += 2;
        if (number == 255) {
            int bit = 0;
            number = 0;
            do {
                if (at == bytes || bit > 15)
                    return -1;
                next = data[at] | (unsigned)data[at + 1] << 8;
                at += 2;
                number |= (next & 0x7fff) << bit;
                bit += 15;
            } while (next & 0x8000);
        }
        time[row] = now += number;
        node[row] = owner & 15;
        nibble[row++] = (uint8_t)(owner >> 4);
    }
    return row;
}
