// The configuration space of the virtual board's function: identity, BAR0, power management, MSI, PCI Express.
//
// Source: PCI Express Base Specification, revision 3.0, chapter 7; PCI Local Bus 3.0, sections 6.1 and 6.8.

#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

constexpr uint32_t BAR0_BYTES = 8192;

class ConfigSpace {
 public:
  static constexpr uint32_t SIZE = 4096;

  ConfigSpace() {
    put(0x00, 2, PCIE_VENDOR);
    put(0x02, 2, PCIE_DEVICE);
    put(COMMAND, 2, 0, 0x0406);               // memory, bus master, no INTx
    put(0x06, 2, 0x0010);                     // a list of capabilities
    put(0x08, 4, 0x11800000);                 // revision 0, signal processing
    put(BAR0, 4, 0, ~(BAR0_BYTES - 1));       // memory, 32 bits, not prefetchable
    put(0x2c, 4, PCIE_DEVICE << 16 | PCIE_VENDOR);
    put(0x34, 1, POWER);
    put(0x3c, 1, 0, 0xff);
    put(POWER, 4, 0x00030001 | MSI << 8);     // version 3; D0 and D3hot
    put(POWER + 4, 2, 0x0008, 0x0003);        // no soft reset
    put(MSI, 4, 0x00800005 | EXPRESS << 8, 0x00010000);      // one vector, 64-bit address
    put(MSI + 4, 4, 0, ~3u);
    put(MSI + 8, 4, 0, ~0u);
    put(MSI + 12, 2, 0, 0xffff);
    put(EXPRESS, 4, 0x00020010);              // endpoint, version 2
    put(EXPRESS + 4, 4, 0x10008002);          // payload of 512 bytes, function-level reset
    put(EXPRESS + 8, 2, 0x0000, 0x78ff);      // 128 bytes
    put(EXPRESS + 12, 4, 0x00000041);         // x4, 2.5 GT/s
    put(EXPRESS + 18, 2, 0x0041);
    first_ = bytes_;
  }

  uint8_t at(uint32_t offset) const { return bytes_[offset % SIZE]; }

  // Writes bytes. Returns whether the write asked for a function-level reset.
  bool write(uint32_t offset, const uint8_t* data, uint32_t count) {
    bool flr = false;
    for (uint32_t i = 0; i < count && offset + i < SIZE; ++i) {
      const uint32_t k = offset + i;
      flr |= k == EXPRESS + 9 && data[i] & 0x80;
      bytes_[k] = static_cast<uint8_t>((bytes_[k] & ~mask_[k]) | (data[i] & mask_[k]));
    }
    return flr;
  }

  // As after a reset of the function.
  void reset() { bytes_ = first_; }

  bool memory() const { return bytes_[COMMAND] & 2 && !d3(); }
  bool master() const { return bytes_[COMMAND] & 4; }
  bool d3() const { return (bytes_[POWER + 4] & 3) == 3; }
  // Maximum payload size: 128 << n bytes, at most 512.
  unsigned payload() const { return std::min(bytes_[EXPRESS + 8] >> 5, 2); }

 private:
  static constexpr uint32_t COMMAND = 0x04, BAR0 = 0x10, POWER = 0x40, MSI = 0x48, EXPRESS = 0x60;

  // Sets a field and which of its bits the host can write.
  void put(uint32_t offset, uint32_t size, uint32_t value, uint32_t writable = 0) {
    for (uint32_t i = 0; i < size; ++i) {
      bytes_[offset + i] = static_cast<uint8_t>(value >> 8 * i);
      mask_[offset + i] = static_cast<uint8_t>(writable >> 8 * i);
    }
  }

  std::array<uint8_t, SIZE> bytes_{}, mask_{}, first_{};
};
