// The stimulus of a verilated board, at its ports. Compiled with NODES, CLOCK_HZ and
// PORT_BITS of the gateware's geometry, and PHASES if its strobes are sampled twice or four times a clock.
//
// Time is counted in clock edges: edge k is at k * 10^12 / CLOCK_HZ ps, which is compared exactly,
// as a fraction.

#pragma once

#include "verilated.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

constexpr uint64_t PS = 1'000'000'000'000;
constexpr uint64_t CLOCK = CLOCK_HZ;
constexpr uint64_t PERIOD_NUM = PS / std::gcd(PS, CLOCK);    // a period is PERIOD_NUM / PERIOD_DEN ps
constexpr uint64_t PERIOD_DEN = CLOCK / std::gcd(PS, CLOCK);
constexpr int64_t NEVER = INT64_MAX;
// A port's levels: its data, and the strobe above them.
constexpr unsigned DATA = (1u << PORT_BITS) - 1, PORT = 2 * DATA + 1;

// First edge at or after a time.
inline int64_t edge_at(int64_t ps) {
  const unsigned __int128 scaled = static_cast<unsigned __int128>(ps) * PERIOD_DEN + (PERIOD_NUM - 1);
  if (scaled <= UINT64_MAX) return static_cast<int64_t>(static_cast<uint64_t>(scaled) / PERIOD_NUM);
  const unsigned __int128 edge = scaled / PERIOD_NUM;
  return edge >= static_cast<unsigned __int128>(NEVER) ? NEVER : static_cast<int64_t>(edge);
}

// The time of a board's edges. A board that shares a time with others has an oscillator of its own: it is slower by
// this number of billionths, and edge 0 is at `begin_ps` of the common time.
struct Scale {
  int64_t ppb = 0, begin_ps = 0;

  static constexpr int64_t BILLION = 1'000'000'000;

  // Time of an edge, rounded down.
  int64_t ps(int64_t edge) const {
    const __int128 num = static_cast<__int128>(edge) * static_cast<int64_t>(PERIOD_NUM);
    if (!ppb) return begin_ps + static_cast<int64_t>(num / static_cast<int64_t>(PERIOD_DEN));
    const __int128 den = static_cast<__int128>(PERIOD_DEN) * BILLION;
    return begin_ps + static_cast<int64_t>(num * (BILLION + ppb) / den);
  }
  // First edge at or after a time; before edge 0: that one.
  int64_t edge(int64_t ps) const {
    if (!ppb && !begin_ps) return edge_at(ps);
    if (ps <= begin_ps) return 0;
    if (ps > NEVER / 2) return NEVER;
    const __int128 num = static_cast<__int128>(ps - begin_ps) * static_cast<int64_t>(PERIOD_DEN) * BILLION;
    const __int128 den = static_cast<__int128>(PERIOD_NUM) * (BILLION + ppb);
    return static_cast<int64_t>((num + den - 1) / den);
  }
};

struct Random {  // splitmix64
  uint64_t state;
  uint64_t operator()() {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
};

// Plays rows of time, node and the port's new value on the ports `data` and `strobe` of a Top, and `early`,
// which are the strobes at its samples before the edge. The rows stay the caller's, and must stay.
template <class Top> class Player {
 public:
  // `aperture_ps`: a bit that changes so shortly before an edge is seen there or at the next one, at
  // random; 0: always there. `initial`: the levels until the first row.
  Player(Top& top, uint64_t seed, uint64_t aperture_ps, uint64_t rows, const int64_t* time, const int16_t* node,
         const uint16_t* port, const uint16_t* initial)
      : top_(top), random_{seed}, aperture_ps_(aperture_ps), rows_(rows), time_(time), node_(node), port_(port) {
    for (int n = 0; n < NODES; ++n) {
      show(n, truth_[n] = initial[n] & PORT);
      show_early(n, truth_[n]);
    }
    next_ = rows ? edge_at(time[0]) : NEVER;
  }

  // The time of the edges, before the first of them.
  void on(const Scale& scale) {
    scale_ = scale;
    next_ = row_ < rows_ ? scale_.edge(time_[row_]) : NEVER;
  }
  const Scale& scale() const { return scale_; }
  // The edge of the next row, and that of the last one of all.
  int64_t next() const { return next_; }
  int64_t last() const { return rows_ ? scale_.edge(time_[rows_ - 1]) : 0; }
  // Something changes at this edge.
  bool due(int64_t edge) const { return edge >= next_ || owes(); }
  // A change was shown in part: the rest follows at the next edge.
  bool owes() const { return !delayed_.empty() || !lagging_.empty(); }

  // Sets the ports as this edge samples them.
  void play(int64_t edge) {
    for (const int n : delayed_) show(n, truth_[n]);
    delayed_.clear();
    for (const int n : lagging_) show_early(n, truth_[n]);
    lagging_.clear();
    while (edge >= next_) {
      const int n = node_[row_];
      const unsigned level = port_[row_] & PORT;
      if (aperture_ps_ && slack(time_[row_], edge) < aperture_ps_ * PERIOD_DEN) {
        if (std::find_if(fresh_.begin(), fresh_.end(), [n](auto& f) { return f.first == n; }) == fresh_.end())
          fresh_.emplace_back(n, truth_[n]);
      }
      show(n, truth_[n] = level);
      change_early(n, slack(time_[row_], edge));
      next_ = ++row_ < rows_ ? scale_.edge(time_[row_]) : NEVER;
    }
    for (const auto& [n, before] : fresh_) {
      const unsigned late = (before ^ truth_[n]) & static_cast<unsigned>(random_());
      if (late) {
        show(n, truth_[n] ^ late);
        delayed_.push_back(n);
      }
    }
    fresh_.clear();
  }

 private:
  // Numerator, over PERIOD_DEN, of the picoseconds from a time to an edge not a period later.
  uint64_t slack(int64_t ps, int64_t edge) const {
    if (scale_.ppb || scale_.begin_ps)
      return static_cast<uint64_t>(std::max<int64_t>(scale_.ps(edge) - ps, 0)) * PERIOD_DEN;
    return static_cast<uint64_t>(edge) * PERIOD_NUM - static_cast<uint64_t>(ps) * PERIOD_DEN;
  }

  template <class T> static void put(T& port, int at, unsigned bits, unsigned value) {
    const T mask = static_cast<T>(((T{1} << bits) - 1) << at);
    port = static_cast<T>((port & ~mask) | (static_cast<T>(value) << at));
  }
  template <std::size_t W> static void put(VlWide<W>& port, int at, unsigned bits, unsigned value) {
    put(port[at / 32], at % 32, bits, value);
  }

  void show(int node, unsigned level) {
    put(top_.data, PORT_BITS * node, PORT_BITS, level & DATA);
    put(top_.strobe, node, 1, level >> PORT_BITS);
  }

  // The strobe as it was at all samples before this edge.
  void show_early([[maybe_unused]] int node, [[maybe_unused]] unsigned level) {
#ifdef PHASES
    for (int sample = 0; sample < PHASES - 1; ++sample) show_sample(sample, node, level);
#endif
  }
#ifdef PHASES
  void show_sample(int sample, int node, unsigned level) {
    put(top_.early, sample * NODES + node, 1, level >> PORT_BITS);
  }
#endif

  // A port has changed so long before this edge: at the samples before it, too, if it was there by then. The first
  // sample is the one that is longest before the edge.
  void change_early([[maybe_unused]] int node, [[maybe_unused]] uint64_t before) {
#ifdef PHASES
    bool lags = false;
    for (uint64_t sample = 0; sample < PHASES - 1; ++sample) {
      const uint64_t ahead = (PHASES - 1 - sample) * PERIOD_NUM;
      const bool there = PHASES * before >= ahead;
      const bool late = there && PHASES * before - ahead < PHASES * aperture_ps_ * PERIOD_DEN && random_() & 1;
      if (there && !late) show_sample(static_cast<int>(sample), node, truth_[node]);
      else lags = true;
    }
    if (lags) lagging_.push_back(node);
#endif
  }

  Top& top_;
  Random random_;
  const uint64_t aperture_ps_;
  const uint64_t rows_;
  const int64_t* const time_;
  const int16_t* const node_;
  const uint16_t* const port_;
  uint64_t row_ = 0;
  Scale scale_;
  int64_t next_ = NEVER;
  unsigned truth_[NODES] = {};      // levels, whatever the board may see of them
  std::vector<int> delayed_;        // nodes that the board sees differently
  std::vector<int> lagging_;        // nodes whose strobe was seen at an edge, and not at all samples before
  std::vector<std::pair<int, unsigned>> fresh_;
};
