// Items per second of every node, drawn by uPlot.
import { colour, nodeColour } from './colours.js';
import { quantity } from './text.js';

const HEIGHT = 240;

export class RateChart {
  constructor(element) {
    this.element = element;
    this.plot = null;
    this.nodes = 0;
    new ResizeObserver(() => this.plot?.setSize({ width: element.clientWidth, height: HEIGHT })).observe(element);
  }

  // Anew, because uPlot takes colours once.
  restyle() {
    this.plot?.destroy();
    this.plot = null;
  }

  make(shown) {
    const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { stroke: colour('line') } };
    const series = [{}];
    for (let node = 0; node < this.nodes; node += 1) {
      series.push({ stroke: nodeColour(node), width: 1.5, show: shown(node),
        points: { show: (u, own, from, to) => to - from < 40, size: 5 } });
    }
    series.push({ stroke: colour('bad'), fill: colour('bad'), width: 1, points: { show: false },
      paths: uPlot.paths.bars({ size: [1, 6, 3] }) });
    this.plot = new uPlot({
      width: this.element.clientWidth, height: HEIGHT, series, legend: { show: false }, cursor: { drag: { setScale: false } },
      scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max(high * 1.08, 1)] } },
      axes: [{ ...axis, values: (u, at) => at.map((s) => `${Number(s.toFixed(6))} s`) },
        { ...axis, size: 70, values: (u, at) => at.map((v) => quantity(v)) }],
    }, [[0], ...series.slice(1).map(() => [null])], this.element);
  }

  draw(picture, shown) {
    if (this.nodes !== picture.nodes) { this.restyle(); this.nodes = picture.nodes; }
    if (!this.plot) this.make(shown);
    const { nodes, items, lost, begin, bin, end } = picture;
    // The last bin is counted up to `end` only; the rate over a short part of one would be a guess.
    const covered = Math.min((end - begin) / bin - (picture.bins - 1), 1);
    const bins = covered < .5 && picture.bins > 1 ? picture.bins - 1 : picture.bins;
    const long = (k) => k === picture.bins - 1 ? bin * Math.max(covered, .5) : bin;
    const data = [Float64Array.from({ length: bins }, (_, k) => begin + (k + .5) * bin)];
    for (let node = 0; node < nodes; node += 1) {
      data.push(Float64Array.from({ length: bins }, (_, k) => items[k * nodes + node] / long(k)));
    }
    data.push(Array.from({ length: bins }, (_, k) => {
      let sum = 0;
      for (let node = 0; node < nodes; node += 1) sum += lost[k * nodes + node];
      return sum ? sum / long(k) : null;
    }));
    for (let node = 0; node < nodes; node += 1) {
      if (this.plot.series[node + 1].show !== shown(node)) this.plot.setSeries(node + 1, { show: shown(node) });
    }
    this.plot.setData(data);
  }
}
