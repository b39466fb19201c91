// The test bench around module soc: a clock, a bus master that sets the board up, a node at the pins, and a host
// that takes the stream, not always at once, and writes it to the file that is named.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "Vsoc.h"
#include "verilated.h"

namespace {

constexpr uint32_t CONTROL = 0x00, RESET = 1, ENABLE = 2, CLOCK_WINDOW = 3 << 2, STREAM = 1 << 4;  // docs/registers.md

VerilatedContext context;
Vsoc soc{&context};
std::vector<uint8_t> taken;
uint32_t dice = 1;

void clock()
{
    dice = dice * 1664525 + 1013904223;
    soc.axis_tready = dice >> 31;
    soc.clk = 0;
    soc.eval();
    if (soc.axis_tvalid && soc.axis_tready)
        for (int byte = 0; byte < 4; ++byte)
            if (soc.axis_tkeep >> byte & 1)
                taken.push_back(soc.axis_tdata >> 8 * byte);
    soc.clk = 1;
    soc.eval();
}

void clocks(int count)
{
    while (count--)
        clock();
}

void write(uint32_t address, uint32_t value)
{
    soc.wb_adr = address / 4, soc.wb_dat_w = value, soc.wb_sel = 15;
    soc.wb_cyc = soc.wb_stb = soc.wb_we = 1;
    for (int patience = 1000; patience; --patience) {
        soc.clk = 0;
        soc.eval();
        const bool done = soc.wb_ack;
        clock();
        if (done) {
            soc.wb_cyc = soc.wb_stb = 0;
            return;
        }
    }
    std::fprintf(stderr, "no answer at register %#x\n", address);
    std::exit(1);
}

}  // namespace

int main(int count, char **arguments)
{
    // FuseSoC's own options come first.
    const char *name = count > 1 ? arguments[count - 1] : "stream.bin";
    soc.rst = 1;
    clocks(4);
    soc.rst = 0;
    write(CONTROL, RESET | CLOCK_WINDOW);
    write(CONTROL, ENABLE | CLOCK_WINDOW | STREAM);
    for (int nibble = 0; nibble < 16; ++nibble) {
        soc.pins = nibble;
        clocks(20);
        soc.pins = 16 | nibble;
        clocks(60);
    }
    write(CONTROL, CLOCK_WINDOW | STREAM);
    clocks(150000);   // what is there leaves after a millisecond, if nothing more comes (FLUSH)
    std::FILE *file = std::fopen(name, "wb");
    if (!file || std::fwrite(taken.data(), 1, taken.size(), file) != taken.size() || std::fclose(file)) {
        std::perror(name);
        return 1;
    }
    std::printf("%zu bytes of the stream in %s\n", taken.size(), name);
    return 0;
}
