// The virtual board: the verilated gateware, its stimulus, its bus master and its stream's sink.
//
// One Board is driven in batches through the C functions at the end; sim/virtual/link.py is their only
// caller, and documents each of them. sim/virtual/build.py compiles this file, and defines:
//
// - NODES, CLOCK_HZ, PORT_BITS: of the gateware's geometry;
// - PHASES, if strobes are sampled twice or four times per clock;
// - SYNCED, if the board has sync_in;
// - LINKS, if some of its nodes have regeneration boards;
// - PPS, TRIGGER_IN, TRIGGER_OUT, DRIFT, ECHO: the extras that it has;
// - SDRAM_PART and SDRAM_DELAYS, if it has an SDRAM at its pins (memory/sdram_chip.h);
// - EXTERNAL_BURST and SDRAM_TIMING, if it has external memory; without SDRAM_PART, that is a model at a burst port
//   (memory/sdram.h);
// - CLOCK_SEEN or RESTS, according to the way in which the model is evaluated, see rise().
//
// Time is counted in clock edges: edge 0 is the first rising edge that sees `running` high, and is
// time 0.

#include "Vboard.h"
#include "verilated.h"
#ifdef CLOCK_SEEN
#include "Vboard___024root.h"
#endif

#include "player.h"
#ifdef RESTS
#include "resting.h"
#endif
#ifdef SYNCED
#include "wire.h"
#endif
#if defined SDRAM_PART
#include "memory/sdram_chip.h"
#elif defined EXTERNAL_BURST
#include "memory/sdram.h"
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace {

constexpr int64_t BEAT = 16;
constexpr int64_t ADVANCE_MAX = INT32_MAX;
// For a skip, see `rest` in hdl/capture.py: clocks since the last change at a port, on the bus or by the host, or since
// the last skip; clocks until a port changes; the smallest number of clocks to skip.
constexpr int64_t CALM = 12, LEAD = 6, LEAST = 32;
// Clocks after the end of a window in which `horizon` follows, and in which a timer that was due acts. hdl/capture.py
// requires 8 in windows of one clock; 10 leaves two to spare.
constexpr int64_t LAG = 10;
// Shortest window, in clocks, of which a part may be skipped.
constexpr int64_t LONG = 32;
// Clocks of an access that reads FRAME_FIFO, from request to release. The next one may begin in the clock after it.
constexpr uint64_t SINGLE = 14;
// Clocks by which a word of a burst may be late before the host counts as slowed down. The host's rate is a mean: the
// words of a frame take 4, 4, 4 and 5 clocks, and between two bursts there may be two accesses.
constexpr int64_t LATE = 64;
// Clocks that a host waits for the stream between two bursts.
constexpr uint64_t LOOK = 512;
// All addresses from here on read FRAME_FIFO.
constexpr uint32_t BURST_BASE = 0x1000;
// Clocks in which a bus access must end; the longest, a reset, takes a few hundred.
constexpr int ACCESS_MAX = 100'000;

struct Config {
  uint64_t seed;
  uint64_t aperture_ps;    // 0: no random delay in the synchronizers
  uint64_t rate;           // bytes per second that the host takes; 0: as they come
  int64_t settle;          // clocks after the last change of the stimulus until it counts as ended
  int32_t bus_delay;       // the bus master waits at most this number of clocks, at random, in each phase
  int32_t skip;            // idle time may be skipped
  // Parts of the model that cannot change (rooms, see resting.h) are not computed. 2: they are computed, and it is
  // checked that nothing in them has changed.
  int32_t rest;
};

class Board {
 public:
  Board(const Config& config, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
        const uint16_t* initial)
      : config_(config), bus_random_{~config.seed},
        player_(top_, config.seed, config.aperture_ps, rows, time, node, port, initial) {
    end_ = ending();
    top_.rst = 1;
    for (int i = 0; i < 8; ++i) step();
    top_.rst = 0;
    for (int i = 0; i < 512; ++i) step();  // power-up clears memories
  }
  ~Board() {
#ifdef SYNCED
    if (source_) std::erase_if(source_->far_, [this](const Far& far) { return far.board == this; });
    for (const Far& far : far_) far.board->source_ = nullptr;
#endif
    top_.final();
  }

#ifdef SYNCED
  // Gives the board its own clock: slower by `ppb`, with an edge `phase_ps` before time 0 of the board that leads.
  void clock(int64_t ppb, int64_t phase_ps) {
    scale_ = {ppb, 0};
    phase_ps_ = phase_ps;
    player_.on({ppb, 0});
    end_ = ending();
  }
  // A board that leads before it follows another one is the root: all boards have its time. Its own sync_in may be
  // wired later.
  void lead(Board* follower, int64_t delay_ps) {
    root_ |= !follows();
    wired_ = follower->wired_ = true;
    far_.push_back({follower, delay_ps});
    follower->source_ = this;
  }
  void lead(int file) {
    root_ |= !follows();
    wired_ = true;
    files_.push_back(file);
  }
  void follow(int file, int64_t delay_ps) {
    wired_ = true;
    reader_ = WaveReader(file);
    delay_ps_ = delay_ps;
  }
  // The time of the root at the next edge of this board.
  int64_t common_ps() const { return aligned() ? scale_.ps(index()) : 0; }
#endif

  // Makes a pin rise at each of these times, for PULSE clocks. False if the board does not have the pin.
  bool pulses([[maybe_unused]] const char* pin, [[maybe_unused]] uint64_t count, [[maybe_unused]] const int64_t* times) {
    [[maybe_unused]] const auto take = [&](CData& level) {
      pulsing_.push_back({&level, {times, times + count}, 0, 0});
      return true;
    };
#ifdef PPS
    if (!std::strcmp(pin, "pps_in")) return take(top_.pps_in);
#endif
#ifdef TRIGGER_IN
    if (!std::strcmp(pin, "trigger_in")) return take(top_.trigger_in);
#endif
    return false;
  }

  // Number of the first edge that sees `trigger_out` high; -1: none does, or there is no such pin.
  int64_t fired() const { return fired_; }

  // If `every` is not 0, each bit on the lines is wrong with a probability of 1 / `every`. The cables are unplugged
  // from `from_ps` to `to_ps`.
  void disturb([[maybe_unused]] uint64_t every, [[maybe_unused]] int64_t from_ps, [[maybe_unused]] int64_t to_ps) {
#ifdef LINKS
    every_ = every;
    pulled_ = {from_ps < 0 ? NEVER : edge_at(from_ps), to_ps < 0 ? NEVER : edge_at(to_ps)};
#endif
  }

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
    if (address >= BURST_BASE && bursts()) return ahead(address, words, out);
    for (uint64_t i = 0; i < words; ++i) {
      while (started_ && (edge_ < due_ || stalled())) step();
      if (started_) took(4);
      if (!access(false, address + 4 * static_cast<uint32_t>(i), 0, out + i)) return false;
    }
    return true;
  }

  uint64_t stream(uint8_t* out, uint64_t limit, uint64_t cycles) {
    // A host that has read frames at the bus's pace looks at the stream, and does not wait for it.
    const uint64_t stop = cycles_ + (ahead_ ? std::min(cycles, LOOK) : cycles);
    ahead_ = false;
    const bool ended_before = ended();
    while (waiting() < limit && cycles_ < stop) {
#ifdef SYNCED
      if (starves()) break;
#endif
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

  // The first fault that was found; empty: none.
  const char* complaint() {
#ifdef RESTS
    if (resting_.broken()) complaint_ = std::string("has changed while it should have rested: ") + resting_.broken();
#endif
#ifdef SDRAM_PART
    if (const std::string& first = sdram_.chip.first(); !first.empty())
      complaint_ = "the SDRAM's data sheet is violated: " + first;
#endif
    return complaint_.c_str();
  }

  // Name of a room, by number; null: there are no more. rested(): the clocks in which it was not computed, if that is
  // checked.
  const char* room([[maybe_unused]] int number) const {
#ifdef RESTS
    if (number < Rooms::COUNT) return Rooms::NAMES[number];
#endif
    return nullptr;
  }
  uint64_t rested([[maybe_unused]] int number) const {
#ifdef RESTS
    return resting_.rested(number);
#else
    return 0;
#endif
  }

  bool ended() const { return started_ && index() >= end_; }
  uint64_t cycles() const { return cycles_; }
  int64_t edge() const { return started_ ? edge_ : 0; }

 private:
  uint64_t waiting() const { return taken_.size() - head_; }

  // The next edge on the scale of the stimulus. That of a board with a wire to `sync_in` begins with the time 0 of the
  // board that leads, and so before its own.
  int64_t index() const { return edge_ + before_; }
  int64_t ending() const {
    const int64_t last = player_.last();
    return last > NEVER - config_.settle ? NEVER : last + config_.settle;
  }

#ifdef SYNCED
  struct Far {
    Board* board;
    int64_t delay_ps;
  };

  bool follows() const { return source_ || reader_.open(); }
  bool aligned() const { return follows() && !root_ ? aligned_ : started_; }

  // Time counts from the moment at which a wave begins at the other end of the wire. The line was low long before it.
  bool align() {
    if (root_) return started_;
    if (aligned_ || aligning_ || !(source_ ? source_->aligned() : reader_.begun())) return aligned_;
    aligning_ = true;
    for (int i = 0; i < SILENCE; ++i) step();
    aligning_ = false;
    scale_.begin_ps = -phase_ps_;
    player_.on(scale_);
    end_ = ending();
    aligned_ = true;
    tell({0, Change::BEGUN});
    return true;
  }

  // The wave that the next edge needs has not arrived yet, because another process computes it.
  bool starves() {
    if (!reader_.open() || aligning_) return false;
    if (!aligned_) {
      if (cycles_ >= looked_ + LOOK) {
        looked_ = cycles_;
        reader_.fetch(0);
      }
      return false;
    }
    const int64_t until = scale_.ps(index()) - delay_ps_;
    while (reader_.known() < until)
      if (!reader_.fetch(STARVES_MS)) return true;
    return false;
  }

  // Sets `sync_in` as the next edge samples it.
  void listen() {
    top_.sync_in = truth_;      // it may be seen an edge late
    if (!align()) return;
    const int64_t now = scale_.ps(index());
    if (source_) {
      source_->run_until(now - delay_ps_);
    } else {
      while (reader_.known() < now - delay_ps_) reader_.fetch(-1);
      for (Change change; reader_.take(now - delay_ps_, change);) hear(change);
    }
    while (!coming_.empty() && coming_.front().ps < now) {
      const Change change = coming_.front();
      coming_.pop_front();
      truth_ = change.what == Change::HIGH;
      const bool late = static_cast<uint64_t>(now - change.ps) < config_.aperture_ps && wire_random_() & 1;
      if (!late) top_.sync_in = truth_;
    }
  }

  void hear(const Change& change) {
    if (change.what != Change::BEGUN) coming_.push_back({change.ps + delay_ps_, change.what});
  }

  // Up to the edges before a time, but no further than its own wave is known.
  void run_until(int64_t ps) {
    if (running_) return;       // it is this one that asks, in a ring: it has been computed so far
    running_ = true;
    align();
    while (aligned() && scale_.ps(index()) < ps) {
      if (top_.quiet && config_.skip) skip();
      step();
    }
    running_ = false;
  }

  void tell(const Change& change) {
    for (const Far& far : far_) {
      far.board->delay_ps_ = far.delay_ps;
      far.board->hear(change);
    }
    std::erase_if(files_, [&change](int file) { return !change.write(file); });
  }

  // After an edge: has it changed `sync_out`?
  void speak(int64_t edge) {
    if (top_.sync_out == out_) return;
    out_ = top_.sync_out;
    out_at_ = edge_;
    if (aligned()) tell({scale_.ps(edge), out_ ? Change::HIGH : Change::LOW});
  }

  // The last edge that may be next after a skip: no change of its own wave may be missed. A board that follows is never
  // quiet.
  int64_t awake() const {
    if (follows()) return edge_;
    int64_t half = 1;   // windows of half a period
    while (2 * half * window_ < PERIOD) half *= 2;
    return out_at_ + half * window_ - LEAD - 4;
  }
#else
  bool aligned() const { return started_; }
#endif

  // One clock edge; what the board sees at it is set up here.
  void step() {
#ifdef SYNCED
    if (follows()) {
      const bool before = std::exchange(running_, true);
      listen();
      running_ = before;
    }
#endif
    if (!started_ && top_.running) {
      started_ = true;
#ifdef SYNCED
      if (root_) tell({0, Change::BEGUN});
#endif
    }
    bool ready = true;
    if (aligned() && player_.due(index())) {
      player_.play(index());
      moved_ = cycles_;
    }
    if (!pulsing_.empty() && aligned()) pulse();
    if (started_) ready = edge_ >= due_ && !stalled();
#ifdef LINKS
    disturb_lines();
#endif
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
    // Both sides state what they do at this edge before either of them does it.
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
#ifdef TRIGGER_OUT
    if (started_ && fired_ < 0 && top_.trigger_out) fired_ = edge_;
#endif
    rise();
#ifdef SDRAM_PART
    top_.sdram_dq_i = taken;
#endif
    ++cycles_;
#ifdef SYNCED
    if (wired_) {
      speak(index());
      if (!started_ && aligned()) ++before_;
    }
#endif
    if (started_) {
      if (take) took(BEAT);
      ++edge_;
    }
  }

  struct Pulsing {
    CData* level;
    std::vector<int64_t> times;     // rises
    std::size_t next;
    int64_t until;                  // the edge that sees it low again
  };

  int64_t pulse_edge(const Pulsing& pin) const {
    if (*pin.level) return pin.until;
    return pin.next < pin.times.size() ? player_.scale().edge(pin.times[pin.next]) : NEVER;
  }
  int64_t next_pulse() const {
    int64_t next = NEVER;
    for (const Pulsing& pin : pulsing_) next = std::min(next, pulse_edge(pin));
    return next;
  }
  // Sets the pins as the next edge samples them.
  void pulse() {
    for (Pulsing& pin : pulsing_) {
      const int64_t edge = pulse_edge(pin);
      if (index() < edge) continue;
      moved_ = cycles_;
      if (*pin.level) {
        *pin.level = 0;
        continue;
      }
      const int64_t slack = player_.scale().ps(index()) - pin.times[pin.next++];
      *pin.level = 1;
      pin.until = index() + PULSE;
      if (slack < static_cast<int64_t>(config_.aperture_ps) && pin_random_() & 1) {   // seen an edge late
        *pin.level = 0;
        pin.times[--pin.next] += static_cast<int64_t>(config_.aperture_ps) - slack;
      }
    }
  }
#ifdef LINKS
  void disturb_lines() {
    unsigned wrong = 0;
    if (every_)
      for (int bit = 0; bit < 2 * LINKS; ++bit)
        if (line_random_() % every_ == 0) wrong |= 1u << bit;
    top_.wrong = static_cast<CData>(wrong);
    const bool pulled = started_ && edge_ >= pulled_.first && edge_ < pulled_.second;
    top_.pulled = static_cast<CData>(pulled ? (1u << LINKS) - 1 : 0);
  }
#endif

  // A whole clock. The model finds rising edges by comparing the clock with the level it saw last:
  // where that can be overwritten, there need be no falling edge, which saves a fifth of the time.
  void rise() {
#if defined RESTS
    if (cycles_) {
      resting_.edge(top_.rootp);
      return;
    }
    for (const int level : {0, 1}) {
      Rooms::beat(top_, level);
      top_.clk = static_cast<CData>(level);
      top_.eval();
    }
#else
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
#endif
  }

  // Whether the host reads in bursts. At a rate that single accesses reach, or without a rate, it makes one access per
  // word.
  bool bursts() const { return config_.rate * SINGLE > 4 * CLOCK; }

  // One word for each edge of pbx_req. All are read from one address: they are in a window of one register.
  bool ahead(uint32_t address, uint64_t words, uint32_t* out) {
    top_.pbx_write = 0;
    top_.pbx_addr = static_cast<SData>(address);
    top_.pbx_wdata = 0;
    ahead_ = started_;
    bool done = true;
    int level = 0;
    for (uint64_t i = 0; done && i < words; ++i) {
      while (started_ && (edge_ < due_ || stalled())) step();
      if (started_) took(4, LATE);
      wait();
      top_.pbx_more = i + 1 < words;
      top_.pbx_req = static_cast<CData>(level = !level);
      done = acknowledged(level);
      moved_ = cycles_;
      out[i] = top_.pbx_rdata;
    }
    wait();
    top_.pbx_more = 0;
    top_.pbx_req = 0;
    done = done && acknowledged(0);
    moved_ = cycles_;
    return done;
  }

  // The host has taken `bytes` bytes at this edge: `due_` is the edge at which it takes more. Rounding is carried over
  // in `early_`, in 1/rate clocks, so that the mean rate is exact. The host does not catch up on time in which nothing
  // came, except on a wait of up to `late` clocks.
  void took(int64_t bytes, int64_t late = 0) {
    if (!config_.rate) return;
    const bool anew = edge_ > due_ + late;
    if (anew) early_ = 0;
    const uint64_t wait = static_cast<uint64_t>(bytes) * CLOCK - early_;
    const uint64_t clocks = (wait + config_.rate - 1) / config_.rate;
    early_ = clocks * config_.rate - wait;
    due_ = (anew || edge_ < due_ ? edge_ : due_) + static_cast<int64_t>(clocks);
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

  // If nothing moves and nothing is due, lets the next edge skip the clocks until something is due.
  void skip() {
    if (!started_ || !window_ || cycles_ < moved_ + CALM || player_.owes()) return;
    int64_t last = std::min(player_.next(), next_pulse()) - before_ - LEAD;  // the last edge that may be next
    if (index() < end_) last = std::min(last, end_ - before_ - 1);
#ifdef SYNCED
    if (wired_) last = std::min(last, awake());
#endif
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
    // Windows that may end. The actions of a timer are complete LAG clocks after the end of the last one.
    const int64_t ends = std::min(static_cast<int64_t>(top_.horizon) - (since < LAG ? 2 : 1), ADVANCE_MAX - 1);
    if (ends < 0 && since < 2 * LAG) return;
    const int64_t most = std::min(clocks, left - 1 - LAG + std::max<int64_t>(ends, 0) * window_);
    // `left` counts down to 0 in the last clock of a window, where no skip may end.
    const int64_t part = most - (left > most ? left - 1 - most == 0 : (most - left + 1) % window_ == 0);
    if (part < LEAST) return;
    move(part, part < left ? 0 : (part - left) / window_ + 1);
  }

  // Skips `clocks` clocks at the next edge, in which `windows` windows end.
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
#ifdef RESTS
  Resting resting_{config_.rest};
#endif
  Player<Vboard> player_;
#ifdef LINKS
  Random line_random_{~config_.seed + 1};
  uint64_t every_ = 0;
  std::pair<int64_t, int64_t> pulled_{NEVER, NEVER};
#endif
  std::string complaint_;
  bool started_ = false;
  uint64_t cycles_ = 0;             // edges evaluated
  uint64_t moved_ = 0;              // the last one that a port, the bus or a skip has disturbed
  int64_t edge_ = 0;                // the next edge
  int64_t before_ = 0;              // edges on the scale of the stimulus before time 0
  int64_t end_ = 0;                 // the one at which the stimulus and what follows from it are over
  int64_t window_ = 0;              // clocks in a window; 0: not known, nothing is skipped

  std::vector<uint8_t> taken_;
  std::size_t head_ = 0;
  int64_t due_ = 0;
  bool ahead_ = false;              // words of a burst were read since the stream was
  uint64_t early_ = 0;
  std::vector<std::pair<int64_t, int64_t>> stalls_;  // by time, apart from each other
  std::size_t stall_ = 0;

  static constexpr int64_t PULSE = 16;
  std::vector<Pulsing> pulsing_;
  Random pin_random_{config_.seed ^ 0xa5a5};
  int64_t fired_ = -1;

#ifdef SYNCED
  // Clocks of a low line before the first wave, more than the board waits for; the shortest period of a wave.
  static constexpr int SILENCE = 5000;
  static constexpr int64_t PERIOD = 1024;
  // A board that waits looks for a wave every so many clocks; then it waits for more of it for so many milliseconds.
  static constexpr uint64_t LOOK = 4096;
  static constexpr int STARVES_MS = 20;

  bool wired_ = false, root_ = false;
  Scale scale_;                     // from edges to the time of the board that leads
  int64_t phase_ps_ = 0;
  std::vector<Far> far_;            // boards that follow, in this process
  std::vector<int> files_;          // ... and elsewhere
  Board* source_ = nullptr;         // the board that is followed, in this process
  WaveReader reader_;               // ... or elsewhere
  int64_t delay_ps_ = 0;            // of the wire
  std::deque<Change> coming_;       // on the wire, when they arrive
  Random wire_random_{~config_.seed ^ 0x5a5a};
  bool aligned_ = false, aligning_ = false, running_ = false;
  bool truth_ = false, out_ = false;
  int64_t out_at_ = 0;              // edge of the last change of sync_out
  uint64_t looked_ = 0;
#endif
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
void board_disturb(Board* b, uint64_t every, int64_t from_ps, int64_t to_ps) { b->disturb(every, from_ps, to_ps); }
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
const char* board_complaint(Board* b) { return b->complaint(); }
const char* board_room(const Board* b, int room) { return b->room(room); }
uint64_t board_rested(const Board* b, int room) { return b->rested(room); }
int64_t board_edge(const Board* b) { return b->edge(); }
int board_pulses(Board* b, const char* pin, uint64_t count, const int64_t* times) {
  return b->pulses(pin, count, times);
}
int64_t board_fired(const Board* b) { return b->fired(); }
#ifdef SYNCED
void board_clock(Board* b, int64_t ppb, int64_t phase_ps) { b->clock(ppb, phase_ps); }
void board_lead(Board* b, Board* follower, int64_t delay_ps) { b->lead(follower, delay_ps); }
void board_lead_file(Board* b, int file) { b->lead(file); }
void board_follow_file(Board* b, int file, int64_t delay_ps) { b->follow(file, delay_ps); }
int64_t board_common_ps(const Board* b) { return b->common_ps(); }
#endif
}
