// The verilated board with a PCIe link, its stimulus, the PCIe block of the FPGA, and a server that gives the whole
// function to a virtual machine.
//
// sim/virtual/pcie/pcie_board.py is the only caller of the C functions at the end, and says what each means. Compiled
// with what player.h names, with LINK_HZ of the block's clock, and with PCIE_VENDOR and PCIE_DEVICE.

#include "Vboard.h"
#include "verilated.h"
#ifdef CLOCK_SEEN
#include "Vboard___024root.h"
#endif

#include "player.h"
#include "us_block.h"
#include "vfio_user.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>

#ifndef RUNNING_LATE
#define RUNNING_LATE 0
#endif

namespace {

constexpr int POWER_UP = 512;              // memories are cleared
constexpr int COMPLETION_CLOCKS = 3000;    // the block's completion time-out
constexpr int RESET_CLOCKS = 64, FLR_CLOCKS = 4096;
constexpr int SLICE = 2000;                // clocks between two looks at the socket

class Board {
 public:
  Board(uint64_t seed, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
        const uint16_t* initial)
      : plays_([=, this] { player_.emplace(top_, seed, 0, rows, time, node, port, initial); }),
        block_(top_, *this, seed), behind_(seed % LINK_HZ) {
    plays_();
    top_.rst = 1;
    run(8);
    top_.rst = 0;
    run(POWER_UP);
    block_.reset = false;
    run(RESET_CLOCKS);
  }
  ~Board() {
    server_.leave();
    top_.final();
  }

  // Serves a client for about so long.
  void serve(int milliseconds) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
    do {
      server_.serve(started_ && server_.connected() ? 0 : 1);
      if (server_.connected() && !removed_) run(started_ ? SLICE : SLICE / 10);
    } while (Clock::now() < end);
  }

  int listen(const char* path) { return server_.listen(path); }
  void disconnect() { server_.leave(); }
  int64_t edge() const { return started_ ? edge_ : 0; }
  bool played() const { return player_->next() == NEVER && !player_->owes(); }
  const PcieCounts& counts() const { return block_.counts; }

  // The board is pulled out of its slot: everything reads as ones.
  void remove() { removed_ = true; }

  // For the server.
  void access(bool write, bool config, uint64_t offset, uint32_t count, uint8_t* data) {
    if (removed_) {
      if (!write) std::fill_n(data, count, 0xff);
      return;
    }
    if (config) {
      if (!write) {
        for (uint32_t i = 0; i < count; ++i) data[i] = block_.config.at(static_cast<uint32_t>(offset) + i);
      } else if (block_.config.write(static_cast<uint32_t>(offset), data, count)) {
        function_reset();
      }
      run(4);
      return;
    }
    // Requests of at most a dword pair, as a processor makes them.
    while (count) {
      const auto at = static_cast<uint32_t>(offset);
      const uint32_t part = std::min(count, 8 - at % 4);
      if (write) store(at, part, data);
      else fetch(at, part, data);
      offset += part;
      data += part;
      count -= part;
    }
  }
  // A reset of the link.
  void reset() {
    ++block_.counts.resets;
    block_.config.reset();
    block_.reset = true;
    run(RESET_CLOCKS);
    block_.reset = false;
    run(RESET_CLOCKS);
  }

  // For the block.
  bool write(uint64_t address, const uint8_t* data, uint32_t size) { return server_.memory.write(address, data, size); }
  bool listens() const { return server_.listens(); }
  bool interrupt() { return server_.interrupt(); }

 private:
  // A read that is not answered with data reads as ones.
  void fetch(uint32_t offset, uint32_t count, uint8_t* data) {
    std::fill_n(data, count, 0xff);
    if (!block_.config.memory()) return;
    ++block_.counts.reads;
    block_.request(false, offset, count, nullptr);
    for (int i = 0; i < COMPLETION_CLOCKS && !block_.completed; ++i) run(1);
    if (!block_.completed) {
      ++block_.counts.timeouts;
    } else if (block_.status) {
      ++block_.counts.unsupported;
    } else {
      for (uint32_t i = 0; i < count; ++i) data[i] = static_cast<uint8_t>(block_.data >> 8 * (offset % 4 + i));
    }
  }

  void store(uint32_t offset, uint32_t count, const uint8_t* data) {
    if (!block_.config.memory()) return;
    ++block_.counts.writes;
    block_.request(true, offset, count, data);
    for (int i = 0; i < COMPLETION_CLOCKS && !block_.idle(); ++i) run(1);
  }

  void function_reset() {
    ++block_.counts.flrs;
    block_.flr_done = false;
    block_.flr = true;
    for (int i = 0; i < FLR_CLOCKS && !block_.flr_done; ++i) run(1);
    if (!block_.flr_done) ++block_.counts.timeouts;
    block_.flr = false;
    block_.config.reset();
    run(RESET_CLOCKS);
  }

  // Clocks of the link, each after those of the board that are due.
  void run(int clocks) {
    while (clocks--) {
      for (behind_ += CLOCK; behind_ >= LINK_HZ; behind_ -= LINK_HZ) capture();
      block_.drive();
      top_.user_clk = 0;
      top_.eval();
      block_.sample();
      top_.user_clk = 1;
      top_.eval();
    }
  }

  void capture() {
    // Every start of the board plays the stimulus from its beginning.
    if (top_.running && !running_) {
      if (started_) plays_();
      started_ = true;
      edge_ = RUNNING_LATE;
    }
    running_ = top_.running;
    if (started_ && player_->due(edge_)) player_->play(edge_);
#ifdef CLOCK_SEEN
    // One rising edge; see board.cpp.
    if (risen_) {
      top_.rootp->CLOCK_SEEN = 0;
      Vboard___024root___eval(top_.rootp);
      edge_ += started_;
      return;
    }
    risen_ = true;
#endif
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
    edge_ += started_;
  }

  VerilatedContext context_;
  Vboard top_{&context_};
  std::function<void()> plays_;
  std::optional<Player<Vboard>> player_;
  UsBlock<Vboard, Board> block_;
  VfioUser<Board> server_{*this};
  uint64_t behind_;
  // Another thread sets it.
  std::atomic<bool> removed_ = false;
  bool started_ = false, running_ = false, risen_ = false;
  int64_t edge_ = 0;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
Board* pcie_new(uint64_t seed, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
                const uint16_t* initial) {
  return new Board(seed, rows, time, node, port, initial);
}
void pcie_free(Board* b) { delete b; }
int pcie_listen(Board* b, const char* path) { return b->listen(path); }
void pcie_serve(Board* b, int milliseconds) { b->serve(milliseconds); }
void pcie_disconnect(Board* b) { b->disconnect(); }
void pcie_remove(Board* b) { b->remove(); }
void pcie_counts(const Board* b, PcieCounts* counts) { *counts = b->counts(); }
int64_t pcie_edge(const Board* b) { return b->edge(); }
int pcie_played(const Board* b) { return b->played(); }
}
