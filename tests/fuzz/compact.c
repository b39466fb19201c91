/* Harness of hypermon_compact_2() (host/blocks/compact.c) for libFuzzer, and for main.c where there is none.

   An input is nodes, flags, the number of payloads, a time of 8 bytes; two bytes for the length of every payload but the
   last; and the payloads. SOURCE is the file under test. */

#include SOURCE
#include <stdlib.h>

enum { CONTROL = 11, ITEMS = 1, BYTES = 2, EARLY = 4, PAYLOADS = 8 };

static void demand(int holds) {
    if (!holds)
        abort();
}

/* Of the very size, so that a byte too far is found. */
static void *room(int64_t entries, size_t size) {
    return malloc((size_t)entries * size);
}

static void judge(const struct rows *out, const struct found *found, int64_t rows, int count, int nodes, int items,
                  const int64_t *ends, const int64_t *times) {
    int64_t row = 0, size = ends[count - 1];
    for (int k = 0; k < count; k++) {
        int64_t groups = 2 * (ends[k] - (k ? ends[k - 1] : 0));
        demand(found[k].rows >= 0 && found[k].rows <= groups);
        demand(found[k].reason >= LEGAL && found[k].reason <= BEFORE_TIME);
        demand(found[k].position >= 0 && found[k].position <= groups);
        demand(found[k].reason == LEGAL || found[k].rows == 0);
        if (found[k].rows)
            demand(out->window[row] == times[k] && out->node[row] == found[k].first_node);
        for (int64_t end = row + found[k].rows; row < end; row++) {
            demand(out->node[row] < nodes && out->window[row] >= 0);
            if (items) {
                demand(out->state[row] <= ABORTED_NAMELESS);
                demand(out->ends[row] >= (row ? out->ends[row - 1] : 0) && out->ends[row] <= size);
            } else {
                demand(out->window[row] <= found[k].last_window);
            }
        }
    }
    demand(row == rows);
    volatile uint8_t sum = 0;
    for (int64_t k = 0; items && rows && k < out->ends[rows - 1]; k++)
        sum = (uint8_t)(sum + out->bytes[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t input_size) {
    if (input_size < CONTROL)
        return 0;
    int nodes = input[0] % 32 + 1, items = input[1] & ITEMS, unit = input[1] & BYTES ? 2 : 1;
    int count = input[2] % PAYLOADS + 1;
    uint64_t time = 0;
    for (int k = 0; k < 8; k++)
        time |= (uint64_t)input[3 + k] << 8 * k;
    time &= input[1] & EARLY ? 0xffff : ((uint64_t)1 << 62) - 1;
    int64_t size = (int64_t)input_size - CONTROL, ends[PAYLOADS], times[PAYLOADS], end = 0;
    if (size < 2 * (count - 1))
        count = 1;
    const uint8_t *lengths = input + CONTROL;
    size -= 2 * (count - 1);
    for (int k = 0; k < count; k++) {
        int64_t left = size - end;
        end += k < count - 1 ? (lengths[2 * k] | lengths[2 * k + 1] << 8) % (left + 1) : left;
        ends[k] = end;
        times[k] = (int64_t)time + k;
    }
    uint8_t *data = room(size, 1);
    memcpy(data, lengths + 2 * (count - 1), (size_t)size);
    int64_t most = 2 * size, longer = items ? most : 0;
    struct rows out = {room(most, sizeof *out.window), room(most, 1), room(most - longer, 1),
                       room(longer, sizeof *out.value), room(longer, 1), room(longer, sizeof *out.ends),
                       room(items ? size : 0, 1)};
    struct found *found = room(count, sizeof *found);
    int64_t rows = hypermon_compact_2(data, ends, times, count, nodes, items, unit, &out, found);
    demand(rows >= 0 && rows <= most);
    judge(&out, found, rows, count, nodes, items, ends, times);
    void *all[] = {data, out.window, out.node, out.nibble, out.value, out.state, out.ends, out.bytes, found};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
    return 0;
}
