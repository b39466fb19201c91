// Random traffic between the verilated board with a PCIe link and a host, judged by the plain board beside it.
//
// tests/sim/virtual/pcie/test_traffic.py is the only caller of the C functions at the end. Compiled with NODES and
// CLOCK_HZ of the gateware's geometry, and with PCIE_VENDOR and PCIE_DEVICE.

#include "Vboard.h"
#include "verilated.h"
#ifdef CLOCK_SEEN
#include "Vboard___024root.h"
#endif

#include "player.h"
#include "pcie/us_block.h"

#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

namespace {

constexpr int POWER_UP = 512, RESET_CLOCKS = 64, PHASE = 20'000, ANSWER = 3000;
constexpr uint32_t BEAT = 16, PAGE = 4096;
// Beats that may be between the board's stream and the host's memory: FIFOs of 16 and 64, the stages around them, and a
// write of 32 in the block.
constexpr uint64_t INSIDE = 16 + 64 + 16 + 32;
constexpr uint8_t POISON = 0xa5;

struct Figures {
  uint64_t tlps, beats, blocked, reads, interrupts, clocks, offered[32];
};

class Traffic {
 public:
  Traffic(uint64_t seed, uint64_t link_hz, uint32_t pages_log, uint64_t base)
      : block_(top_, *this, ~seed), random_{seed}, link_hz_(link_hz), behind_(seed % link_hz), base_(base),
        size_(PAGE << pages_log), memory_(size_ + PAGE, POISON) {
    std::memset(&memory_[size_], 0, PAGE);
    top_.rst = 1;
    run(8);
    top_.rst = 0;
    run(8 * POWER_UP);
    block_.reset = false;
    run(RESET_CLOCKS);
  }
  ~Traffic() { top_.final(); }

  void config(uint32_t offset, uint16_t value) {
    block_.config.write(offset, reinterpret_cast<const uint8_t*>(&value), 2);
    run(4);
  }
  // Accesses that wait for their end. A read without data fails.
  bool read(uint32_t offset, uint32_t* value) {
    if (!settle()) return false;
    block_.request(false, offset, 4, nullptr);
    for (int i = 0; i < ANSWER && !block_.completed; ++i) run(1);
    *value = block_.data;
    return block_.completed && !block_.status;
  }
  bool write(uint32_t offset, uint32_t value) {
    if (!settle()) return false;
    block_.request(true, offset, 4, reinterpret_cast<const uint8_t*>(&value));
    for (int i = 0; i < ANSWER && !block_.idle(); ++i) run(1);
    return block_.idle();
  }

  // The nodes write, or stop.
  void play(bool on) {
    playing_ = on;
    for (int n = 0; !on && n < NODES; ++n) top_.strobe &= ~(1u << n);
  }

  // What a host of this seed may read, with its value.
  void known(uint32_t offset, uint32_t value) { known_.emplace_back(offset, value); }

  // Random chances of everything, which change every so often, until so many TLPs have been written.
  const char* traffic(uint64_t tlps) {
    while (block_.counts.tlps < tlps && error_.empty()) {
      const uint64_t before = beats_;
      pace_ = pick({1, 4, 8, 8, 16});
      block_.stall_cq = pick({0, 60, 200});
      block_.stall_cc = pick({0, 60, 200});
      block_.stall_rq = pick({0, 0, 0, 60, 120});
      drains_ = pick({0, 20, 60, 60, 256, 256, 256, 256});
      tells_ = pick({20, 60, 256, 256});
      asks_ = pick({0, 4, 40});
      lives(PHASE);
      const uint64_t inside = beats_ - arrived_;
      if (arrived_ > beats_ || inside > INSIDE) fail("%llu beats are neither queued nor in memory", inside);
      if (beats_ == before && pace_ < 16 && drains_) fail("nothing moves after %llu beats", beats_);
    }
    return error_.c_str();
  }

  // The nodes write at a pace, without stalls, for so many clocks; the host consumes nothing.
  const char* absent(int clocks, uint64_t pace) {
    block_.stall_cq = block_.stall_cc = block_.stall_rq = 0;
    drains_ = tells_ = asks_ = 0;
    pace_ = pace;
    lives(clocks);
    return error_.c_str();
  }

  // One nibble of node 0. Clocks of the link from its strobe until the host is told of something new; 0: never.
  int flush(int most) {
    const uint64_t before = head_;
    top_.strobe |= 1;
    ++offered_[0];
    for (int i = 1; i <= most; ++i) {
      lives(1);
      if (i == 16) top_.strobe &= ~1u;
      if (head_ != before) return i;
    }
    return 0;
  }

  // Everything that is under way arrives.
  const char* drain(int clocks) {
    block_.stall_cq = block_.stall_cc = block_.stall_rq = 0;
    drains_ = tells_ = 256;
    asks_ = 0;
    lives(clocks);
    return error_.c_str();
  }
  bool drained() const { return taken_ == beats_ * BEAT; }

  uint64_t take(uint8_t* out, uint64_t limit) {
    const uint64_t count = std::min<uint64_t>(limit, stream_.size());
    if (!out) return stream_.size();
    std::memcpy(out, stream_.data(), count);
    stream_.erase(stream_.begin(), stream_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  Figures figures() const {
    Figures f{block_.counts.tlps, beats_, blocked_, reads_, block_.counts.interrupts, block_.counts.clocks, {}};
    for (int n = 0; n < NODES; ++n) f.offered[n] = offered_[n];
    return f;
  }

  // For the block.
  bool write(uint64_t address, const uint8_t* data, uint32_t size) {
    if (address == base_ + size_ && size == BEAT) {
      uint32_t head;
      std::memcpy(&head, data, sizeof head);
      if (head > written_ || head < head_) fail("a head of %llu is reported", head);
      head_ = head;
      std::memcpy(&memory_[size_], data, size);
      return true;
    }
    const uint64_t at = written_ % size_;
    if (address != base_ + at || at + size > size_) fail("a write to %llu", address);
    else if (written_ + size - told_ > size_) fail("a write over what was not consumed, %llu", written_);
    else std::memcpy(&memory_[at], data, size);
    written_ += size;
    arrived_ += size / BEAT;
    return true;
  }
  bool listens() const { return true; }
  bool interrupt() { return true; }

 private:
  uint64_t below(uint64_t limit) { return random_() % limit; }
  bool chance(unsigned of_256) { return (random_() & 255) < of_256; }
  unsigned pick(std::initializer_list<unsigned> values) { return values.begin()[below(values.size())]; }

  void fail(const char* what, uint64_t value) {
    if (!error_.empty()) return;
    char text[200];
    std::snprintf(text, sizeof text, what, static_cast<unsigned long long>(value));
    error_ = std::string(text) + " (TLP " + std::to_string(block_.counts.tlps) + ")";
  }

  bool settle() {
    for (int i = 0; i < ANSWER && (waits_ || !block_.idle()); ++i) lives(1);
    return !waits_;
  }

  // The host at work, beside the link's clocks.
  void lives(int clocks) {
    while (clocks-- && error_.empty()) {
      run(1);
      if (head_ != taken_ && chance(drains_)) consume();
      if (waits_ && block_.completed) {
        waits_ = false;
        ++reads_;
        if (block_.status || block_.data != known_[asked_].second) fail("a read of %llu fails", known_[asked_].first);
      }
      if (waits_ ? ++waited_ > ANSWER : false) fail("a read of %llu gets no completion", known_[asked_].first);
      if (waits_ || !block_.idle()) continue;
      if (told_ != taken_ && chance(tells_)) {
        told_ = taken_;
        const auto tail = static_cast<uint32_t>(told_);
        block_.request(true, TAIL, 4, reinterpret_cast<const uint8_t*>(&tail));
      } else if (!known_.empty() && chance(asks_)) {
        asked_ = below(known_.size());
        waits_ = true;
        waited_ = 0;
        block_.request(false, known_[asked_].first, 4, nullptr);
      }
    }
  }

  // Takes some or all of what was reported, compares it with the plain board's stream, and spoils its place.
  void consume() {
    uint64_t count = head_ - taken_;
    if (chance(64)) count = BEAT * (1 + below(count / BEAT));
    for (; count; count -= BEAT, taken_ += BEAT) {
      uint8_t* at = &memory_[taken_ % size_];
      if (std::memcmp(at, plain_.front().data(), BEAT)) return fail("beat %llu is not the plain board's", taken_ / BEAT);
      stream_.insert(stream_.end(), at, at + BEAT);
      std::memset(at, POISON, BEAT);
      plain_.pop_front();
    }
  }

  void run(int clocks) {
    while (clocks--) {
      for (behind_ += CLOCK; behind_ >= link_hz_; behind_ -= link_hz_) capture();
      block_.drive();
      top_.user_clk = 0;
      top_.eval();
      block_.sample();
      top_.user_clk = 1;
      top_.eval();
    }
  }

  void capture() {
    if (playing_) nodes();
    // These three come from flip-flops of this clock.
    if (top_.plain_valid && top_.plain_ready) {
      plain_.emplace_back();
      std::memcpy(plain_.back().data(), &top_.plain_data[0], BEAT);
      ++beats_;
    }
    blocked_ += top_.plain_valid && !top_.plain_ready;
#ifdef CLOCK_SEEN
    // One rising edge; see board.cpp.
    if (risen_) {
      top_.rootp->CLOCK_SEEN = 0;
      Vboard___024root___eval(top_.rootp);
      return;
    }
    risen_ = true;
#endif
    top_.clk = 0;
    top_.eval();
    top_.clk = 1;
    top_.eval();
  }

  // A strobe rises with the data of its fall; each level lasts at least a clock.
  void nodes() {
    for (int n = 0; n < NODES; ++n) {
      if (until_[n]--) continue;
      const uint32_t bit = 1u << n;
      if (top_.strobe & bit) {
        top_.strobe &= ~bit;
        const int shift = PORT_BITS * n;
        top_.data = (top_.data & ~(DATA << shift)) | (random_() & DATA) << shift;
      } else {
        top_.strobe |= bit;
        ++offered_[n];
      }
      until_[n] = static_cast<int>(below(2 * pace_ - 1));
    }
  }

  static constexpr uint32_t TAIL = PCIE_TAIL;

  VerilatedContext context_;
  Vboard top_{&context_};
  UsBlock<Vboard, Traffic> block_;
  Random random_;
  const uint64_t link_hz_;
  uint64_t behind_;
  const uint64_t base_, size_;
  std::vector<uint8_t> memory_, stream_;
  std::deque<std::array<uint8_t, BEAT>> plain_;
  std::vector<std::pair<uint32_t, uint32_t>> known_;
  std::string error_;
  bool playing_ = false, waits_ = false, risen_ = false;
  int until_[NODES] = {}, waited_ = 0;
  uint64_t pace_ = 1, asked_ = 0;
  unsigned drains_ = 256, tells_ = 256, asks_ = 0;
  // Beats that the plain board has delivered, and that have arrived here; bytes.
  uint64_t beats_ = 0, arrived_ = 0, written_ = 0, head_ = 0, taken_ = 0, told_ = 0;
  uint64_t blocked_ = 0, reads_ = 0, offered_[NODES] = {};
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
Traffic* traffic_new(uint64_t seed, uint64_t link_hz, uint32_t pages_log, uint64_t base) {
  return new Traffic(seed, link_hz, pages_log, base);
}
void traffic_free(Traffic* t) { delete t; }
void traffic_config(Traffic* t, uint32_t offset, uint16_t value) { t->config(offset, value); }
int traffic_read(Traffic* t, uint32_t offset, uint32_t* value) { return t->read(offset, value); }
int traffic_write(Traffic* t, uint32_t offset, uint32_t value) { return t->write(offset, value); }
void traffic_play(Traffic* t, int on) { t->play(on); }
void traffic_known(Traffic* t, uint32_t offset, uint32_t value) { t->known(offset, value); }
const char* traffic_run(Traffic* t, uint64_t tlps) { return t->traffic(tlps); }
const char* traffic_absent(Traffic* t, int clocks, uint64_t pace) { return t->absent(clocks, pace); }
int traffic_flush(Traffic* t, int most) { return t->flush(most); }
const char* traffic_drain(Traffic* t, int clocks) { return t->drain(clocks); }
int traffic_drained(const Traffic* t) { return t->drained(); }
uint64_t traffic_take(Traffic* t, uint8_t* out, uint64_t limit) { return t->take(out, limit); }
void traffic_figures(const Traffic* t, Figures* figures) { *figures = t->figures(); }
}
