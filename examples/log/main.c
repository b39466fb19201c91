/* A sensor that logs what it reads: on the virtual port, whose writes are saved for `hypermon sim`. */
#define _POSIX_C_SOURCE 200809L
#include "hypermon.h"
#include "hypermon/log.h"

int main(int argc, char **argv)
{
    static const char text[] = "a text that is longer than one event";
    hm_port port, *ports = &port;
    const uint64_t start = hm_virtual_now();
    FILE *out = argc == 2 ? fopen(argv[1], "w") : NULL;
    if (out == NULL || hm_virtual_open(&port, 10000) != 0)
        return 1;
    hm_text(&port, text, sizeof text - 1);
    for (unsigned number = 0; number < 5; number++) {
        const int millivolts = 120 - 70 * (int)number;
        HM_LOG(&port, "sensor %u: %d mV", number, millivolts);
    }
    return hm_virtual_save(out, &ports, 1, start) != 0 || fclose(out) != 0;
}
