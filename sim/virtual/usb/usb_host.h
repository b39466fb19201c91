// A USB 2.0 host and a PHY, as a device on an 8-bit UTMI bus at 60 MHz sees them.
//
// The host does on the bus what a host controller does: reset with the chirps of high speed, SOF,
// tokens, data, handshakes, retries, and transfers of a queue. Times are those of USB 2.0, chapters 5
// and 7, in byte times of high speed, which are clocks here: 32 bits of SYNC, 8 of EOP, 88 between two
// packets of the host. A byte at full speed takes 40 clocks; stuffed bits are left out.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

using Bytes = std::vector<uint8_t>;

enum Pid : uint8_t {
  OUT = 0x1, ACK = 0x2, DATA0 = 0x3, PING = 0x4, SOF = 0x5, NYET = 0x6, IN = 0x9, NAK = 0xa, DATA1 = 0xb, SETUP = 0xd,
  STALL = 0xe,
};

// How a transfer ended, or that it has not.
enum Status : int32_t { PENDING = -1, DONE = 0, STALLED = 1, FAILED = 2, BABBLE = 3, CANCELLED = 4 };

struct Transfer {
  uint64_t id;
  int endpoint;                   // with bit 7: IN; 0: control
  std::array<uint8_t, 8> setup;
  Bytes data;                     // of OUT; else what has come
  uint32_t length;
  Status status = PENDING;
  // How far a control transfer is.
  enum Stage { BEGIN, DATA, END } stage = BEGIN;
  uint32_t at = 0;
  int errors = 0;
};

// Chances, in millionths.
struct Faults {
  uint32_t drop_ack, corrupt_in, corrupt_out, foreign;
};

struct Counts {
  uint64_t clocks, frames, in, naks, timeouts, bad, repeated, stalls, bytes, dropped;
};

// `Phy` has `line_state`, `rx_active`, `rx_valid`, `rx_data`, `tx_ready`, `session_end` to be set, `tx_valid`,
// `tx_data`, `xcvr_select`, `term_select`, `op_mode` to be looked at, and `clock()`.
template <class Phy> class UsbHost {
 public:
  explicit UsbHost(Phy& phy) : phy_(phy) { lines(J); }

  bool high() const { return high_; }
  const Counts& counts() const { return counts_; }
  void faults(const Faults& faults, uint64_t seed) { faults_ = faults, random_ = seed | 1; }

  // Resets the bus; `answer`: chirps back, as a host does that knows high speed. Everything queued has failed.
  void reset(bool answer) {
    fail();
    lines(SE0);
    address_ = 0;
    toggles_ = {};
    bool chirp = false;
    for (int i = 0; i < 8 * MS && !chirp; ++i) {
      clock();
      chirp = phy_.op_mode == 2 && phy_.tx_valid;
    }
    if (chirp) {
      lines(K);
      phy_.tx_ready = 1;
      while (phy_.tx_valid) clock();
      phy_.tx_ready = 0;
      lines(SE0);
    }
    if (chirp && answer) {
      idle(10 * US);
      for (int i = 0; i < 6; ++i) {
        lines(K);
        idle(50 * US);
        lines(J);
        idle(50 * US);
      }
      lines(SE0);
      idle(10 * US);
    } else {
      idle(4 * MS);
    }
    high_ = chirp && answer && phy_.xcvr_select == 0 && phy_.term_select == 0;
    quiet();
    idle(100 * US);
    begun_ = counts_.clocks;
    running_ = true;
    start_frame();
  }

  // No traffic for so long that the device suspends; `resume` ends it.
  void suspend() {
    running_ = false;
    lines(high_ ? SE0 : J);
    if (high_) idle(3 * MS + 10 * US);
    lines(J);
    idle(4 * MS);
  }
  void resume() {
    // The specification's 20 ms are for slow devices; this one acts at their beginning.
    lines(K);
    idle(MS);
    lines(SE0);
    idle(2);
    quiet();
    begun_ = counts_.clocks;
    running_ = true;
    start_frame();
  }
  // The cable is pulled out; `reset` ends it.
  void detach() {
    fail();
    running_ = false;
    phy_.session_end = 1;
    lines(SE0);
    idle(MS);
    phy_.session_end = 0;
    lines(J);
    high_ = false;
    idle(MS);
  }

  void submit(Transfer&& transfer) { queue(transfer.endpoint).push_back(std::move(transfer)); }
  // Whether it was still queued. What has come so far is with it.
  bool cancel(uint64_t id) {
    for (auto& waiting : queues_) {
      for (auto it = waiting.begin(); it != waiting.end(); ++it) {
        if (it->id != id) continue;
        it->status = CANCELLED;
        counts_.dropped += it->endpoint & 0x80 ? it->data.size() : 0;
        ended_.push_back(std::move(*it));
        waiting.erase(it);
        return true;
      }
    }
    return false;
  }
  bool over() const { return !ended_.empty(); }
  Transfer take() {
    Transfer first = std::move(ended_.front());
    ended_.pop_front();
    return first;
  }

  // The bus goes on for the given number of clocks, or until a transfer has ended.
  void run(uint64_t clocks) {
    for (const uint64_t stop = counts_.clocks + clocks; counts_.clocks < stop && ended_.empty();) {
      if (!running_) {
        idle(std::min<uint64_t>(stop - counts_.clocks, US));
        continue;
      }
      frame(0);
      bool moved = false;
      for (unsigned k = 0; k < queues_.size() && ended_.empty(); ++k) {
        if (queues_[k].empty()) continue;
        moved = true;
        Transfer& first = queues_[k].front();
        first.endpoint ? bulk(first) : control(first);
        if (first.status == PENDING) continue;
        ended_.push_back(std::move(first));
        queues_[k].pop_front();
      }
      if (!moved) idle(std::min<uint64_t>({stop - counts_.clocks, begun_ + period() - counts_.clocks, US}));
    }
  }

  // One packet as it is, and what answers it; for malformed ones.
  Bytes exchange(const Bytes& packet) {
    frame(SPARE);
    send(packet);
    Bytes answer;
    receive(answer);
    return answer;
  }

 private:
  static constexpr int US = 60, MS = 60'000;
  static constexpr int SE0 = 0, J = 1, K = 2;
  static constexpr int SYNC = 4, LEAD = 2, GAP = 11;
  // The longest transaction at either speed; none is begun that does not fit into its frame.
  static constexpr uint64_t SPARE = 577, SPARE_FULL = 4800;
  // A host gives up after this number of errors in a row (USB 2.0, 10.2.6).
  static constexpr int TRIES = 3;

  uint64_t period() const { return high_ ? 7'500 : MS; }
  int step() const { return high_ ? 1 : 40; }
  std::deque<Transfer>& queue(int endpoint) { return queues_[endpoint ? 1 : 0]; }
  void lines(int state) { phy_.line_state = static_cast<uint8_t>(state); }
  void quiet() { lines(high_ ? SE0 : J); }
  void clock() {
    phy_.clock();
    ++counts_.clocks;
  }
  void idle(uint64_t clocks) {
    while (clocks--) clock();
  }
  bool chance(uint32_t millionths) { return millionths && next() % 1'000'000 < millionths; }
  uint32_t next() {
    random_ ^= random_ << 13;
    random_ ^= random_ >> 7;
    random_ ^= random_ << 17;
    return static_cast<uint32_t>(random_ >> 16);
  }

  void fail() {
    for (auto& waiting : queues_) {
      for (auto& transfer : waiting) {
        transfer.status = FAILED;
        ended_.push_back(std::move(transfer));
      }
      waiting.clear();
    }
  }

  // ------------------------------------------------------------------------------------- packets

  static unsigned crc5(unsigned value) {
    unsigned crc = 0x1f;
    for (int i = 0; i < 11; ++i) {
      const unsigned bit = (value >> i ^ crc) & 1;
      crc = crc >> 1 ^ (bit ? 0x14 : 0);
    }
    return crc ^ 0x1f;
  }
  static unsigned crc16(const uint8_t* data, std::size_t size) {
    unsigned crc = 0xffff;
    while (size--) {
      crc ^= *data++;
      for (int i = 0; i < 8; ++i) crc = crc >> 1 ^ (crc & 1 ? 0xa001 : 0);
    }
    return crc ^ 0xffff;
  }
  static uint8_t pid(Pid kind) { return static_cast<uint8_t>(kind | (~kind & 15) << 4); }

  void send(const Bytes& packet) {
    lines(high_ ? J : K);
    // A PHY says that it receives before SYNC is over.
    idle(SYNC * step() - LEAD);
    phy_.rx_active = 1;
    idle(LEAD);
    for (const uint8_t byte : packet) {
      phy_.rx_valid = 1;
      phy_.rx_data = byte;
      clock();
      phy_.rx_valid = 0;
      idle(step() - 1);
    }
    if (!high_) {
      lines(SE0);
      idle(10);
      lines(J);
    }
    phy_.rx_active = 0;
    quiet();
    idle(step() / 8 + 1);
  }
  void send(Pid kind, unsigned value) {
    value |= crc5(value) << 11;
    idle(GAP * (high_ ? 1 : 10));
    Bytes packet{pid(kind), static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8)};
    if (kind != SOF && chance(faults_.corrupt_out)) spoil(packet, 1);
    send(packet);
  }
  void send(Pid kind, const uint8_t* data, std::size_t size) {
    Bytes packet{pid(kind)};
    packet.insert(packet.end(), data, data + size);
    const unsigned crc = crc16(data, size);
    packet.push_back(static_cast<uint8_t>(crc));
    packet.push_back(static_cast<uint8_t>(crc >> 8));
    if (chance(faults_.corrupt_out)) spoil(packet, 1);
    idle(high_ ? 11 : 40);
    send(packet);
  }
  void acknowledge() {
    if (chance(faults_.drop_ack)) {
      idle(30);
      // What the host says to another device meanwhile is none of this one's business.
      if (chance(faults_.foreign)) {
        send(IN, 99);
        idle(200);
        send({pid(ACK)});
      }
      return;
    }
    idle(high_ ? 1 : 10);
    send({pid(ACK)});
  }
  void spoil(Bytes& packet, std::size_t from) {
    packet[from + next() % (packet.size() - from)] ^= static_cast<uint8_t>(1 << next() % 8);
  }

  // A packet of the device's; false if none came in time (USB 2.0, 7.1.19.2: 816 bits; 18 at full speed).
  bool receive(Bytes& packet) {
    packet.clear();
    for (int left = high_ ? 102 : 120; !phy_.tx_valid; clock())
      if (!left--) return false;
    lines(high_ ? J : K);
    idle(SYNC * step());
    while (phy_.tx_valid && packet.size() < 2048) {
      packet.push_back(phy_.tx_data);
      phy_.tx_ready = 1;
      clock();
      phy_.tx_ready = 0;
      idle(step() - 1);
    }
    if (!high_) {
      lines(SE0);
      idle(10);
    }
    idle(1);
    quiet();
    return true;
  }
  // What answers a token: its PID, or -1. The payload of data.
  int answer(Bytes& payload) {
    Bytes packet;
    payload.clear();
    if (!receive(packet)) return ++counts_.timeouts, -1;
    const int kind = packet[0] & 15;
    if (packet[0] >> 4 != (~kind & 15)) return ++counts_.bad, -1;
    if ((kind & 3) != 3) return kind;
    if (chance(faults_.corrupt_in)) spoil(packet, 1);
    if (packet.size() < 3) return ++counts_.bad, -1;
    const unsigned crc = crc16(packet.data() + 1, packet.size() - 3);
    if ((packet.end()[-2] | packet.end()[-1] << 8) != static_cast<int>(crc)) return ++counts_.bad, -1;
    payload.assign(packet.begin() + 1, packet.end() - 2);
    return kind;
  }

  // ---------------------------------------------------------------------------------------- time

  void start_frame() {
    const unsigned number = static_cast<unsigned>(high_ ? counts_.frames / 8 : counts_.frames) & 0x7ff;
    ++counts_.frames;
    send(SOF, number);
  }
  // Begins a frame if fewer than `need` clocks are left of the present one.
  void frame(uint64_t need) {
    if (counts_.clocks + need < begun_ + period()) return;
    while (counts_.clocks < begun_ + period()) clock();
    begun_ += period();
    start_frame();
  }

  // -------------------------------------------------------------------------------- transactions

  enum Result { GOOD, REPEATED, WAIT, REFUSED, ERROR };

  unsigned target(int endpoint) const { return address_ | static_cast<unsigned>(endpoint) << 7; }

  Result in(int endpoint, Bytes& payload) {
    frame(high_ ? SPARE : SPARE_FULL);
    send(IN, target(endpoint));
    const int kind = answer(payload);
    if (kind == NAK) return ++counts_.naks, WAIT;
    if (kind == STALL) return ++counts_.stalls, REFUSED;
    if (kind != DATA0 && kind != DATA1) return ERROR;
    acknowledge();
    uint8_t& toggle = toggles_[endpoint];
    if ((kind == DATA1) != toggle) return ++counts_.repeated, REPEATED;
    toggle ^= 1;
    ++counts_.in;
    return GOOD;
  }
  Result out(Pid token, const uint8_t* data, std::size_t size, bool toggle) {
    frame(high_ ? SPARE : SPARE_FULL);
    send(token, target(0));
    send(toggle ? DATA1 : DATA0, data, size);
    Bytes none;
    const int kind = answer(none);
    if (kind == ACK || kind == NYET) return GOOD;
    if (kind == NAK) return ++counts_.naks, WAIT;
    if (kind == STALL) return ++counts_.stalls, REFUSED;
    return ERROR;
  }

  // ----------------------------------------------------------------------------------- transfers

  // Whether a transaction has moved its transfer on; else it has waited, or failed, which may be the end of it.
  bool good(Transfer& transfer, Result result) {
    if (result == ERROR && ++transfer.errors == TRIES) transfer.status = FAILED;
    if (result == REFUSED) transfer.status = STALLED;
    if (result == GOOD || result == REPEATED || result == WAIT) transfer.errors = 0;
    return result == GOOD;
  }

  bool collect(Transfer& transfer, int endpoint, std::size_t most) {  // whether that was all
    Bytes payload;
    if (!good(transfer, in(endpoint, payload))) return false;
    transfer.data.insert(transfer.data.end(), payload.begin(), payload.end());
    counts_.bytes += payload.size();
    if (transfer.data.size() > transfer.length || payload.size() > most) transfer.status = BABBLE;
    return payload.size() < most || transfer.data.size() >= transfer.length;
  }

  void bulk(Transfer& transfer) {
    if (collect(transfer, transfer.endpoint & 15, high_ ? 512 : 64) && transfer.status == PENDING)
      transfer.status = DONE;
  }

  void control(Transfer& transfer) {
    const auto& setup = transfer.setup;
    const bool in_data = setup[0] & 0x80 && transfer.length;
    switch (transfer.stage) {
      case Transfer::BEGIN:
        if (!good(transfer, out(SETUP, setup.data(), 8, false))) return;
        toggles_[0] = 1;
        transfer.stage = transfer.length ? Transfer::DATA : Transfer::END;
        return;
      case Transfer::DATA:
        if (in_data) {
          if (collect(transfer, 0, 64)) transfer.stage = Transfer::END;
        } else {
          const auto size = std::min<std::size_t>(64, transfer.data.size() - transfer.at);
          if (!good(transfer, out(OUT, transfer.data.data() + transfer.at, size, toggles_[0]))) return;
          toggles_[0] ^= 1;
          transfer.at += static_cast<uint32_t>(size);
          if (transfer.at == transfer.data.size()) {
            transfer.stage = Transfer::END;
            toggles_[0] = 1;
          }
        }
        return;
      case Transfer::END:
        if (in_data) {
          if (good(transfer, out(OUT, nullptr, 0, true))) transfer.status = DONE;
          return;
        }
        Bytes payload;
        if (!good(transfer, in(0, payload))) return;
        transfer.status = payload.empty() ? DONE : BABBLE;
        settle(setup);
    }
  }

  // What a host knows of a device changes with some requests.
  void settle(const std::array<uint8_t, 8>& setup) {
    const int request = setup[0] << 8 | setup[1];
    if (request == 0x0005) {
      address_ = setup[2];
      idle(2 * MS);
    }
    if (request == 0x0009 || request == 0x010b || request == 0x0201) toggles_[1] = 0;
  }

  Phy& phy_;
  bool high_ = false;
  bool running_ = false;
  uint64_t begun_ = 0;            // the clock at which the frame began
  unsigned address_ = 0;
  std::array<uint8_t, 16> toggles_{};
  std::array<std::deque<Transfer>, 2> queues_;   // control, bulk
  std::deque<Transfer> ended_;
  Faults faults_{};
  uint64_t random_ = 1;
  Counts counts_{};
};
