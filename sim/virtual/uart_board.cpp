// The board with its UART, pin by pin: the verilated gateware, its stimulus, and the far end of the line.
//
// sim/virtual/uart_board.py is the only caller of the functions at the end. Compiled with NODES and CLOCK_HZ of the
// gateware's geometry, LINK_HZ of its UART, and BAUD of the line; and with RUNNING_LATE, if the top shows `running` that
// many clocks late.

#include "Vboard.h"
#include "verilated.h"

#include "player.h"

#include <cstdint>
#include <deque>

#ifndef RUNNING_LATE
#define RUNNING_LATE 0
#endif

namespace {

struct Config {
  uint64_t seed;
  uint64_t aperture_ps;
  double baud;             // of the far end
};

// Ten bits a byte, by a clock of its own: `bit` is how many board clocks one lasts.
class FarEnd {
 public:
  explicit FarEnd(double bit) : bit_(bit) {}

  std::deque<uint8_t> to_send, received;

  // The level it drives at this clock.
  bool drive() {
    if (sending_ == 0) {
      if (to_send.empty()) return true;
      frame_ = 0x200u | static_cast<unsigned>(to_send.front()) << 1;
      to_send.pop_front();
      sending_ = 10;
      send_left_ += bit_;
    }
    const bool level = frame_ & 1;
    if ((send_left_ -= 1) <= 0) {
      frame_ >>= 1;
      if (--sending_) send_left_ += bit_;
      else if (to_send.empty()) send_left_ = 0;
    }
    return level;
  }

  // What it sees at this clock.
  void sample(bool level) {
    if (receiving_ == 0) {
      if (seen_ && !level) {
        receiving_ = 10;
        sample_left_ = bit_ / 2;
        bits_ = 0;
      }
    } else if ((sample_left_ -= 1) <= 0) {
      sample_left_ += bit_;
      bits_ |= static_cast<unsigned>(level) << (10 - receiving_);
      if (receiving_ == 10 && level) receiving_ = 1;    // no start bit
      if (--receiving_ == 0 && (bits_ & 0x201) == 0x200) received.push_back(static_cast<uint8_t>(bits_ >> 1));
    }
    seen_ = level;
  }

 private:
  const double bit_;
  unsigned frame_ = 0, bits_ = 0;
  int sending_ = 0, receiving_ = 0;
  double send_left_ = 0, sample_left_ = 0;
  bool seen_ = true;
};

class Board {
 public:
  Board(const Config& config, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
        const uint16_t* initial)
      : far_(CLOCK_HZ / config.baud),
        player_(top_, config.seed, config.aperture_ps, rows, time, node, port, initial) {
    top_.rst = 1;
    top_.rx = 1;
    for (int i = 0; i < 16; ++i) step();
    top_.rst = 0;
    for (int i = 0; i < 512; ++i) step();  // power-up clears memories
    far_.received.clear();
  }
  ~Board() { top_.final(); }

  uint64_t run(uint64_t clocks, const uint8_t* in, uint64_t count, uint8_t* out, uint64_t room) {
    far_.to_send.insert(far_.to_send.end(), in, in + count);
    while (clocks-- && far_.received.size() < room) step();
    const uint64_t n = far_.received.size() < room ? far_.received.size() : room;
    for (uint64_t i = 0; i < n; ++i) {
      out[i] = far_.received.front();
      far_.received.pop_front();
    }
    return n;
  }

  int64_t edge() const { return edge_; }

 private:
  void half(bool level) {
    top_.clk = level;
    link_ += LINK_HZ;
    do {
      if (link_ >= CLOCK_HZ) {
        link_ -= CLOCK_HZ;
        top_.link_clk = !top_.link_clk;
      }
      top_.eval();
    } while (link_ >= CLOCK_HZ);
  }

  void step() {
    const bool started = edge_ > 0 || top_.running;
    if (started && edge_ < RUNNING_LATE) edge_ = RUNNING_LATE;
    if (started && player_.due(edge_)) player_.play(edge_);
    top_.rx = far_.drive();
    half(true);
    half(false);
    far_.sample(top_.tx);
    edge_ += started;
  }

  VerilatedContext context_;
  Vboard top_{&context_};
  FarEnd far_;
  Player<Vboard> player_;
  uint64_t link_ = 0;
  int64_t edge_ = 0;    // the next clock edge since time 0
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
Board* board_new(const Config* config, uint64_t rows, const int64_t* time, const int16_t* node,
                 const uint16_t* port, const uint16_t* initial) {
  return new Board(*config, rows, time, node, port, initial);
}
void board_free(Board* b) { delete b; }
uint64_t board_run(Board* b, uint64_t clocks, const uint8_t* in, uint64_t count, uint8_t* out, uint64_t room) {
  return b->run(clocks, in, count, out, room);
}
int64_t board_edge(const Board* b) { return b->edge(); }
}
