// The PCIe block of an UltraScale+ device, as the gateware sees it: streams CQ, CC and RQ, MSI, resets (AMD PG213).
//
// A Host has
//   bool write(uint64_t address, const uint8_t* data, uint32_t bytes)   a memory write of the device; whether it has an address
//   bool listens()                                                      MSI are enabled
//   bool interrupt()                                                    sends an MSI; whether it was sent

#pragma once

#include "config_space.h"

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

struct PcieCounts {
  uint64_t clocks, reads, writes, unsupported, timeouts, tlps, bytes, unmapped, malformed, interrupts, resets, flrs;
};

template <class Top, class Host> class UsBlock {
 public:
  UsBlock(Top& top, Host& host, uint64_t seed) : top_(top), host_(host), random_{seed} {}

  ConfigSpace config;
  PcieCounts counts{};
  bool reset = true, flr = false;
  // A completion has arrived, with its status and data.
  bool completed = false;
  unsigned status = 0;
  uint32_t data = 0;
  // The gateware has finished a function-level reset.
  bool flr_done = false;
  // In this number of 256 clocks, at random, nothing is offered or taken.
  unsigned stall_cq = 0, stall_cc = 64, stall_rq = 32;

  bool idle() const { return requests_.empty(); }

  // Queues a request of up to two dwords; `bytes` at `offset` of BAR0.
  void request(bool write, uint32_t offset, uint32_t bytes, const uint8_t* from) {
    const uint32_t first = offset & ~3u, end = (offset + bytes + 3) & ~3u, dwords = (end - first) / 4;
    std::array<uint32_t, 4> words{};
    unsigned enables = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
      const uint32_t k = offset - first + i;
      enables |= 1u << k;
      if (write) words[k / 4] |= static_cast<uint32_t>(from[i]) << 8 * (k % 4);
    }
    const unsigned tag = tag_ = (tag_ + 1) & 0xff;
    // With one dword, the enables of the last one are 0.
    requests_.push_back({{first, 0, dwords | (write ? 1u : 0u) << 11, tag | 13u << 19}, 0xf, enables, true, !write, !write});
    if (write) requests_.push_back({words, (1u << dwords) - 1, enables, false, true, false});
    completed = false;
  }

  // Sets the gateware's inputs before a clock. Nothing passes while the configuration space is off, and no read without a
  // credit (PG213, "Selective Flow Control for Non-Posted Requests").
  void drive() {
    const bool permitted = !requests_.empty() && top_.cfg_config_space_enable && top_.cfg_link_training_enable &&
                           (!requests_.front().credited || credit_ > 0);
    const bool offers = permitted && !reset && (held_ || !stalls(stall_cq));
    held_ = offers;
    const Beat beat = offers ? requests_.front() : Beat{};
    top_.user_reset = reset;
    top_.m_axis_cq_tvalid = offers;
    for (int i = 0; i < 4; ++i) top_.m_axis_cq_tdata[i] = beat.words[i];
    top_.m_axis_cq_tkeep = beat.keep;
    top_.m_axis_cq_tlast = beat.last;
    top_.m_axis_cq_tuser[0] = beat.enables;
    top_.m_axis_cq_tuser[1] = beat.first ? 1u << 8 : 0;
    top_.s_axis_cc_tready = ready_cc_ = !stalls(stall_cc);
    top_.s_axis_rq_tready = ready_rq_ = !stalls(stall_rq);
    top_.cfg_max_payload = config.payload();
    top_.cfg_function_status = (config.memory() ? 2 : 0) | (config.master() ? 4 : 0);
    top_.cfg_function_power_state = config.d3() ? 4 : 1;
    top_.cfg_flr_in_process = flr;
    if (config.d3() != d3_) {
      d3_ = config.d3();
      changing_ = true;
    }
    top_.cfg_power_state_change_interrupt = changing_;
    top_.cfg_interrupt_msi_enable = host_.listens();
    top_.cfg_interrupt_msi_data = 0;
    const bool over = sending_ && --sending_ == 0;
    const bool sent = over && config.master() && host_.interrupt();
    counts.interrupts += sent;
    top_.cfg_interrupt_msi_sent = sent;
    top_.cfg_interrupt_msi_fail = over && !sent;
  }

  // Takes the gateware's outputs as the next rising edge does.
  void sample() {
    ++counts.clocks;
    if (reset) {
      requests_.clear();
      payload_.clear();
      described_ = false;
      held_ = false;
      sending_ = 0;
      credit_ = 0;
      changing_ = false;
      return;
    }
    if (top_.pcie_cq_np_req && credit_ < 32) ++credit_;
    if (top_.cfg_power_state_change_ack) changing_ = false;
    if (top_.m_axis_cq_tvalid && top_.m_axis_cq_tready) {
      credit_ -= requests_.front().credited;
      requests_.pop_front();
      held_ = false;
    }
    if (top_.s_axis_cc_tvalid && ready_cc_) {
      completed = (top_.s_axis_cc_tdata[2] & 0xff) == tag_;
      status = top_.s_axis_cc_tdata[1] >> 11 & 7;
      data = top_.s_axis_cc_tdata[3];
    }
    if (top_.s_axis_rq_tvalid && ready_rq_) take();
    if (top_.cfg_interrupt_msi_int & 1) sending_ = 8;
    flr_done |= top_.cfg_flr_done & 1;
  }

 private:
  struct Beat {
    std::array<uint32_t, 4> words;
    unsigned keep, enables;
    bool first, last, credited;   // credited: of a non-posted request
  };

  bool stalls(unsigned chance) { return chance && (random_() & 255) < chance; }

  // A beat of a memory write: its descriptor, or data.
  void take() {
    const uint32_t* words = &top_.s_axis_rq_tdata[0];
    if (!described_) {
      address_ = static_cast<uint64_t>(words[1]) << 32 | (words[0] & ~3u);
      dwords_ = words[2] & 0x7ff;
      if ((words[2] >> 11 & 15) != 1) ++counts.malformed;
      described_ = true;
    } else {
      const auto* bytes = reinterpret_cast<const uint8_t*>(words);
      payload_.insert(payload_.end(), bytes, bytes + 16);
    }
    if (!top_.s_axis_rq_tlast) return;
    const uint64_t size = payload_.size();
    if (size != 4 * dwords_ || size == 0 || size > 128u << config.payload() || (address_ & 4095) + size > 4096 ||
        !config.master() || config.d3()) {
      ++counts.malformed;
    } else {
      ++counts.tlps;
      counts.bytes += size;
      if (!host_.write(address_, payload_.data(), static_cast<uint32_t>(size))) ++counts.unmapped;
    }
    payload_.clear();
    described_ = false;
  }

  Top& top_;
  Host& host_;
  Random random_;
  std::deque<Beat> requests_;
  std::vector<uint8_t> payload_;
  uint64_t address_ = 0, dwords_ = 0;
  unsigned tag_ = 0, sending_ = 0, credit_ = 0;
  bool d3_ = false, changing_ = false;
  bool described_ = false, held_ = false, ready_cc_ = false, ready_rq_ = false;
};
