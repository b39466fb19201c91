/* Harness of hypermon_blocks_2() (host/blocks/blocks.c) for libFuzzer, and for main.c where there is none.

   An input is 8 bytes that say how, then a stream. Random bytes have no right checksums, so most blocks get one, and
   often the head of the first block and a number that follows. SOURCE is the file under test. */

#include SOURCE
#include <stdlib.h>

enum { CONTROL = 8, LONGEST = 65536 - HEADER - TRAILER };
enum { ALIKE = 1, SMALL_ROOM = 2, FEW = 4 };

static void put32(uint8_t *data, uint32_t value) {
    for (int k = 0; k < 4; k++)
        data[k] = (uint8_t)(value >> 8 * k);
}

/* Makes a likely stream of the bytes. Bit k of `spoilt`: block k keeps what it has. */
static void repair(uint8_t *data, int64_t size, int64_t unit, int alike, uint32_t spoilt) {
    int64_t at = 0;
    for (int k = 0; size - at >= HEADER + TRAILER; k++) {
        uint8_t *block = data + at;
        int keep = spoilt >> k % 32 & 1;
        if (alike && !keep) {
            memcpy(block, data, SEQUENCE);
            put32(block + SEQUENCE, word32(data + SEQUENCE) + (uint32_t)k);
            memcpy(block + TIME_HIGH, data + TIME_HIGH, HEADER - TIME_HIGH);
            put32(block + LENGTH, word32(block + LENGTH) % 300 / (uint32_t)unit * (uint32_t)unit);
        }
        int64_t length = word32(block + LENGTH), whole = HEADER + (length + BEAT - 1) / BEAT * BEAT + TRAILER;
        if (whole > size - at)
            return;
        if (!keep) {
            block[whole - TRAILER] &= (uint8_t)~CUT;
            put32(block + whole - CRC_BYTES, crc32(block, whole - CRC_BYTES));
        }
        at += whole;
    }
}

static void demand(int holds) {
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_size) {
    static const int64_t units[] = {16, 24, 32, 1};
    if (input_size < CONTROL)
        return 0;
    int64_t size = (int64_t)input_size - CONTROL, unit = units[input[0] & 3], sizes[2] = {-1, -1};
    int64_t room = input[1] & SMALL_ROOM ? size * input[2] / 256 : size;
    /* Of the very size, so that a byte too far is found. */
    uint8_t *data = malloc((size_t)size), *payload = malloc((size_t)room);
    memcpy(data, input + CONTROL, (size_t)size);
    repair(data, size, unit, input[1] & ALIKE, word32(input + 4));
    int64_t most = input[1] & FEW ? input[3] % 4 : size / (HEADER + TRAILER);
    int64_t *ends = malloc((size_t)most * sizeof *ends), *times = malloc((size_t)most * sizeof *times);
    int64_t count = hypermon_blocks_2(data, size, unit, LONGEST, payload, room, most, ends, times, sizes);
    demand(count >= 0 && count <= most && sizes[0] >= 0 && sizes[0] <= size && sizes[1] >= 0 && sizes[1] <= room);
    /* What it says, once more and plainly. */
    int64_t at = 0, used = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t length = word32(data + at + LENGTH), whole = HEADER + (length + BEAT - 1) / BEAT * BEAT + TRAILER;
        demand(length % unit == 0 && length <= LONGEST && at + whole <= size);
        demand(word32(data + at + SEQUENCE) == (uint32_t)(word32(data + SEQUENCE) + (uint64_t)k));
        demand(!(data[at + whole - TRAILER] & CUT));
        demand(word32(data + at + whole - CRC_BYTES) == crc32(data + at, whole - CRC_BYTES));
        demand(!memcmp(payload + used, data + at + HEADER, (size_t)length));
        used += length;
        demand(ends[k] == used);
        for (int b = 0; b < 8; b++)
            demand((uint8_t)(times[k] >> 8 * b) == data[at + TIME + b]);
        at += whole;
    }
    /* Of any length, by the tables alone. */
    demand(~crc_by_tables(0xffffffffu, data, size) == (uint32_t)hypermon_crc_1(data, size, 0));
    demand(at == sizes[0] && used == sizes[1]);
    free(data);
    free(payload);
    free(ends);
    free(times);
    return 0;
}
