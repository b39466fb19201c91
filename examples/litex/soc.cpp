// What a processor's program would do with soc.py's system: it sets up the DMA and the board, waits while the nodes of
// a stimulus write, and saves the contents of memory.
//
//     Vsoc STIMULUS.csv STREAM.bin        header time_ns,node,port; times are those since the board's time 0
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "Vsoc.h"
#include "verilated.h"

#include "csr.h"
#include "mem.h"

namespace {

constexpr uint32_t CONTROL = 0x00, RESET = 1, ENABLE = 2, CLOCK_WINDOW = 3 << 2, STREAM = 1 << 4;  // docs/registers.md
constexpr uint64_t CLOCK_NS = 10;
constexpr int FLUSH = 150000;   // what is in the board leaves after a millisecond, if nothing more comes

struct Write {
    uint64_t clock;
    unsigned node, port;
};

VerilatedContext context;
Vsoc soc{&context};

[[noreturn]] void fail(const std::string &reason)
{
    std::fprintf(stderr, "%s\n", reason.c_str());
    std::exit(1);
}

// The board's time: the number of its next clock edge.
uint64_t now = 0;

void clock()
{
    soc.clk = 0;
    soc.eval();
    now += soc.running;
    soc.clk = 1;
    soc.eval();
}

void clocks(uint64_t count)
{
    while (count--)
        clock();
}

uint32_t access(uint32_t address, bool write, uint32_t value = 0)
{
    soc.host_adr = address / 4, soc.host_dat_w = value, soc.host_sel = 15, soc.host_we = write;
    soc.host_cyc = soc.host_stb = 1;
    for (int patience = 100000; patience; --patience) {
        soc.clk = 0;
        soc.eval();
        const bool done = soc.host_ack;
        const uint32_t read = soc.host_dat_r;
        clock();
        if (done) {
            soc.host_cyc = soc.host_stb = 0;
            return read;
        }
    }
    fail("no answer at address " + std::to_string(address));
}

std::vector<Write> stimulus(const char *name)
{
    std::ifstream file(name);
    std::vector<Write> writes;
    std::string line;
    if (!std::getline(file, line) || line != "time_ns,node,port")
        fail(std::string(name) + ": the header is not time_ns,node,port");
    while (std::getline(file, line)) {
        double time;
        Write write;
        char comma;
        std::istringstream fields(line);
        if (!(fields >> time >> comma >> write.node >> comma >> write.port))
            fail(std::string(name) + ": not a write: " + line);
        write.clock = static_cast<uint64_t>(time) / CLOCK_NS;
        writes.push_back(write);
    }
    return writes;
}

void play(const std::vector<Write> &writes)
{
    if (!soc.running || (!writes.empty() && now > writes[0].clock))
        fail("the board's time does not run, or the stimulus begins before time " + std::to_string(now * CLOCK_NS));
    for (const Write &write : writes) {
        while (now < write.clock)
            clock();
        soc.data = (soc.data & ~(15 << 4 * write.node)) | (write.port & 15) << 4 * write.node;
        soc.strobe = (soc.strobe & ~(1 << write.node)) | (write.port >> 4) << write.node;
    }
}

}  // namespace

int main(int count, char **arguments)
{
    if (count != 3)
        fail("usage: Vsoc STIMULUS.csv STREAM.bin");
    const std::vector<Write> writes = stimulus(arguments[1]);
    soc.rst = 1;
    clocks(4);
    soc.rst = 0;
    access(CSR_DMA_BASE_ADDR, true, 0);              // the upper half of 64 bits comes first
    access(CSR_DMA_BASE_ADDR + 4, true, TRACE_BASE);
    access(CSR_DMA_LENGTH_ADDR, true, TRACE_SIZE);
    access(CSR_DMA_ENABLE_ADDR, true, 1);

    access(HYPERMON_BASE + CONTROL, true, RESET | CLOCK_WINDOW);
    access(HYPERMON_BASE + CONTROL, true, ENABLE | CLOCK_WINDOW | STREAM);
    play(writes);
    clocks(FLUSH);
    access(HYPERMON_BASE + CONTROL, true, CLOCK_WINDOW | STREAM);
    clocks(FLUSH);

    const uint32_t words = access(CSR_DMA_OFFSET_ADDR, false);
    if (access(CSR_DMA_DONE_ADDR, false))
        fail("the memory is full");
    std::FILE *file = std::fopen(arguments[2], "wb");
    for (uint32_t word = 0; file && word < words; ++word) {
        const uint32_t value = access(TRACE_BASE + 4 * word, false);
        const uint8_t bytes[4] = {uint8_t(value), uint8_t(value >> 8), uint8_t(value >> 16), uint8_t(value >> 24)};
        std::fwrite(bytes, 1, 4, file);
    }
    if (!file || std::fclose(file))
        fail(std::string(arguments[2]) + ": cannot be written");
    std::printf("%u bytes of the stream in %s\n", 4 * words, arguments[2]);
    return 0;
}
