// An SDRAM of 16 data pins, pin by pin and to the picosecond, as its data sheet has it: it keeps what is written, and
// complains of every rule that is broken. Around it the wires to an FPGA, with their delays and the I/O cells'
// flip-flops.
//
// Not modelled, and complained of: auto precharge, bursts of another length than 8, bursts that are cut short, power
// down, self refresh.

#ifndef HYPERMON_SDRAM_CHIP_H
#define HYPERMON_SDRAM_CHIP_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

struct SdramPart {   // see hdl/stream/sdram_part.py; ps
  int64_t bank_bits, row_bits, column_bits;
  int64_t ck2, ck3, rcd, rp, ras, ras_max, rc, rrd, rfc, mrd, mrd_clocks, wr, ac2, ac3, oh, hz, su, hd;
  int64_t refresh_window, refreshes, pause;
};

struct SdramPins {   // 1: asserted
  uint32_t cke = 0, command = 0, bank = 0, address = 0, mask = 0, dq_o = 0, dq_oe = 0;
  bool operator==(const SdramPins&) const = default;
};

class SdramChip {
 public:
  static constexpr int BURST = 8;
  enum Command : uint32_t { NOP = 0, ACTIVE = 1, READ = 2, REFRESH = 3, PRECHARGE = 5, WRITE = 6, MODE = 7 };

  explicit SdramChip(const SdramPart& part)
      : p_(part), banks_(1 << part.bank_bits), words_(std::size_t{1} << (part.bank_bits + part.row_bits + part.column_bits)) {}

  uint64_t complaints() const { return complaints_; }
  const std::string& first() const { return first_; }   // empty: none
  uint64_t refreshes() const { return refreshed_; }
  uint64_t activates() const { return activates_; }
  uint64_t bursts() const { return bursts_; }

  // The pins are so from this time on.
  void change(int64_t now, const SdramPins& pins) {
    if (pins == pins_) return;
    if (edge_ >= 0) held(now - edge_, p_.hd, "hold");
    if (pins.dq_oe && drives(now)) complain("both sides drive DQ");
    pins_ = pins;
    changed_ = now;
  }

  // A rising edge of its clock.
  void rise(int64_t now) {
    if (changed_ >= 0) held(now - changed_, p_.su, "set-up");
    if (edge_ >= 0) held(now - edge_, cl_ == 2 ? p_.ck2 : p_.ck3, "tCK");
    else begun_ = now;
    edge_ = now;
    ++clock_;
    overdue(now);
    const bool enabled = cke_ && pins_.cke;
    cke_ = pins_.cke;
    if (pins_.command != NOP && !enabled) complain("a command while CKE is low");
    else obey(now, pins_);
    if (writing_ > 0) {
      if (!pins_.dq_oe) complain("nobody drives a word that is to be written");
      if (!pins_.mask) words_[at(BURST - writing_)] = static_cast<uint16_t>(pins_.dq_o);
      --writing_;
      written_ = now;
    }
    Due& due = due_[clock_ % DUE];
    launch(now, due.there, due.there ? words_[due.from] : 0);
    due.there = false;
  }

  // What is on DQ; false if nobody may rely on it.
  bool out(int64_t now, uint16_t& word) const {
    for (int k = 0; k < HISTORY - 1; ++k) {
      const Launch& last = launches_[k];
      if (now < last.at) continue;
      if (last.drives && now >= last.at + (cl_ == 2 ? p_.ac2 : p_.ac3)) return word = last.word, true;
      const Launch& before = launches_[k + 1];
      return before.drives && now < last.at + p_.oh ? (word = before.word, true) : false;
    }
    return false;
  }

 private:
  static constexpr int HISTORY = 4, DUE = 16;
  static constexpr int64_t NEVER = INT64_MIN / 4;
  struct Launch { int64_t at = NEVER; bool drives = false; uint16_t word = 0; };
  struct Due { bool there = false; std::size_t from = 0; };
  struct Bank { bool open = false; uint32_t row = 0; int64_t activated = NEVER, precharged = NEVER; };

  void complain(const char* of) {
    if (!complaints_++) first_ = std::string(of) + " at " + std::to_string(edge_ / 1000) + " ns";
  }
  void held(int64_t is, int64_t least, const char* of) { if (is < least) complain(of); }

  std::size_t at(int k) const {
    const uint32_t column = (column_ & ~uint32_t{BURST - 1}) | ((column_ + k) & (BURST - 1));
    return ((static_cast<std::size_t>(banks_[bank_].row) << p_.bank_bits | bank_) << p_.column_bits) | column;
  }

  void launch(int64_t now, bool drives, uint16_t word) {
    std::copy_backward(launches_, launches_ + HISTORY - 1, launches_ + HISTORY);
    launches_[0] = {now, drives, word};
    if (drives && pins_.dq_oe) complain("both sides drive DQ");
  }
  bool drives(int64_t now) const { return launches_[0].drives || (launches_[1].drives && now < launches_[0].at + p_.hz); }

  void obey(int64_t now, const SdramPins& pins) {
    if (pins.command == NOP) return;
    held(now - refresh_at_, p_.rfc, "tRFC");
    held(now - mode_at_, p_.mrd, "tMRD");
    held(clock_ - mode_clock_, p_.mrd_clocks, "tMRD in clocks");
    held(now - begun_, p_.pause, "the pause after power-up");
    Bank& bank = banks_[pins.bank];
    switch (pins.command) {
      case ACTIVE: {
        if (!set_) complain("activate before the mode register is set");
        if (bank.open) complain("activate of an open bank");
        held(now - bank.precharged, p_.rp, "tRP");
        held(now - bank.activated, p_.rc, "tRC");
        for (const Bank& other : banks_) if (&other != &bank) held(now - other.activated, p_.rrd, "tRRD");
        bank.open = true;
        bank.row = pins.address;
        bank.activated = now;
        ++activates_;
        break;
      }
      case READ:
      case WRITE: {
        if (!bank.open) complain("access to a closed bank");
        held(now - bank.activated, p_.rcd, "tRCD");
        if (pins.address & 1u << 10) complain("auto precharge");
        if ((pins.address & ~(1u << 10)) >> p_.column_bits) complain("a column that is not there");
        if (busy()) complain("a burst is cut short");
        bank_ = pins.bank;
        column_ = pins.address & ((1u << p_.column_bits) - 1);
        ++bursts_;
        if (pins.command == WRITE) writing_ = BURST;
        else if (pins.mask) complain("a read that is masked");
        else {
          for (int k = 0; k < BURST; ++k) due_[(clock_ + cl_ - 1 + k) % DUE] = {true, at(k)};
          read_until_ = clock_ + BURST;
        }
        break;
      }
      case PRECHARGE: {
        const bool all = pins.address & 1u << 10;
        if (busy() && (all || pins.bank == bank_)) complain("a burst is cut short");
        for (uint32_t k = 0; k < banks_.size(); ++k) if (all || k == pins.bank) {
          Bank& one = banks_[k];
          if (one.open) {
            held(now - one.activated, p_.ras, "tRAS");
            if (now - one.activated > p_.ras_max) complain("tRAS, the longest");
            if (k == bank_) held(now - written_, p_.wr, "tWR");
            one.precharged = now;
          } else if (!set_) {
            one.precharged = now;
          }
          one.open = false;
        }
        if (all) precharged_all_ = true;
        break;
      }
      case REFRESH: {
        for (const Bank& one : banks_) {
          if (one.open) complain("refresh of an open bank");
          held(now - one.precharged, p_.rp, "tRP before a refresh");
        }
        if (!precharged_all_) complain("refresh before all banks are precharged");
        refresh_at_ = now;
        ++refreshed_;
        last_.push_back(now);
        if (static_cast<int64_t>(last_.size()) > p_.refreshes) {
          if (now - last_.front() > p_.refresh_window) complain("tREF: not all rows are refreshed in time");
          last_.pop_front();
        }
        break;
      }
      case MODE: {
        for (const Bank& one : banks_) {
          if (one.open) complain("mode register set with an open bank");
          held(now - one.precharged, p_.rp, "tRP before the mode register is set");
        }
        if (refreshed_ < 8) complain("fewer than eight refreshes before the mode register is set");
        cl_ = pins.address >> 4 & 7;
        if (cl_ != 2 && cl_ != 3) complain("a CAS latency that it has not got"), cl_ = 3;
        if ((pins.address & ~0x70u) != 3 || pins.bank) complain("a mode that is not bursts of eight in sequence");
        set_ = true;
        counted_from_ = now;
        counted_ = 0;
        mode_at_ = now;
        mode_clock_ = clock_;
        return;
      }
      default: complain("a command that is none");
    }
    if (pins.command == REFRESH && set_) ++counted_;
  }

  // Clocks are left in a burst: a read of eight may be followed from the eighth clock on.
  bool busy() const { return writing_ > 0 || clock_ < read_until_; }

  // Refreshes may wait for a moment, not for long: at most one of them is late.
  void overdue(int64_t now) {
    if (!set_ || now < next_check_) return;
    next_check_ = now + p_.refresh_window / p_.refreshes;
    if (counted_ + 1 < (now - counted_from_) / (p_.refresh_window / p_.refreshes)) complain("tREFI: refreshes are missing");
  }

  const SdramPart p_;
  std::vector<Bank> banks_;
  std::vector<uint16_t> words_;
  SdramPins pins_;
  Launch launches_[HISTORY];             // at its last clock edges, the last one first
  Due due_[DUE];                         // words that are to be launched, by the clock
  std::deque<int64_t> last_;             // refreshes
  std::string first_;
  uint64_t complaints_ = 0, refreshed_ = 0, activates_ = 0, bursts_ = 0;
  int64_t clock_ = 0, edge_ = -1, changed_ = -1, begun_ = 0, written_ = NEVER, refresh_at_ = NEVER, mode_at_ = NEVER;
  int64_t mode_clock_ = NEVER, read_until_ = 0, counted_from_ = 0, counted_ = 0, next_check_ = 0;
  int64_t cl_ = 3;
  int writing_ = 0;                      // words that are to come
  uint32_t bank_ = 0, column_ = 0;       // of the burst
  bool cke_ = false, set_ = false, precharged_all_ = false;
};

struct SdramDelays {   // ps
  int64_t out;         // the FPGA's clock edge to its pins' change at the memory
  int64_t clock;       // half a clock and so much more to the memory's clock edge
  int64_t in;          // the memory's pins to the FPGA's flip-flops
  int64_t window;      // before and after its clock edge an input must be stable for so long
};

// The FPGA's clock is the inverse of the memory's.
class SdramBoard {
 public:
  SdramBoard(const SdramPart& part, int64_t clock_hz, const SdramDelays& delays)
      : chip(part), clock_hz_(clock_hz), d_(delays) {}

  // One clock edge of the FPGA: what its I/O cells take for the pins; what they give from now on.
  uint16_t clock(const SdramPins& pins) {
    const int64_t now = ps(edges_);
    uint16_t before = 0, after = 0;
    const bool sure = chip.out(now - d_.in - d_.window, before) && chip.out(now - d_.in + d_.window, after) && before == after;
    chip.change(now + d_.out, pins);
    chip.rise((now + ps(++edges_)) / 2 + d_.clock);
    return sure ? before : static_cast<uint16_t>(random_ = random_ * 1664525u + 1013904223u);
  }

  SdramChip chip;

 private:
  int64_t ps(int64_t edge) const { return static_cast<int64_t>(static_cast<__int128>(edge) * 1'000'000'000'000 / clock_hz_); }

  const int64_t clock_hz_;
  const SdramDelays d_;
  int64_t edges_ = 0;
  uint32_t random_ = 1;
};

#ifdef SDRAM_LIBRARY
#pragma GCC visibility push(default)
extern "C" {
SdramBoard* chip_new(const SdramPart* part, int64_t clock_hz, const SdramDelays* delays) {
  return new SdramBoard(*part, clock_hz, *delays);
}
void chip_free(SdramBoard* b) { delete b; }
uint32_t chip_clock(SdramBoard* b, const SdramPins* pins) { return b->clock(*pins); }
uint64_t chip_complaints(const SdramBoard* b) { return b->chip.complaints(); }
const char* chip_first(const SdramBoard* b) { return b->chip.first().c_str(); }
uint64_t chip_count(const SdramBoard* b, int which) {
  return which == 0 ? b->chip.activates() : which == 1 ? b->chip.refreshes() : b->chip.bursts();
}
}
#endif

#endif
