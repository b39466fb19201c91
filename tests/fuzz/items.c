/* Harness of host/blocks/items.c for libFuzzer, and for main.c where there is none.

   An input is the number of rows, then 4 bytes a row: the step of its window, node, payload's length and first byte.
   What is merged must be what arrived, in order, each payload its own. SOURCE is the file under test. */

#include SOURCE
#include <stdlib.h>

enum { MOST = 200, LONGEST_PAYLOAD = 18 };

static void demand(int holds) {
    if (!holds)
        abort();
}

/* Of the very size, so that a byte too far is found. */
static struct items room(int64_t rows, int64_t bytes) {
    struct items made = {malloc((size_t)rows * 8), malloc((size_t)rows), malloc((size_t)rows * 4), malloc((size_t)rows),
                         malloc((size_t)rows * 4), malloc((size_t)bytes)};
    return made;
}

static void clear(struct items *items) {
    void *all[] = {items->window, items->node, items->value, items->state, items->ends, items->bytes};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
}

/* Appends a row of another table. */
static void append(struct items *to, int64_t row, const struct items *from, int64_t at) {
    int32_t begin = at ? from->ends[at - 1] : 0, place = row ? to->ends[row - 1] : 0;
    to->window[row] = from->window[at];
    to->node[row] = from->node[at];
    to->value[row] = from->value[at];
    to->state[row] = from->state[at];
    memcpy(to->bytes + place, from->bytes + begin, (size_t)(from->ends[at] - begin));
    to->ends[row] = place + from->ends[at] - begin;
}

static void number(const struct items *rows, int64_t count, int64_t bytes) {
    int32_t *offsets = calloc((size_t)count + 1, sizeof *offsets), *numbers = malloc((size_t)count * sizeof *numbers);
    uint8_t *data = malloc((size_t)bytes);
    memcpy(data, rows->bytes, (size_t)bytes);
    memcpy(offsets + 1, rows->ends, (size_t)count * sizeof *offsets);
    struct dictionary found = {calloc(64, 4), malloc(40 * KEY), malloc(40), 63, 40, 0};
    int status = (int)hypermon_dictionary_1(data, offsets, count, &found, numbers);
    demand(found.count <= found.most);
    for (int64_t k = 0; status == 0 && k < count; k++) {
        demand(numbers[k] >= 0 && numbers[k] < found.count && found.lengths[numbers[k]] == offsets[k + 1] - offsets[k]);
        demand(!memcmp(found.keys + KEY * numbers[k], data + offsets[k], found.lengths[numbers[k]]));
    }
    void *all[] = {offsets, numbers, data, found.slots, found.keys, found.lengths};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        free(all[k]);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size) {
    if (size < 5)
        return 0;
    int64_t count = (int64_t)(size - 1) / 4, window = 1000, bytes = 0;
    count = count < input[0] % MOST + 1 ? count : input[0] % MOST + 1;
    const uint8_t *at = input + 1;
    for (int64_t k = 0; k < count; k++)
        bytes += at[4 * k + 2] % LONGEST_PAYLOAD;
    struct items rows = room(count, bytes);
    int32_t end = 0;
    for (int64_t k = 0; k < count; k++, at += 4) {
        window += (int8_t)at[0] / 8;
        rows.window[k] = window;
        rows.node[k] = at[1] & 31;
        rows.value[k] = (uint32_t)k;
        rows.state[k] = at[1] >> 7;
        memset(rows.bytes + end, at[3], at[2] % LONGEST_PAYLOAD);
        rows.ends[k] = end += at[2] % LONGEST_PAYLOAD;
    }
    int64_t newest = -1, *which = malloc((size_t)count * sizeof *which);
    int64_t late = hypermon_behind_1(rows.window, rows.node, count, &newest, which), sizes[2] = {count, 0};
    demand(late >= 0 && late < count);
    /* Those that are late, in order: each is put behind all that are not after it. */
    struct items more = room(late, bytes), sorted = room(late, bytes), out = room(count, bytes);
    for (int64_t k = 0; k < late; k++)
        append(&more, sizes[1]++, &rows, which[k]);
    uint8_t *taken = calloc((size_t)late + 1, 1);
    for (int64_t k = 0; k < late; k++) {
        int64_t first = -1;
        for (int64_t j = 0; j < late; j++)
            if (!taken[j] && (first < 0 || key_of(more.window, more.node, j) < key_of(more.window, more.node, first)))
                first = j;
        taken[first] = 1;
        append(&sorted, k, &more, first);
    }
    demand(hypermon_merge_1(&rows, which, late, &sorted, sizes, &out) == bytes);
    int64_t begin = 0;
    for (int64_t k = 0; k < count; k++) {
        int64_t from = out.value[k], length = out.ends[k] - begin;
        demand(from < count && length == rows.ends[from] - (from ? rows.ends[from - 1] : 0));
        demand(out.window[k] == rows.window[from] && out.node[k] == rows.node[from] && out.state[k] == rows.state[from]);
        demand(!memcmp(out.bytes + begin, rows.bytes + rows.ends[from] - length, (size_t)length));
        if (k) {
            int64_t before = key_of(out.window, out.node, k - 1), key = key_of(out.window, out.node, k);
            demand(before < key || (before == key && out.value[k - 1] < out.value[k]));
        }
        begin = out.ends[k];
    }
    number(&rows, count, bytes);
    clear(&rows);
    clear(&more);
    clear(&sorted);
    clear(&out);
    free(which);
    free(taken);
    return 0;
}
