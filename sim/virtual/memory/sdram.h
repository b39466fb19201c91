// An SDRAM and its controller, as a memory at the burst port of hdl/stream/external_fifo.py: what they take
// in time, and what they hold.
//
// Single data rate, four banks, one row open in each; commands are carried out one after the other.
// A burst lies in one row. All it says is a function of what it has seen at earlier clock edges.

#ifndef HYPERMON_SDRAM_H
#define HYPERMON_SDRAM_H

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <vector>

struct SdramTiming {       // in clocks
  int32_t beat;            // of the data bus for 16 bytes: 8 with 16 pins
  int32_t activate;        // tRCD: from opening a row to using it
  int32_t precharge;       // tRP: closing a row
  int32_t latency;         // CL: from a read to its data
  int32_t turn;            // between the last beat written and a read
  int32_t refresh;         // tRFC: one refresh
  int32_t interval;        // tREFI: from one refresh to the next; 0: none
  int32_t row;             // bursts a row
};

class Sdram {
 public:
  using Beat = std::array<uint64_t, 2>;

  Sdram(const SdramTiming& timing, int32_t burst) : t_(timing), burst_(burst) { until_refresh_ = timing.interval; }

  bool command_ready() const { return commands_.size() < 4; }
  bool write_ready() const { return state_ == WRITE && !wait_; }
  bool read_valid() const { return shows_; }
  const Beat& read_data() const { return beat_; }

  // One clock edge: what the other side gives at it. A command or a beat counts only if it was ready for it.
  void clock(bool command, bool write, uint64_t burst, bool data, const Beat& beat) {
    const bool takes = command && command_ready();
    const bool fills = data && write_ready();
    shows_ = false;
    if (t_.interval && --until_refresh_ <= 0) {
      ++refreshes_due_;
      until_refresh_ = t_.interval;
    }
    if (wait_) {
      --wait_;
    } else if (state_ == IDLE) {
      begin();
    } else if (state_ == WRITE && fills) {
      row_of(now_.burst)[at_++] = beat;
      finish(t_.beat - 1);
    } else if (state_ == READ) {
      beat_ = row_of(now_.burst)[at_++];
      shows_ = true;
      finish(t_.beat - 1);
    }
    if (takes) commands_.push_back({write, burst});
  }

  uint64_t rows_opened = 0, refreshes = 0, bursts_written = 0, bursts_read = 0;

 private:
  struct Command { bool write; uint64_t burst; };
  enum State { IDLE, WRITE, READ };

  void begin() {
    if (refreshes_due_) {
      bool any = false;
      for (auto& open : open_) {
        any |= open >= 0;
        open = -1;
      }
      wait_ = t_.refresh + (any ? t_.precharge : 0) - 1;
      --refreshes_due_;
      ++refreshes;
      return;
    }
    if (commands_.empty()) return;
    now_ = commands_.front();
    const int64_t row = static_cast<int64_t>(now_.burst) / t_.row;
    int64_t& open = open_[row % 4];
    int delay = 0;
    if (open != row) {
      delay = t_.activate + (open >= 0 ? t_.precharge : 0);
      open = row;
      ++rows_opened;
    }
    commands_.pop_front();
    at_ = 0;
    if (now_.write) {
      ++bursts_written;
      state_ = WRITE;
    } else {
      ++bursts_read;
      state_ = READ;
      delay += t_.latency + (wrote_ ? t_.turn : 0);
    }
    wrote_ = now_.write;
    wait_ = delay;
  }

  void finish(int pause) {
    wait_ = pause;
    if (at_ == static_cast<std::size_t>(burst_)) state_ = IDLE;
  }

  std::vector<Beat>& row_of(uint64_t burst) {
    auto& beats = memory_[burst];
    if (beats.empty()) beats.resize(burst_);
    return beats;
  }

  const SdramTiming t_;
  const int32_t burst_;
  std::unordered_map<uint64_t, std::vector<Beat>> memory_;
  std::deque<Command> commands_;
  Command now_{};
  State state_ = IDLE;
  std::size_t at_ = 0;
  int64_t wait_ = 0, until_refresh_ = 0, refreshes_due_ = 0;
  int64_t open_[4] = {-1, -1, -1, -1};
  bool wrote_ = false, shows_ = false;
  Beat beat_{};
};

#ifdef SDRAM_LIBRARY
#pragma GCC visibility push(default)
extern "C" {
Sdram* sdram_new(const SdramTiming* timing, int32_t burst) { return new Sdram(*timing, burst); }
void sdram_free(Sdram* s) { delete s; }
int sdram_command_ready(const Sdram* s) { return s->command_ready(); }
int sdram_write_ready(const Sdram* s) { return s->write_ready(); }
int sdram_read_valid(const Sdram* s) { return s->read_valid(); }
void sdram_read_data(const Sdram* s, void* beat) { std::memcpy(beat, s->read_data().data(), 16); }
void sdram_clock(Sdram* s, int command, int write, uint64_t burst, int data, const void* beat) {
  Sdram::Beat words;
  std::memcpy(words.data(), beat, 16);
  s->clock(command, write, burst, data, words);
}
uint64_t sdram_count(const Sdram* s, int which) {
  return which == 0 ? s->rows_opened : which == 1 ? s->refreshes : which == 2 ? s->bursts_written : s->bursts_read;
}
}
#endif

#endif
