// The verilated board with a USB link, its stimulus, and a USB host at the other end of the cable.
//
// sim/virtual/usb_board.py is the only caller of the C functions at the end, and says what each means. What is
// defined is said in player.h.

#include "Vboard.h"
#include "verilated.h"
#ifdef CLOCK_SEEN
#include "Vboard___024root.h"
#define USB_CLOCK_SEEN __Vtrigprevexpr___TOP__usb_clk__0
#endif

#include "player.h"
#ifdef ULPI
#include "usb/ulpi_phy.h"
#endif
#ifdef PINS
#include "usb/pads_phy.h"
#endif
#include "usb/usb_host.h"

#include <cstring>

#ifndef RUNNING_LATE
#define RUNNING_LATE 0
#endif

namespace {

constexpr uint64_t USB_HZ = 60'000'000;
#ifdef ULPI
constexpr int POWER_UP = 100'000;  // the device leaves its PHY alone for a millisecond
#else
constexpr int POWER_UP = 512;  // memories are cleared
#endif

// The board on the PHY's side: members named as UsbHost wants them.
class Phy {
  VerilatedContext context_;
  Vboard top_{&context_};

 public:
  Phy(uint64_t seed, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
      const uint16_t* initial)
      : player_(top_, seed, 0, rows, time, node, port, initial), behind_(seed % USB_HZ) {
    top_.rst = top_.usb_rst = 1;
    for (int i = 0; i < 8; ++i) clock();
    top_.rst = top_.usb_rst = 0;
    for (int i = 0; i < POWER_UP; ++i) clock();
  }
  ~Phy() { top_.final(); }

#if defined(ULPI) || defined(PINS)
 private:
#ifdef ULPI
  UlpiPhy<Vboard> phy_{top_};
#else
  PadsPhy<Vboard> phy_{top_};
#endif

 public:
  uint8_t &line_state = phy_.line_state, &rx_active = phy_.rx_active, &rx_valid = phy_.rx_valid,
          &rx_data = phy_.rx_data, &tx_ready = phy_.tx_ready, &session_end = phy_.session_end;
  const uint8_t &tx_valid = phy_.tx_valid, &tx_data = phy_.tx_data, &xcvr_select = phy_.xcvr_select,
                &term_select = phy_.term_select, &op_mode = phy_.op_mode;
#else
  uint8_t &line_state = top_.utmi_line_state, &rx_active = top_.utmi_rx_active, &rx_valid = top_.utmi_rx_valid,
          &rx_data = top_.utmi_rx_data, &tx_ready = top_.utmi_tx_ready, &session_end = top_.utmi_session_end;
  const uint8_t &tx_valid = top_.utmi_tx_valid, &tx_data = top_.utmi_tx_data, &xcvr_select = top_.utmi_xcvr_select,
                &term_select = top_.utmi_term_select, &op_mode = top_.utmi_op_mode;
#endif

  // One clock of the bus, after those of the board that are due.
  void clock() {
#ifdef PINS
    phy_.clock([this] { tick(); });
#else
    for (behind_ += CLOCK; behind_ >= USB_HZ; behind_ -= USB_HZ) capture();
#ifdef ULPI
    phy_.before();
    rise(top_.usb_clk, USB_SEEN);
    top_.eval();
    phy_.behind();
#else
    rise(top_.usb_clk, USB_SEEN);
#endif
#endif
  }

  int64_t edge() const { return started_ ? edge_ : 0; }
  // Whether the stimulus has been played.
  bool played() const { return player_.next() == NEVER && !player_.owes(); }

 private:
  void capture() {
    if (!started_ && top_.running) {
      started_ = true;
      edge_ = RUNNING_LATE;
    }
    if (started_ && player_.due(edge_)) player_.play(edge_);
    rise(top_.clk, CAPTURE_SEEN);
    if (started_) ++edge_;
  }

#ifdef PINS
  // One clock of 48 MHz, and every fourth time one of 12 MHz in phase with it, after those of the board that are due.
  void tick() {
    for (behind_ += CLOCK; behind_ >= IO_HZ; behind_ -= IO_HZ) capture();
    const bool fourth = ++ticks_ % 4 == 0;
    top_.usb_io_clk = 0;
    if (fourth) top_.usb_clk = 0;
    top_.eval();
    top_.usb_io_clk = 1;
    if (fourth) top_.usb_clk = 1;
    top_.eval();
  }
#endif

  // One rising edge; see board.cpp.
  enum Seen { CAPTURE_SEEN, USB_SEEN };
  void rise(uint8_t& clock, Seen which) {
#ifdef CLOCK_SEEN
    if (risen_[which]) {
      (which == USB_SEEN ? top_.rootp->USB_CLOCK_SEEN : top_.rootp->CLOCK_SEEN) = 0;
      Vboard___024root___eval(top_.rootp);
      return;
    }
    risen_[which] = true;
#endif
    clock = 0;
    top_.eval();
    clock = 1;
    top_.eval();
  }

  Player<Vboard> player_;
  uint64_t behind_;
#ifdef PINS
  static constexpr uint64_t IO_HZ = 48'000'000;
  unsigned ticks_ = 0;
#endif
  bool started_ = false;
  bool risen_[2] = {};
  int64_t edge_ = 0;
};

struct UsbBoard {
  Phy phy;
  UsbHost<Phy> host{phy};
  Transfer last{};
};

}  // namespace

#pragma GCC visibility push(default)
extern "C" {
UsbBoard* usb_new(uint64_t seed, uint64_t rows, const int64_t* time, const int16_t* node, const uint16_t* port,
                  const uint16_t* initial) {
  return new UsbBoard{{seed, rows, time, node, port, initial}};
}
void usb_free(UsbBoard* b) { delete b; }
int usb_reset(UsbBoard* b, int answer) {
  b->host.reset(answer);
  return b->host.high();
}
void usb_suspend(UsbBoard* b) { b->host.suspend(); }
void usb_resume(UsbBoard* b) { b->host.resume(); }
void usb_detach(UsbBoard* b) { b->host.detach(); }
void usb_faults(UsbBoard* b, const Faults* faults, uint64_t seed) { b->host.faults(*faults, seed); }
void usb_submit(UsbBoard* b, uint64_t id, int endpoint, const uint8_t* setup, const uint8_t* data, uint32_t size,
                uint32_t length) {
  Transfer transfer{};
  transfer.id = id;
  transfer.endpoint = endpoint;
  if (setup) std::copy_n(setup, 8, transfer.setup.begin());
  if (data) transfer.data.assign(data, data + size);
  transfer.length = length;
  b->host.submit(std::move(transfer));
}
int usb_cancel(UsbBoard* b, uint64_t id) { return b->host.cancel(id); }
void usb_run(UsbBoard* b, uint64_t clocks) { b->host.run(clocks); }
int usb_take(UsbBoard* b, uint64_t* id, int32_t* status, const uint8_t** data, uint64_t* size) {
  if (!b->host.over()) return 0;
  b->last = b->host.take();
  *id = b->last.id;
  *status = b->last.status;
  *data = b->last.data.data();
  *size = b->last.data.size();
  return 1;
}
uint64_t usb_exchange(UsbBoard* b, const uint8_t* packet, uint64_t size, uint8_t* answer, uint64_t room) {
  const Bytes got = b->host.exchange(Bytes(packet, packet + size));
  std::copy_n(got.begin(), std::min<std::size_t>(got.size(), room), answer);
  return got.size();
}
void usb_counts(const UsbBoard* b, Counts* counts) { *counts = b->host.counts(); }
int64_t usb_edge(const UsbBoard* b) { return b->phy.edge(); }
int usb_played(const UsbBoard* b) { return b->phy.played(); }
}
