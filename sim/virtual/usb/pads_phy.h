// D+ and D- of a full-speed device without a PHY, between its pads and `UsbHost`, which sees it as one at UTMI.
//
// Packets are kept and passed on whole, bit by bit with NRZI and stuffing: while the host model is in the middle of
// one, the board's time stops, so that what the board sees is as tight as on a cable. Of a reset, the board sees the
// first 200 us; a frame may be longer than a millisecond.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

template <class Top> class PadsPhy {
 public:
  explicit PadsPhy(Top& top) : top_(top) { idle(); }

  // As of UTMI: what the host sets, and what it looks at.
  uint8_t line_state = 1, rx_active = 0, rx_valid = 0, rx_data = 0, tx_ready = 0, session_end = 0;
  uint8_t tx_valid = 0, tx_data = 0, xcvr_select = 1, term_select = 1, op_mode = 0;

  // A clock of the host's, of 60 MHz. `tick` : makes one of the board's usb_io.
  template <class Tick> void clock(Tick tick) {
    if (rx_active) {
      if (rx_valid) packet_.push_back(rx_data);
    } else if (!packet_.empty()) {
      transmit(tick);
      packet_.clear();
      listen(tick);
    } else if (!reply_.empty()) {
      if (tx_ready) reply_.pop_front();
    } else if (line_state != K) {
      pass(tick);
    }
    tx_valid = !reply_.empty();
    tx_data = tx_valid ? reply_.front() : 0;
  }

 private:
  enum Line { SE0, J, K };
  static constexpr int TICKS = 4;                          // of usb_io a bit
  static constexpr int EOP = 100, RESET = 12'000;          // clocks of SE0: one, and what is seen of a reset
  static constexpr int PATIENCE = 24, LONGEST = 12'000;    // bits: for an answer to begin, and for it to end

  void drive(Line line) {
    top_.usb_d_p_i = line == J;
    top_.usb_d_n_i = line == K;
  }
  void idle() { drive(top_.usb_pullup_o && !session_end ? J : SE0); }

  // Time goes on, with nothing on the bus, or a reset.
  template <class Tick> void pass(Tick tick) {
    low_ = line_state == SE0 ? low_ + 1 : 0;
    if (low_ && (low_ < EOP || low_ > RESET)) return;
    if (low_) drive(SE0);
    else idle();
    for (owed_ += 48; owed_ >= 60; owed_ -= 60) tick();
  }

  template <class Tick> void send(Line line, int bits, Tick tick) {
    drive(line);
    for (int i = 0; i < bits * TICKS; ++i) tick();
  }
  template <class Tick> void transmit(Tick tick) {
    Line line = J;
    int ones = 0;
    const auto bit = [&](bool one) {
      if (!one) line = line == J ? K : J;
      send(line, 1, tick);
      ones = one ? ones + 1 : 0;
    };
    packet_.insert(packet_.begin(), 0x80);                 // SYNC
    for (const uint8_t byte : packet_) {
      for (int i = 0; i < 8; ++i) {
        bit(byte >> i & 1);
        if (ones == 6) bit(false);
      }
    }
    send(SE0, 2, tick);
    send(J, 1, tick);
  }

  template <class Tick> void listen(Tick tick) {
    idle();
    for (int i = 0; !top_.usb_d_p_oe; ++i) {
      if (i == PATIENCE * TICKS) return;
      tick();
    }
    std::vector<Line> seen;
    while (top_.usb_d_p_oe && seen.size() < LONGEST * TICKS) {
      const Line line = top_.usb_d_p_o ? J : top_.usb_d_n_o ? K : SE0;
      seen.push_back(line);
      drive(line);
      tick();
    }
    idle();
    decode(seen);
  }

  // Runs of one level are as many bits as fit: first a 0, unless it is the level before the packet, then ones.
  void decode(const std::vector<Line>& seen) {
    std::vector<bool> bits;
    int ones = 0;
    for (std::size_t at = 0; at < seen.size();) {
      const std::size_t from = at;
      while (at < seen.size() && seen[at] == seen[from]) ++at;
      if (seen[from] == SE0) break;
      if (bits.empty() && seen[from] == J) continue;
      for (int n = static_cast<int>((at - from + TICKS / 2) / TICKS), k = 0; k < n; ++k) {
        const bool stuffed = ones == 6;
        ones = k ? ones + 1 : 0;
        if (!stuffed) bits.push_back(k);
      }
    }
    for (std::size_t at = 8; at + 8 <= bits.size(); at += 8) {
      uint8_t byte = 0;
      for (int i = 0; i < 8; ++i) byte = static_cast<uint8_t>(byte | bits[at + i] << i);
      reply_.push_back(byte);
    }
  }

  Top& top_;
  std::vector<uint8_t> packet_;
  std::deque<uint8_t> reply_;
  int low_ = 0, owed_ = 0;
};
