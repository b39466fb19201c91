// A ULPI PHY (UTMI+ Low Pin Interface 1.1) between a board and `UsbHost`, which sees it as one at UTMI.
//
// It has one register, FUNCTION_CONTROL; VBUS is always there.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

template <class Top> class UlpiPhy {
 public:
  explicit UlpiPhy(Top& top) : top_(top) { look(); }

  // As of UTMI: what the host sets, and what it looks at.
  uint8_t line_state = 1, rx_active = 0, rx_valid = 0, rx_data = 0, tx_ready = 0, session_end = 0;
  uint8_t tx_valid = 0, tx_data = 0, xcvr_select = 1, term_select = 0, op_mode = 0;

  // To be called before and after each rising edge of the clock.
  void before() {
    if (line_state != said_state_ || rx_active != said_active_) {
      // A packet's first byte comes after the rest of SYNC.
      const int times = rx_active > said_active_ ? 4 : 1;
      said_state_ = line_state;
      said_active_ = rx_active;
      to_link_.insert(to_link_.end(), times, {false, command()});
    }
    if (rx_valid) to_link_.push_back({true, rx_data});
    const Item item = state_ == RX && !to_link_.empty() ? to_link_.front() : Item{false, command()};
    top_.ulpi_dir_i = state_ == TURN || state_ == RX;
    top_.ulpi_data_i = state_ == RX ? item.byte : 0;
    top_.ulpi_nxt_i = state_ == RX ? item.data : state_ == ADDRESS || state_ == VALUE || (state_ == TX && tx_ready);
    top_.eval();
    next(top_.ulpi_data_o, top_.ulpi_stp_o);
  }
  void behind() {
    tx_valid = state_ == TX && !top_.ulpi_stp_o;
    if (!tx_valid) return;
    const uint8_t byte = top_.ulpi_data_o, kind = byte & 15;
    // The first byte has a PID; none in a chirp.
    tx_data = !first_ ? byte : kind ? static_cast<uint8_t>(kind | (~kind & 15) << 4) : 0;
  }

 private:
  enum State { IDLE, ADDRESS, VALUE, TX, TURN, RX, BACK };
  struct Item {
    bool data;
    uint8_t byte;
  };
  static constexpr unsigned FUNCTION_CONTROL = 4;

  // RXCMD: VBUS is valid.
  uint8_t command() const { return static_cast<uint8_t>(said_state_ | (session_end ? 0 : 3) << 2 | said_active_ << 4); }

  void look() {
    const uint8_t control = registers_[FUNCTION_CONTROL];
    xcvr_select = control & 3;
    term_select = control >> 2 & 1;
    op_mode = control >> 3 & 3;
  }

  void next(uint8_t out, bool stop) {
    switch (state_) {
      case IDLE:
        if (out >> 6 == 2) {
          state_ = ADDRESS;
          address_ = out & 63;
        } else if (out >> 6 == 1) {
          state_ = TX;
          first_ = true;
        } else if (!to_link_.empty()) {
          state_ = TURN;
        }
        return;
      case ADDRESS:
        state_ = VALUE;
        return;
      case VALUE:
        registers_[address_] = out;
        look();
        state_ = IDLE;
        return;
      case TX:
        if (stop) state_ = IDLE;
        else if (tx_ready) first_ = false;
        return;
      case TURN:
        state_ = RX;
        return;
      case RX:
        if (!to_link_.empty()) to_link_.pop_front();
        if (to_link_.empty() && !rx_active) state_ = BACK;
        return;
      case BACK:
        state_ = IDLE;
    }
  }

  Top& top_;
  State state_ = IDLE;
  bool first_ = false;
  unsigned address_ = 0;
  std::array<uint8_t, 64> registers_{0, 0, 0, 0, 0x41};
  std::deque<Item> to_link_;
  uint8_t said_state_ = 0xff, said_active_ = 0;
};
