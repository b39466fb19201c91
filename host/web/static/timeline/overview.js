// The whole run in one strip, drawn by uPlot: all items, what was lost, and which part is shown below.
import { colour } from '../kit/colours.js';

export class Overview {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;      // called with a stretch, as shares of the run
    this.plot = null;
    this.shown = [0, 1];
    new ResizeObserver(() => this.plot?.setSize({ width: element.clientWidth, height: element.clientHeight })).observe(element);
  }

  show(items, lost) {
    this.data = [items, lost];
    this.restyle();
  }

  restyle() {
    if (!this.data) return;
    this.plot?.destroy();
    const [items, lost] = this.data, columns = items.length;
    this.plot = new uPlot({
      width: this.element.clientWidth, height: this.element.clientHeight, legend: { show: false }, padding: [4, 0, 2, 0],
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: { x: { time: false, range: [0, 1] }, y: { range: (u, low, high) => [0, high * 1.05 || 1] } },
      axes: [{ show: false }, { show: false }],
      series: [{}, { stroke: colour('heat'), fill: colour('heat'), width: 1, points: { show: false } },
        { stroke: colour('bad'), fill: colour('bad'), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [1, 4, 2] }) }],
      hooks: { setSelect: [(u) => this.selected(u)], draw: [(u) => this.band(u)] },
    }, [Float64Array.from(items, (_, k) => (k + .5) / columns), Array.from(items, Math.log1p),
      Array.from(lost, (n) => n ? Math.log1p(Math.max(...items)) * .35 : null)], this.element);
    this.plot.over.addEventListener('click', (event) => {
      const wide = this.shown[1] - this.shown[0], at = event.offsetX / this.plot.over.clientWidth;
      if (!this.dragged) this.choose(at - wide / 2, at + wide / 2);
      this.dragged = false;
    });
  }

  selected(u) {
    if (u.select.width < 4) return;
    const wide = u.over.clientWidth;
    this.dragged = true;
    this.choose(u.select.left / wide, (u.select.left + u.select.width) / wide);
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  band(u) {
    const { ctx, bbox } = u, [from, to] = this.shown;
    ctx.save();
    ctx.fillStyle = ctx.strokeStyle = colour('accent');
    ctx.globalAlpha = .2;
    const x = bbox.left + from * bbox.width, wide = Math.max((to - from) * bbox.width, 2);
    ctx.fillRect(x, bbox.top, wide, bbox.height);
    ctx.globalAlpha = 1;
    ctx.strokeRect(x, bbox.top + .5, wide, bbox.height - 1);
    ctx.restore();
  }

  mark(from, to) {
    this.shown = [from, to];
    this.plot?.redraw(false, false);
  }
}
