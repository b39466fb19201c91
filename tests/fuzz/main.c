/* Feeds mutated inputs to a harness, where there is no libFuzzer: COUNT SEED FILE..., the inputs to begin with. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { MOST = 4096, FILES = 256 };

static uint64_t state;

/* xorshift64* */
static uint32_t draw(uint32_t below) {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * 0x2545f4914f6cdd1dull >> 32) * below >> 32);
}

/* Gives the size, which is MOST at most. */
static size_t mutate(uint8_t *data, size_t size) {
    static const uint8_t telling[] = {0x00, 0x08, 0x80, 0x18, 0x09, 0x90, 0x0a, 0xa0, 0x88, 0xff, 0x7f};
    for (uint32_t left = 1u << draw(4); left; left--) {
        size_t at = size ? draw((uint32_t)size) : 0, from = size ? draw((uint32_t)size) : 0;
        size_t some = 1 + draw(40), fits = MOST - size < some ? MOST - size : some;
        switch (size ? draw(8) : 7) {
        case 0:
            data[at] ^= (uint8_t)(1 << draw(8));
            break;
        case 1:
            data[at] = (uint8_t)draw(256);
            break;
        case 2:
            data[at] = telling[draw(sizeof telling)];
            break;
        case 3: /* cut out */
            some = some < size - at ? some : size - at;
            memmove(data + at, data + at + some, size - at - some);
            size -= some;
            break;
        case 4: /* repeat */
            fits = fits < size - from ? fits : size - from;
            memmove(data + at + fits, data + at, size - at);
            memmove(data + at, data + (from < at ? from : from + fits < size ? from + fits : from), fits);
            size += fits;
            break;
        case 5: /* copy over */
            some = some < size - at ? some : size - at;
            some = some < size - from ? some : size - from;
            memmove(data + at, data + from, some);
            break;
        case 6: /* cut short */
            if (!draw(8))
                size = at;
            break;
        default: /* put in */
            memmove(data + at + fits, data + at, size - at);
            for (size_t k = 0; k < fits; k++)
                data[at + k] = (uint8_t)draw(256);
            size += fits;
        }
    }
    return size;
}

int main(int argc, char **argv) {
    static uint8_t files[FILES][MOST], data[2 * MOST];
    static size_t sizes[FILES];
    int count = argc - 3 < FILES ? argc - 3 : FILES;
    if (count < 1) {
        fprintf(stderr, "usage: %s COUNT SEED FILE...\n", argv[0]);
        return 2;
    }
    for (int k = 0; k < count; k++) {
        FILE *file = fopen(argv[3 + k], "rb");
        if (!file) {
            perror(argv[3 + k]);
            return 2;
        }
        sizes[k] = fread(files[k], 1, MOST, file);
        fclose(file);
    }
    state = strtoull(argv[2], NULL, 10) * 2 + 1;
    long long runs = strtoll(argv[1], NULL, 10);
    for (long long run = 0; run < runs; run++) {
        uint32_t which = draw((uint32_t)count);
        memcpy(data, files[which], sizes[which]);
        size_t size = mutate(data, sizes[which]);
        LLVMFuzzerTestOneInput(data, size);
        if (!draw(4)) { /* goes on from there */
            memcpy(files[which], data, size);
            sizes[which] = size;
        }
    }
    printf("Done %lld runs\n", runs);
    return 0;
}
