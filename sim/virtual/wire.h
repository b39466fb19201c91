// A wire between two verilated boards: the changes of one board's sync_out, on their way to another's sync_in.
//
// Boards in one process tell each other of changes. Boards of two processes have a pipe. A record in it is a Change; the
// first says that the time of the board that leads has begun, which is time 0 of all.

#pragma once

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <poll.h>
#include <unistd.h>

struct Change {
  enum : int64_t { LOW = 0, HIGH = 1, BEGUN = 2 };

  int64_t ps;       // of the common time
  int64_t what;

  // False if nobody reads any more.
  bool write(int file) const {
    ssize_t done;
    do done = ::write(file, this, sizeof *this);
    while (done < 0 && errno == EINTR);
    return done == sizeof *this;
  }
};

// The far end of a pipe.
//
// When the process that leads has ended, its board still has power: the wave continues with its mean period.
class WaveReader {
 public:
  explicit WaveReader(int file = -1) : file_(file) {}

  bool open() const { return file_ >= 0; }
  bool begun() const { return begun_; }
  // All changes before this time are known.
  int64_t known() const { return known_; }

  // The next change before a time.
  bool take(int64_t before, Change& change) {
    if (changes_.empty() || changes_.front().ps >= before) return false;
    change = changes_.front();
    changes_.pop_front();
    return true;
  }

  // Waits for at most this number of milliseconds; -1: until something comes. True if something has come.
  bool fetch(int wait_ms) {
    if (ended_) {
      more();
      return true;
    }
    pollfd ready{file_, POLLIN, 0};
    if (::poll(&ready, 1, wait_ms) <= 0) return false;
    const ssize_t got = ::read(file_, reinterpret_cast<char*>(buffer_) + held_, sizeof buffer_ - held_);
    if (got < 0) return false;
    if (got == 0) ended_ = true;
    held_ += static_cast<std::size_t>(got);
    const std::size_t whole = held_ / sizeof(Change);
    for (std::size_t i = 0; i < whole; ++i) enter(buffer_[i]);
    held_ -= whole * sizeof(Change);
    std::memmove(buffer_, buffer_ + whole, held_);
    return true;
  }

 private:
  static constexpr std::size_t RECENT = 65;     // changes over which the period is averaged, and one

  void enter(const Change& change) {
    if (change.what == Change::BEGUN) {
      begun_ = true;
      return;
    }
    changes_.push_back(change);
    known_ = change.ps;
    recent_.push_back(change);
    if (recent_.size() > RECENT) recent_.pop_front();
  }

  void more() {
    if (recent_.size() < 2) {   // there was no wave
      known_ = std::numeric_limits<int64_t>::max() / 2;
      return;
    }
    const int64_t spans = static_cast<int64_t>(recent_.size()) - 1;
    const Change& last = recent_.back();
    enter({last.ps + (last.ps - recent_.front().ps) / spans, Change::HIGH - last.what});
  }

  int file_;
  bool begun_ = false, ended_ = false;
  int64_t known_ = 0;
  std::deque<Change> changes_, recent_;
  Change buffer_[256];
  std::size_t held_ = 0;
};
