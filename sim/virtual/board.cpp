// The virtual board: the verilated gateware, its stimulus, its bus master and its stream's sink.
//
// One Board is driven in batches through the C functions at the end; sim/virtual/link.py is their only
// caller, and says what each means. Compiled with NODES, CLOCK_HZ and PORT_BITS of the gateware's
// geometry, HALF_CLOCK if its strobes are sampled twice a clock, SDRAM_PART and SDRAM_DELAYS if it has
// an SDRAM at its pins (sdram_chip.h).
//
// Time is counted in clock edges: edge 0 is the first rising edge that sees `running` high, and is
// time 0.

#include "Vboard.h"
#include "verilated.h"
#ifdef CLOCK_SEEN
#include "Vboard___024root.h"
#endif

#include "player.h"
#if defined SDRAM_PART
#include "memory/sdram_chip.h"
#elif defined EXTERNAL_BURST
#include "memory/sdram.h"
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace {

constexpr int64_t BEAT = 16;
constexpr int64_t ADVANCE_MAX = INT32_MAX;
// For a skip, see hdl/capture.py: clocks since a port, the bus or the host has moved something, or since
// the last skip; clocks until a port changes; clocks that are skipped at least.
constexpr int64_t CALM = 12, LEAD = 6, LEAST = 32;
// Clocks by which `horizon` may lag behind the end of a window, and what follows from it.
constexpr int64_t LAG = 10;
// Clocks from which on a window may be skipped in part.
constexpr int64_t LONG = 32;
// Clocks in which a bus access must end; the longest, a reset, takes a few hundred.
constexpr int ACCESS_MAX = 100'000;

struct Config {
  uint64_t seed;
  uint64_t aperture_ps;    // 0: no random delay in the synchronizers
  uint64_t rate;           // bytes a second the host takes; 0: as they come
  int64_t settle;          // clocks from the last change of the stimulus until it has ended
  int32_t bus_delay;       // the bus master waits up to so many clocks, at random, in each phase
  int32_t skip;
};

class Board {
 public:
  Board(const Config& config, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
        const uint16_t* initial)
      : config_(config), bus_random_{~config.seed},
        player_(top_, config.seed, config.aperture_ps, rows, time, node, port, initial) {
    const int64_t last = player_.last();
    end_ = last > NEVER - config.settle ? NEVER : last + config.settle;
    top_.rst = 1;
    for (int i = 0; i < 8; ++i) step();
    top_.rst = 0;
    for (int i = 0; i < 512; ++i) step();  // power-up clears memories
  }
  ~Board() { top_.final(); }

  void stall(int64_t from_ps, int64_t to_ps) { stalls_.emplace_back(edge_at(from_ps), edge_at(to_ps)); }
  void window(int64_t clocks) { window_ = clocks; }

  bool access(bool write, uint32_t address, uint32_t wdata, uint32_t* rdata) {
    top_.pbx_write = write;
    top_.pbx_addr = static_cast<SData>(address);
    top_.pbx_wdata = wdata;
    wait();
    top_.pbx_req = 1;
    if (!acknowledged(1)) return false;
    if (rdata) *rdata = top_.pbx_rdata;
    wait();
    top_.pbx_req = 0;
    const bool done = acknowledged(0);
    moved_ = cycles_;
    return done;
  }

  // Time passes in which nothing can happen, whatever is queued: the host takes nothing meanwhile.
  void leap(int64_t windows) {
    for (int i = 0; i < CALM; ++i) step();
    for (; windows > 0; windows -= ADVANCE_MAX) {
      const int64_t part = std::min(windows, ADVANCE_MAX);
      top_.advance = static_cast<uint32_t>(part);
      step();
      top_.advance = 0;
      edge_ += part * window_;
      for (int i = 0; i < CALM; ++i) step();
    }
    moved_ = cycles_;
  }

  bool burst(uint32_t address, uint64_t words, uint32_t* out) {
    for (uint64_t i = 0; i < words; ++i) {
      while (started_ && (edge_ < due_ || stalled())) step();
      if (started_) took(4);
      if (!access(false, address + 4 * static_cast<uint32_t>(i), 0, out + i)) return false;
    }
    return true;
  }

  uint64_t stream(uint8_t* out, uint64_t limit, uint64_t cycles) {
    const uint64_t stop = cycles_ + cycles;
    const bool ended_before = ended();
    while (waiting() < limit && cycles_ < stop) {
      // Heartbeats are all that is to come, unless a beat waits for the host.
      if (top_.quiet && !top_.stream_valid && ended_before && waiting()) break;
      if (top_.quiet && config_.skip) skip();
      step();
      if (!ended_before && ended()) break;
    }
    const uint64_t n = std::min<uint64_t>(limit / BEAT * BEAT, waiting());
    std::memcpy(out, taken_.data() + head_, n);
    head_ += n;
    if (head_ == taken_.size()) {
      taken_.clear();
      head_ = 0;
    }
    return n;
  }

  // What the memory has to complain of; empty: nothing.
  const char* complaint() const {
#ifdef SDRAM_PART
    return sdram_.chip.first().c_str();
#else
    return "";
#endif
  }

  bool ended() const { return started_ && edge_ >= end_; }
  uint64_t cycles() const { return cycles_; }
  int64_t edge() const { return started_ ? edge_ : 0; }

 private:
  uint64_t waiting() const { return taken_.size() - head_; }

  // One clock edge; what stands before it is set up here.
  void step() {
    if (!started_ && top_.running) started_ = true;
    bool ready = true;
    if (started_) {
      if (player_.due(edge_)) {
        player_.play(edge_);
        moved_ = cycles_;
      }
      ready = edge_ >= due_ && !stalled();
    }
    const bool take = ready && top_.stream_valid;
    if (take) {
      moved_ = cycles_;
      const auto* beat = reinterpret_cast<const uint8_t*>(&top_.stream_data[0]);
      taken_.insert(taken_.end(), beat, beat + BEAT);
    }
    top_.stream_ready = ready;
#if defined SDRAM_PART
    const uint16_t taken = sdram_.clock({top_.sdram_cke, top_.sdram_command, top_.sdram_bank, top_.sdram_address,
                                         top_.sdram_mask, top_.sdram_dq_o, top_.sdram_dq_oe});
#elif defined EXTERNAL_BURST
    // Both sides say what they do at this edge before either of them does it.
    const bool command = top_.memory_command_valid, data = top_.memory_write_valid;
    const bool write = top_.memory_command_write;
    const uint64_t burst = top_.memory_command_burst;
    Sdram::Beat beat;
    std::memcpy(beat.data(), &top_.memory_write_data[0], BEAT);
    top_.memory_command_ready = sdram_.command_ready();
    top_.memory_write_ready = sdram_.write_ready();
    top_.memory_read_valid = sdram_.read_valid();
    std::memcpy(&top_.memory_read_data[0], sdram_.read_data().data(), BEAT);
    sdram_.clock(command, write, burst, data, beat);
#endif
    rise();
#ifdef SDRAM_PART
    top_.sdram_dq_i = taken;
#endif
    ++cycles_;
    if (started_) {
      if (take) took(BEAT);
      ++edge_;
    }
  }

  // A whole clock. The model finds rising edges by comparing the clock with the level it saw last:
  // where that can be overwritten, there need be no falling edge, which saves a fifth of the time.
  void rise() {
#ifdef CLOCK_SEEN
    if (cycles_) {
      top_.rootp->CLOCK_SEEN = 0;
      Vboard___024root___eval(top_.rootp);
      return;
    }
#endif
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  // The host has taken so many bytes at this edge: `due_` is the edge at which it takes more. What
  // it is early by rounding is kept in `early_`, in 1/rate clocks, so that the mean rate is exact;
  // time in which nothing came is not made up for.
  void took(int64_t bytes) {
    if (!config_.rate) return;
    if (edge_ > due_) early_ = 0;
    const uint64_t wait = static_cast<uint64_t>(bytes) * CLOCK - early_;
    const uint64_t clocks = (wait + config_.rate - 1) / config_.rate;
    early_ = clocks * config_.rate - wait;
    due_ = edge_ + static_cast<int64_t>(clocks);
  }

  bool stalled() {
    while (stall_ < stalls_.size() && edge_ >= stalls_[stall_].second) ++stall_;
    return stall_ < stalls_.size() && edge_ >= stalls_[stall_].first;
  }

  // The first edge at which the host takes a beat that waits.
  int64_t taking() {
    int64_t edge = std::max(edge_, due_);
    for (auto i = stall_; i < stalls_.size() && edge >= stalls_[i].first; ++i) edge = std::max(edge, stalls_[i].second);
    return edge;
  }

  // With nothing moving and nothing due, lets the next edge skip the clocks until something is.
  void skip() {
    if (!started_ || !window_ || cycles_ < moved_ + CALM || player_.owes()) return;
    int64_t last = player_.next() - LEAD;  // the last edge that may be next
    if (edge_ < end_) last = std::min(last, end_ - 1);
    if (top_.stream_valid) last = std::min(last, taking());
    const int64_t clocks = last - edge_ - 1;
    if (clocks < LEAST) return;
    if (window_ < LONG) {  // whole windows
      const int64_t margin = 1 + (LAG + window_ - 1) / window_;
      const int64_t windows =
          std::min({clocks / window_, static_cast<int64_t>(top_.horizon) - margin, ADVANCE_MAX});
      if (windows * window_ >= LEAST) move(windows * window_, windows);
      return;
    }
    const int64_t left = top_.left, since = window_ - left;
    if (left < 2) return;
    // Windows that may end; what a timer does has been done so many clocks after the last end.
    const int64_t ends = std::min(static_cast<int64_t>(top_.horizon) - (since < LAG ? 2 : 1), ADVANCE_MAX - 1);
    if (ends < 0 && since < 2 * LAG) return;
    const int64_t most = std::min(clocks, left - 1 - LAG + std::max<int64_t>(ends, 0) * window_);
    // `left` counts down to 0 in the last clock of a window, where no skip may end.
    const int64_t part = most - (left > most ? left - 1 - most == 0 : (most - left + 1) % window_ == 0);
    if (part < LEAST) return;
    move(part, part < left ? 0 : (part - left) / window_ + 1);
  }

  // Skips so many clocks at the next edge, in which so many windows end.
  void move(int64_t clocks, int64_t windows) {
    top_.advance = static_cast<uint32_t>(windows);
    top_.shift = static_cast<SData>(clocks - windows * window_);
    top_.slip = static_cast<CData>(clocks);
    step();
    top_.advance = 0;
    top_.shift = 0;
    top_.slip = 0;
    edge_ += clocks;
    moved_ = cycles_;  // `horizon` takes a few clocks to follow
  }

  void wait() {
    if (config_.bus_delay)
      for (uint64_t n = bus_random_() % (static_cast<uint64_t>(config_.bus_delay) + 1); n; --n) step();
  }

  bool acknowledged(int level) {
    for (int i = 0; i < ACCESS_MAX; ++i) {
      if (top_.pbx_ack == level) return true;
      step();
    }
    return false;
  }

  const Config config_;
  Random bus_random_;

#if defined SDRAM_PART
  SdramBoard sdram_{SdramPart SDRAM_PART, CLOCK, SdramDelays SDRAM_DELAYS};
#elif defined EXTERNAL_BURST
  Sdram sdram_{SdramTiming SDRAM_TIMING, EXTERNAL_BURST};
#endif
  VerilatedContext context_;
  Vboard top_{&context_};
  Player<Vboard> player_;
  bool started_ = false;
  uint64_t cycles_ = 0;             // edges evaluated
  uint64_t moved_ = 0;              // the last one that a port, the bus or a skip has disturbed
  int64_t edge_ = 0;                // the next edge
  int64_t end_ = 0;                 // the one at which the stimulus and what follows from it are over
  int64_t window_ = 0;              // clocks in a window; 0: not known, nothing is skipped

  std::vector<uint8_t> taken_;
  std::size_t head_ = 0;
  int64_t due_ = 0;
  uint64_t early_ = 0;
  std::vector<std::pair<int64_t, int64_t>> stalls_;  // by time, apart from each other
  std::size_t stall_ = 0;
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
Board* board_new(const Config* config, uint64_t rows, const int64_t* time, const int16_t* node,
                 const uint16_t* port, const uint16_t* initial) {
  return new Board(*config, rows, time, node, port, initial);
}
void board_free(Board* b) { delete b; }
void board_stall(Board* b, int64_t from_ps, int64_t to_ps) { b->stall(from_ps, to_ps); }
void board_window(Board* b, int64_t clocks) { b->window(clocks); }
int board_read(Board* b, uint32_t address, uint32_t* value) { return b->access(false, address, 0, value); }
int board_write(Board* b, uint32_t address, uint32_t value) { return b->access(true, address, value, nullptr); }
int board_burst(Board* b, uint32_t address, uint64_t words, uint32_t* out) {
  return b->burst(address, words, out);
}
uint64_t board_stream(Board* b, uint8_t* out, uint64_t limit, uint64_t cycles) {
  return b->stream(out, limit, cycles);
}
void board_leap(Board* b, int64_t windows) { b->leap(windows); }
int board_ended(const Board* b) { return b->ended(); }
uint64_t board_cycles(const Board* b) { return b->cycles(); }
const char* board_complaint(const Board* b) { return b->complaint(); }
int64_t board_edge(const Board* b) { return b->edge(); }
}
