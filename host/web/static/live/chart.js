// Items per second of every node, drawn by uPlot: a band for each node, all of one scale, over one time axis.
import { colour, nodeColour } from '../kit/colours.js';
import { quantity } from '../kit/text.js';

const LEAST = 160, BAND = 22, FULL = .88;

export class RateChart {
  constructor(element, caption) {
    this.element = element;
    this.caption = caption;
    this.plot = null;
    this.bands = [];
    new ResizeObserver(() => this.plot?.setSize({ width: element.clientWidth, height: this.height })).observe(element);
  }

  get height() { return Math.max(LEAST, this.bands.length * BAND + 40); }

  // Anew, because uPlot takes colours once.
  restyle() {
    this.plot?.destroy();
    this.plot = null;
  }

  // The first shown node is the top band; a value is the number of the band, and the rate as a share of the highest.
  make() {
    const axis = { stroke: colour('quiet'), grid: { stroke: colour('line'), width: 1 }, ticks: { show: false } };
    const count = this.bands.length, series = [{}, ...this.bands.map((node, k) => ({ stroke: nodeColour(node), width: 1.5,
      fill: `${nodeColour(node).replace(/\)$/, ' / .35)')}`, fillTo: count - 1 - k, points: { show: false } }))];
    this.plot = new uPlot({
      width: this.element.clientWidth, height: this.height, series, legend: { show: false }, focus: { alpha: .25 },
      cursor: { drag: { setScale: false }, focus: { prox: BAND }, y: false, points: { show: false } },
      scales: { x: { time: false }, y: { range: [0, Math.max(count, 1)] } },
      axes: [{ ...axis, values: (u, at) => at.map((s) => `${Number(s.toFixed(6))} s`) },
        { ...axis, size: 58, splits: () => this.bands.map((_, k) => count - 1 - k),
          values: () => this.bands.map((node) => count > 20 ? `${node}` : `node ${node}`) }],
      hooks: { draw: [(u) => this.losses(u)], setCursor: [(u) => this.say(u)] },
    }, [[0], ...this.bands.map(() => [null])], this.element);
  }

  draw(picture, shown) {
    const bands = Array.from({ length: picture.nodes }, (_, node) => node).filter(shown);
    if (bands.join() !== this.bands.join()) { this.bands = bands; this.restyle(); }
    if (!this.plot) this.make();
    const { nodes, items, lost, begin, bin, end } = picture;
    // The last bin is counted up to `end` only; the rate over a short part of one would be a guess.
    const covered = Math.min((end - begin) / bin - (picture.bins - 1), 1);
    const bins = covered < .5 && picture.bins > 1 ? picture.bins - 1 : picture.bins;
    const long = (k) => k === picture.bins - 1 ? bin * Math.max(covered, .5) : bin;
    this.rates = bands.map((node) => Float64Array.from({ length: bins }, (_, k) => items[k * nodes + node] / long(k)));
    this.lost = bands.map((node) => Array.from({ length: bins }, (_, k) => lost[k * nodes + node]));
    this.most = Math.max(1e-9, ...this.rates.map((rates) => rates.reduce((a, b) => Math.max(a, b), 0)));
    const data = this.rates.map((rates, k) => rates.map((rate) => bands.length - 1 - k + FULL * rate / this.most));
    this.plot.setData([Float64Array.from({ length: bins }, (_, k) => begin + (k + .5) * bin), ...data]);
    this.say(this.plot);
  }

  // On the floor of each band, as wide as the time in which something was lost.
  losses(u) {
    if (!this.lost?.length) return;
    const { ctx, bbox } = u, [times] = u.data, count = this.bands.length;
    const wide = times.length > 1 ? u.valToPos(times[1], 'x', true) - u.valToPos(times[0], 'x', true) : bbox.width;
    ctx.save();
    ctx.fillStyle = colour('bad');
    this.lost.forEach((lost, k) => {
      const y = u.valToPos(count - 1 - k, 'y', true), tall = bbox.height / count * .3;
      lost.forEach((n, at) => {
        if (n > 0) ctx.fillRect(u.valToPos(times[at], 'x', true) - wide / 2, y - tall, Math.max(wide, 2), tall);
      });
    });
    ctx.restore();
  }

  // The scale, and what is under the pointer.
  say(u) {
    if (!this.rates) return;
    const { idx, top } = u.cursor, band = Math.floor(top / u.over.clientHeight * this.bands.length);
    const rate = idx === null || idx === undefined || top < 0 ? undefined : this.rates[band]?.[idx];
    const lost = this.lost[band]?.[idx];
    this.caption.textContent = rate === undefined ? `a band is ${quantity(this.most / FULL, '/s')} high`
      : `node ${this.bands[band]}: ${quantity(rate, '/s')} at ${Number(u.data[0][idx].toFixed(6))} s${lost ? `, ${quantity(lost)} lost` : ''}`;
  }
}
