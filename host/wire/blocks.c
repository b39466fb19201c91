/* Blocks that follow one another, proven and joined into one payload, for host/wire/blocks_joined.py.

   The same checks as of scan() in host/wire/blocks.py, which takes everything else; tests hold the two together. No byte
   outside the data is read. */

#include <stdint.h>
#include <string.h>

/* Where the fields of docs/frame-format.md are. */
enum {
    SEQUENCE = 8, LENGTH = 12, TIME_HIGH = 20, HEADER = 32, TRAILER = 16, BEAT = 16, CRC_BYTES = 4
};
enum { CUT = 1 }; /* flag of a trailer */

static uint32_t table[8][256];

/* Of zlib's polynomial; eight tables, so that eight bytes are taken at once. */
static void make_table(void) {
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        table[0][byte] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int byte = 0; byte < 256; byte++)
            table[k][byte] = table[k - 1][byte] >> 8 ^ table[0][table[k - 1][byte] & 255];
}

static inline uint32_t word32(const uint8_t *data) {
    return data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 | (uint32_t)data[3] << 24;
}

/* Of a multiple of four bytes. */
static uint32_t crc32(const uint8_t *data, int64_t size) {
    uint32_t crc = 0xffffffffu;
    for (; size >= 8; size -= 8, data += 8) {
        uint32_t low = word32(data) ^ crc, high = word32(data + 4);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; size; size--, data++)
        crc = crc >> 8 ^ table[0][(crc ^ *data) & 255];
    return ~crc;
}

/* Joins the payloads of whole blocks at the beginning of the data that differ from the first in sequence number, by
   one each, length, a multiple of `unit` up to `longest`, and the lower half of the time; none of them cut. Stops
   before any other, and when `room` in `payload` is used up. Gives their number; their bytes, and those of the
   payload, in `sizes`. */
int64_t hypermon_blocks_1(const uint8_t *data, int64_t end, int64_t unit, int64_t longest, uint8_t *payload,
                          int64_t room, int64_t sizes[2]) {
    if (!table[0][1])
        make_table();
    int64_t count = 0, at = 0, used = 0;
    while (end - at >= HEADER + TRAILER) {
        const uint8_t *block = data + at;
        if (memcmp(block, data, SEQUENCE) || memcmp(block + TIME_HIGH, data + TIME_HIGH, HEADER - TIME_HIGH) ||
            word32(block + SEQUENCE) != (uint32_t)(word32(data + SEQUENCE) + (uint64_t)count))
            break;
        int64_t length = word32(block + LENGTH);
        int64_t size = HEADER + (length + BEAT - 1) / BEAT * BEAT + TRAILER;
        if (length % unit || length > longest || length > room - used || size > end - at || block[size - TRAILER] & CUT ||
            crc32(block, size - CRC_BYTES) != word32(block + size - CRC_BYTES))
            break;
        memcpy(payload + used, block + HEADER, (size_t)length);
        used += length;
        at += size;
        count++;
    }
    sizes[0] = at;
    sizes[1] = used;
    return count;
}
