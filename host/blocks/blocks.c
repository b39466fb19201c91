/* Blocks that follow one another, proven and joined into one payload, for host/blocks/blocks_joined.py.

   The same checks as in BlockScanner of host/blocks/block_scanner.py, which takes everything else; tests hold the two
   together. No byte outside the data is read. */

#include <stdint.h>
#include <string.h>

/* Where the fields of docs/frame-format.md are. */
enum {
    SEQUENCE = 8, LENGTH = 12, TIME = 16, TIME_HIGH = 20, HEADER = 32, TRAILER = 16, BEAT = 16, CRC_BYTES = 4
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

static uint32_t crc_by_tables(uint32_t crc, const uint8_t *data, int64_t size) {
    if (!table[0][1])
        make_table();
    for (; size >= 8; size -= 8, data += 8) {
        uint32_t low = word32(data) ^ crc, high = word32(data + 4);
        crc = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^ table[4][low >> 24] ^
              table[3][high & 255] ^ table[2][high >> 8 & 255] ^ table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; size; size--, data++)
        crc = crc >> 8 ^ table[0][(crc ^ *data) & 255];
    return crc;
}

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

/* Multiples of 16 bytes, 64 at least, by multiplication without carry: V. Gopal et al., "Fast CRC Computation for
   Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009. The constants are powers of x, modulo the polynomial:
   for steps of 64 and of 16 bytes, and for the reduction to 64 and to 32 bits. */
__attribute__((target("pclmul,sse4.1"))) static uint32_t crc_by_folds(uint32_t crc, const uint8_t *data, int64_t size) {
    const __m128i by_64 = _mm_set_epi64x(0x1c6e41596, 0x154442bd4), by_16 = _mm_set_epi64x(0x0ccaa009e, 0x1751997d0);
    const __m128i to_64 = _mm_set_epi64x(0, 0x163cd6124), to_32 = _mm_set_epi64x(0x1f7011641, 0x1db710641);
    const __m128i low_32 = _mm_set_epi32(0, ~0, 0, ~0);
    __m128i sum[4];
    for (int k = 0; k < 4; k++)
        sum[k] = _mm_loadu_si128((const __m128i *)(data + 16 * k));
    sum[0] = _mm_xor_si128(sum[0], _mm_cvtsi32_si128((int)crc));
    for (data += 64, size -= 64; size >= 64; data += 64, size -= 64)
        for (int k = 0; k < 4; k++)
            sum[k] = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(sum[k], by_64, 0x00),
                                                 _mm_clmulepi64_si128(sum[k], by_64, 0x11)),
                                   _mm_loadu_si128((const __m128i *)(data + 16 * k)));
    __m128i x = sum[0];
    for (int k = 1; k < 4; k++)
        x = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by_16, 0x00), _mm_clmulepi64_si128(x, by_16, 0x11)),
                          sum[k]);
    for (; size >= 16; data += 16, size -= 16)
        x = _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, by_16, 0x00), _mm_clmulepi64_si128(x, by_16, 0x11)),
                          _mm_loadu_si128((const __m128i *)data));
    x = _mm_xor_si128(_mm_srli_si128(x, 8), _mm_clmulepi64_si128(x, by_16, 0x10));
    x = _mm_xor_si128(_mm_srli_si128(x, 4), _mm_clmulepi64_si128(_mm_and_si128(x, low_32), to_64, 0x00));
    __m128i y = _mm_clmulepi64_si128(_mm_and_si128(x, low_32), to_32, 0x10);
    y = _mm_clmulepi64_si128(_mm_and_si128(y, low_32), to_32, 0x00);
    return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, y), 1);
}

static uint32_t crc_of(uint32_t crc, const uint8_t *data, int64_t size) {
    int64_t folded = size >= 64 && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1") ? size & ~15 : 0;
    if (folded)
        crc = crc_by_folds(crc, data, folded);
    return crc_by_tables(crc, data + folded, size - folded);
}
#else
static uint32_t crc_of(uint32_t crc, const uint8_t *data, int64_t size) {
    return crc_by_tables(crc, data, size);
}
#endif

static uint32_t crc32(const uint8_t *data, int64_t size) {
    return ~crc_of(0xffffffffu, data, size);
}

/* zlib's CRC-32 of data, after that of the data before. */
int64_t hypermon_crc_1(const uint8_t *data, int64_t size, int64_t before) {
    return ~crc_of(~(uint32_t)before, data, size);
}

static inline int64_t word64(const uint8_t *data) {
    return (int64_t)(word32(data) | (uint64_t)word32(data + 4) << 32);
}

/* Joins the payloads of whole blocks at the beginning of the data that differ from the first in sequence number, by
   one each, length, a multiple of `unit` up to `longest`, and the lower half of the time; none of them cut. Stops
   before any other, when `room` in `payload` is used up, and after `most` blocks. Gives their number; their bytes, and
   those of the payload, in `sizes`; where the payload of each ends, and its time, in `ends` and `times`. */
int64_t hypermon_blocks_2(const uint8_t *data, int64_t end, int64_t unit, int64_t longest, uint8_t *payload,
                          int64_t room, int64_t most, int64_t *ends, int64_t *times, int64_t sizes[2]) {
    int64_t count = 0, at = 0, used = 0;
    while (count < most && end - at >= HEADER + TRAILER) {
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
        ends[count] = used;
        times[count] = word64(block + TIME);
        count++;
    }
    sizes[0] = at;
    sizes[1] = used;
    return count;
}
