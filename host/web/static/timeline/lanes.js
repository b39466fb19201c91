// The lanes of the nodes: counts or single items, states, messages, losses, cursors, on one canvas.
import { colour, dark } from '../kit/colours.js';
import { count, quantity } from '../kit/text.js';
import { finding, HEAD, MARK, SPAN } from './finding.js';
import { filled, means } from './shares.js';
import { labels, step } from '../kit/time.js';

const AXIS = 32, DEEPEST = 4;

// A colour for a name, the same on every page. Red is for what was lost.
function hue(name) {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return 35 + hash * 0.618034 % 1 * 290;
}

// The board of a node, in a run of several; -1: there is one.
function groupOf({ groups }, node) { return groups.findIndex(({ first, nodes }) => node >= first && node < first + nodes); }

// The hue of a state: far from those of the states that are near in the list of all.
function stateHue(number) { return 35 + (number * 0.618034 + .55) % 1 * 290; }

export class Lanes {
  constructor(canvas) {
    this.canvas = canvas;
    this.depth = [];
    this.colours = {};
    this.hidden = new Set();    // numbers of states, and names of counters, that are not shown
    this.pinned = new Set();    // nodes whose lanes come first
    this.own = new Set();       // nodes whose counts have a scale of their own
    this.marks = [];            // where rules fail or are undecided
  }

  // The colours of a state's bar, and of its edges.
  bar(number) { return `hsl(${stateHue(number)} ${this.dark ? '45% 34%' : '65% 82%'})`; }
  edge(number) { return `hsl(${stateHue(number)} ${this.dark ? '60% 65%' : '60% 38%'})`; }

  mean(number) { return `rgb(${this.rgb(number).join(' ')})`; }

  // As red, green and blue. Means of pale colours could not be told from each other.
  rgb(number) {
    const [s, l] = this.dark ? [.6, .42] : [.7, .66], a = s * Math.min(l, 1 - l), at = stateHue(number);
    return [0, 8, 4].map((n) => { const k = (n + at / 30) % 12; return 255 * (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))); });
  }

  restyle() {
    for (const name of ['ink', 'quiet', 'line', 'paper', 'bad', 'heat', 'accent', 'doubt']) this.colours[name] = colour(name);
    this.dark = dark();
  }

  get left() { return this.canvas.clientWidth < 600 ? 46 : 96; }
  get width() { return Math.max(this.canvas.clientWidth - this.left, 50); }

  // Depths of states only grow, so that lanes keep their places while a user moves.
  // `nodes`: those that are shown, in order.
  place(picture, about, first, nodes, room) {
    if (this.first !== first) { this.depth = []; this.first = first; }
    const lanes = nodes.length;
    const open = new Map();
    for (const span of picture?.spans?.rows ?? []) {
      const ends = (open.get(span[0]) ?? []).filter((end) => end > span[2]);
      let level = 0;
      while (ends.some((_, k) => ends[k].level === level)) level += 1;
      open.set(span[0], ends);
      const end = Object.assign(new Number(span[3]), { level });
      ends.push(end);
      span.level = Math.min(level, DEEPEST - 1);
      const lane = span[0] - first;
      this.depth[lane] = Math.max(this.depth[lane] ?? 0, span.level + 1);
    }
    // A band for the mean of many states; where states were one above another, it is as high as they were.
    for (const [node] of picture?.spans.kinds ?? []) this.depth[node - first] ??= 1;
    // As tall as the window has room for.
    const deepest = nodes.reduce((sum, node) => sum + (this.depth[node - first] ?? 0) * SPAN, 0);
    const heads = about.groups.length && nodes.length ? HEAD * (groupOf(about, nodes[lanes - 1]) - groupOf(about, nodes[0]) + 1) : 0;
    const band = Math.floor(Math.min(Math.max((room - AXIS - deepest - heads) / lanes - 4, lanes > 32 ? 10 : 13), 44));
    this.lanes = [];
    this.heads = [];
    let y = AXIS, last = -1;
    for (const node of nodes) {
      const group = groupOf(about, node);
      if (group !== last) {
        this.heads.push({ y, group, nodes: about.groups[group] });
        y += HEAD;
        last = group;
      }
      const deep = (this.depth[node - first] ?? 0) * SPAN;
      this.lanes.push({ node, y, deep, band, tall: deep + band + 4, name: about.node_names[node] ?? `node ${node}` });
      y += deep + band + 4;
    }
    this.byNode = new Map(this.lanes.map((lane) => [lane.node, lane]));
    this.height = y + 1;
  }

  begin() {
    const scale = window.devicePixelRatio || 1, { canvas } = this;
    canvas.style.height = `${this.height}px`;
    const wide = Math.round(canvas.clientWidth * scale), tall = Math.round(this.height * scale);
    if (canvas.width !== wide || canvas.height !== tall) { canvas.width = wide; canvas.height = tall; }
    const pen = canvas.getContext('2d');
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, canvas.clientWidth, this.height);
    pen.font = '11px system-ui, sans-serif';
    return pen;
  }

  x(time) { return this.left + (time + this.shift) / this.span * this.width; }

  draw(view, picture, about, nodes, room) {
    if (!this.dark && !this.colours.ink) this.restyle();
    this.place(picture, about, view.first, nodes, room);
    this.span = view.span;
    this.last = view.first + (picture?.lanes ?? nodes.length) - 1;
    this.shift = picture ? Number(picture.from - view.from) : 0;
    const pen = this.begin();
    this.names(pen);
    pen.save();
    pen.beginPath();
    pen.rect(this.left, 0, this.width, this.height);
    pen.clip();
    this.grid(pen, view, about);
    this.scale = null;
    this.texts = [];            // node, first and last pixel of the texts below the states
    if (picture) {
      if (!picture.items) this.counts(pen, picture);
      this.counters(pen, picture);
      this.arrows(pen, picture.arrows.rows);
      if (picture.items) this.items(pen, picture.items);
      if (picture.spans.many) this.means(pen, picture); else this.spans(pen, picture.spans.rows);
      this.losses(pen, picture.losses);
    }
    this.verdicts(pen, view);
    this.chosen(pen, view, picture, view.chosen);
    this.cursors(pen, view);
    pen.restore();
    this.base(pen);
  }

  // The time to which those of the axis are added.
  base(pen) {
    if (!this.common) return;
    pen.textBaseline = 'alphabetic';
    pen.textAlign = 'left';
    pen.fillStyle = this.colours.ink;
    // On the line of the labels, if there is room at their left.
    pen.fillText(this.common, 4, pen.measureText(this.common).width < this.left - 8 ? AXIS - 6 : AXIS - 20);
  }

  names(pen) {
    pen.textBaseline = 'middle';
    pen.textAlign = 'right';
    const short = this.left < 60;
    for (const { y, group } of this.heads) {
      pen.fillStyle = this.colours.line;
      pen.fillRect(0, Math.round(y) - 1, this.canvas.clientWidth, 1);
      pen.fillStyle = this.colours.quiet;
      pen.fillText(`board ${group}`, this.left - 6, y + HEAD / 2);
    }
    for (const { node, y, tall, name } of this.lanes) {
      pen.fillStyle = this.colours.line;
      pen.fillRect(0, Math.round(y) - 1, this.canvas.clientWidth, 1);
      pen.fillStyle = this.colours.ink;
      let text = `${this.pinned.has(node) ? '▲ ' : ''}${short && name === `node ${node}` ? node : name}`;
      while (text.length > 2 && pen.measureText(text).width > this.left - 10) text = `${text.replace(/…$/, '').slice(0, -1)}…`;
      pen.fillText(text, this.left - 6, y + tall / 2);
    }
  }

  grid(pen, view, about) {
    const every = step(view.span / Math.max(2, this.width / 120)), big = BigInt(every);
    const { base, common, text } = labels(view.from, view.span, every), end = view.from + BigInt(Math.ceil(view.span));
    pen.textBaseline = 'alphabetic';
    pen.textAlign = 'left';
    for (let at = (view.from - base) / big * big + base; at <= end; at += big) {
      const x = this.left + Number(at - view.from) / view.span * this.width;
      pen.fillStyle = this.colours.line;
      pen.fillRect(x, AXIS - 6, 1, this.height);
      pen.fillStyle = this.colours.quiet;
      if (x + pen.measureText(text(at)).width < this.left + this.width) pen.fillText(text(at), x + 3, AXIS - 6);
    }
    this.common = common;
    // Single clocks, where they are far enough apart.
    const wide = about.clock_ps / view.span * this.width;
    if (wide < 5) return;
    pen.fillStyle = this.colours.line;
    pen.globalAlpha = .5;
    const first = Math.ceil(Number(view.from) / about.clock_ps), edge = Number(BigInt(Math.round(first * about.clock_ps)) - view.from);
    for (let k = 0; k * wide < this.width + wide; k += 1) {
      pen.fillRect(this.left + (edge + k * about.clock_ps) / view.span * this.width, AXIS, .5, this.height);
    }
    pen.globalAlpha = 1;
  }

  counts(pen, { counts, columns, first, lanes, span, estimated }) {
    const all = { most: 1 }, scales = new Map([...this.own].map((node) => [node, { most: 1 }]));
    const scale = Array.from({ length: lanes }, (_, lane) => scales.get(first + lane) ?? all);
    counts.forEach((value, at) => { const own = scale[at % lanes]; own.most = Math.max(own.most, value); });
    const wide = span / columns;
    this.scale = all.most;
    pen.fillStyle = this.colours.heat;
    pen.globalAlpha = estimated ? .4 : .9;
    for (const { node, y, deep, band } of this.lanes) {
      const lane = node - first, floor = y + deep + band + 1;
      if (lane < 0 || lane >= lanes) continue;
      const full = Math.log1p(scale[lane].most);
      for (let k = 0; k < columns; k += 1) {
        const value = counts[k * lanes + lane];
        if (value < .001) continue;
        const tall = Math.max(2, band * Math.log1p(value) / full), x = this.x(k * wide);
        pen.fillRect(x, floor - tall, Math.max(this.x((k + 1) * wide) - x, .6), tall);
      }
      if (this.own.has(node)) this.highest(pen, node, scale[lane].most, y + deep);
    }
    pen.globalAlpha = 1;
  }

  text(node, x, wide) { this.texts.push([node, x, x + wide]); }

  // What the height of a lane means, at its left.
  highest(pen, node, most, y) {
    pen.save();
    pen.globalAlpha = 1;
    pen.fillStyle = this.colours.quiet;
    pen.textBaseline = 'top';
    pen.textAlign = 'left';
    pen.fillText(`${quantity(most)} high`, this.left + 3, y + 2);
    this.text(node, this.left, pen.measureText(`${quantity(most)} high`).width + 6);
    pen.restore();
  }

  items(pen, { time, node, label, labels: texts }) {
    const next = new Map(), hues = texts.map((text) => `hsl(${hue(text)} 70% ${this.dark ? 68 : 36}%)`);
    const widths = texts.map((text) => pen.measureText(text).width + 6);
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    for (let k = time.length - 1; k >= 0; k -= 1) {
      const lane = this.byNode.get(node[k]);
      if (!lane) continue;
      const x = this.x(time[k]), y = lane.y + lane.deep + 2;
      pen.fillStyle = hues[label[k]];
      pen.fillRect(x - .75, y, 1.5, lane.band);
      if (lane.band > 12 && x + widths[label[k]] < (next.get(node[k]) ?? Infinity)) {
        pen.fillText(texts[label[k]], x + 3, y + lane.band / 2);
        this.text(node[k], x, widths[label[k]]);
      }
      next.set(node[k], x);
    }
  }

  spans(pen, rows) {
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    for (const span of rows) {
      const [node, name, begin, end, seen, number] = span, lane = this.byNode.get(node);
      if (!lane || this.hidden.has(number)) continue;
      const from = Math.max(this.x(begin), this.left - 2), to = Math.min(this.x(end), this.left + this.width + 2);
      const y = lane.y + span.level * SPAN + 1, wide = Math.max(to - from, 1);
      pen.fillStyle = this.bar(number);
      pen.fillRect(from, y, wide, SPAN - 2);
      if (wide > 4) {
        pen.fillStyle = this.edge(number);
        pen.fillRect(from, y, 1.5, SPAN - 2);
        if (!seen) for (let x = to - 12; x < to; x += 4) pen.fillRect(x, y, 1.5, SPAN - 2);
      }
      if (wide > 26) {
        pen.save();
        pen.beginPath();
        pen.rect(from, y, wide - 2, SPAN);
        pen.clip();
        pen.fillStyle = this.colours.ink;
        pen.fillText(name, from + 4, y + SPAN / 2 - .5);
        pen.restore();
      }
    }
  }

  means(pen, picture) {
    const { columns, span, names } = picture, wide = span / columns, { image, rows } = this.image(picture);
    pen.textBaseline = 'middle';
    pen.textAlign = 'left';
    pen.imageSmoothingEnabled = false;
    pen.fillStyle = this.colours.ink;
    const x = this.x(0), to = this.x(span);
    for (const lane of this.lanes) {
      if (!rows.has(lane.node)) continue;
      pen.drawImage(image, 0, rows.get(lane.node), columns, 1, x, lane.y + 1, to - x, lane.deep - 2);
      for (const [name, from, end] of filled(picture, lane.node, 24)) {
        if (!this.hidden.has(name)) this.fitted(pen, names[name], this.x(from * wide), lane.y + 1, (end - from) * wide / this.span * this.width);
      }
    }
  }

  // The mean colours of a picture, a row of pixels per node: made once, and stretched while a user moves.
  image(picture) {
    const key = JSON.stringify([[...this.hidden], this.dark]);
    if (picture.means?.key === key) return picture.means;
    const { columns, spans, names } = picture, colours = names.map((_, number) => this.rgb(number));
    const nodes = [...new Set(spans.kinds.map(([node]) => node))], rows = new Map();
    const image = Object.assign(document.createElement('canvas'), { width: columns, height: Math.max(nodes.length, 1) });
    const canvas = image.getContext('2d'), pixels = canvas.createImageData(columns, image.height);
    for (const node of nodes) {
      const mean = means(picture, node, colours, this.hidden);
      if (!mean) continue;
      const at = rows.size * columns * 4;
      for (let k = 0; k < mean.length; k += 4) {
        pixels.data.set(mean.subarray(k, k + 3), at + k);
        pixels.data[at + k + 3] = mean[k + 3] ? Math.max(mean[k + 3], .1) * 255 : 0;
      }
      rows.set(node, rows.size);
    }
    canvas.putImageData(pixels, 0, 0);
    picture.means = { key, image, rows };
    return picture.means;
  }

  // A text in a bar, as far as there is room.
  fitted(pen, text, x, y, wide) {
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide - 2, SPAN);
    pen.clip();
    pen.fillText(text, Math.max(x, this.left) + 4, y + SPAN / 2 - .5);
    pen.restore();
  }

  // A line per counter and node; all nodes have the same scale.
  counters(pen, { counters, columns, span, items }) {
    pen.globalAlpha = items ? .45 : 1;      // names are readable across it
    for (const [name, rows] of Object.entries(counters ?? {})) {
      if (this.hidden.has(name)) continue;
      let least = Infinity, most = -Infinity;
      for (const row of rows) { least = Math.min(least, row[2]); most = Math.max(most, row[3]); }
      const scale = most - least || 1, wide = span / columns;
      pen.strokeStyle = this.line(name);
      pen.lineWidth = 1.5;
      let before = null;
      for (const [node, time, low, high, last] of rows) {
        const lane = this.byNode.get(node);
        if (!lane) continue;
        const foot = lane.y + lane.deep + lane.band, tall = lane.band - 2, y = (value) => foot - (value - least) / scale * tall;
        const x = this.x(time);
        if (before !== node) { if (before !== null) pen.stroke(); pen.beginPath(); pen.moveTo(x, y(last)); } else pen.lineTo(x, y(last));
        if (high > low && wide) { pen.moveTo(x, y(low)); pen.lineTo(x, y(high)); pen.moveTo(x, y(last)); }
        before = node;
      }
      if (before !== null) pen.stroke();
      pen.lineWidth = 1;
    }
    pen.globalAlpha = 1;
  }

  line(name) { return `hsl(${hue(name)} 75% ${this.dark ? 65 : 40}%)`; }

  arrows(pen, rows) {
    const at = (node) => this.heightOf(node);
    pen.globalAlpha = rows.length > 200 ? .35 : .85;
    pen.strokeStyle = pen.fillStyle = this.colours.ink;
    pen.lineWidth = 1;
    for (const [, sender, receiver, sent, received] of rows) {
      const x0 = this.x(sent), y0 = at(sender), x1 = this.x(received), y1 = at(receiver);
      if (Number.isNaN(y0 + y1)) continue;
      const turn = Math.atan2(y1 - y0, x1 - x0);
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x1 - 7 * Math.cos(turn - .4), y1 - 7 * Math.sin(turn - .4));
      pen.lineTo(x1 - 7 * Math.cos(turn + .4), y1 - 7 * Math.sin(turn + .4));
      pen.fill();
    }
    pen.globalAlpha = 1;
  }

  losses(pen, rows) {
    pen.textBaseline = 'top';
    pen.textAlign = 'left';
    for (const [node, from, to, lost] of rows) {
      const lane = this.byNode.get(node);
      if (!lane) continue;
      const x = this.x(from), wide = Math.max(this.x(to) - x, 2);
      pen.fillStyle = this.colours.bad;
      pen.globalAlpha = .16;
      pen.fillRect(x, lane.y, wide, lane.tall - 1);
      pen.globalAlpha = 1;
      pen.fillRect(x, lane.y, wide, 3);
      if (wide > 8) pen.fillRect(x, lane.y, 1, lane.tall - 1);
      const text = `lost ${count(lost)}`;
      // Below the states, and at the right of other texts.
      const long = pen.measureText(text).width + 4, taken = this.texts.filter(([of, from]) => of === node && from < x + wide);
      let at = Math.max(x, this.left) + 4;
      for (const [, start, stop] of taken.sort((one, other) => one[1] - other[1])) if (start < at + long && stop > at) at = stop;
      if (lane.band > 12 && at + long < x + wide) {
        pen.fillText(text, at, lane.y + lane.deep + 4);
        this.text(node, at, long);
      }
    }
  }

  // A triangle at the top of the lane, or of all lanes where a mark is of no node.
  verdicts(pen, view) {
    for (const mark of this.marks) {
      const place = this.where(view, null, mark);
      if (!place || place.x < this.left - MARK || place.x > this.left + this.width + MARK) continue;
      const { x, top, bottom } = place;
      pen.fillStyle = this.colours[mark.colour];
      pen.fillRect(x - .5, top, 1, bottom - top);
      pen.beginPath();
      pen.moveTo(x - MARK, top);
      pen.lineTo(x + MARK, top);
      pen.lineTo(x, top + MARK * 1.6);
      pen.fill();
    }
  }

  cursors(pen, view) {
    const places = [view.a, view.b].map((at) => at === null ? null
      : this.left + Number(at - view.from) / view.span * this.width);
    pen.fillStyle = this.colours.accent;
    if (places[0] !== null && places[1] !== null) {
      pen.globalAlpha = .08;
      pen.fillRect(Math.min(...places), AXIS, Math.abs(places[1] - places[0]), this.height);
      pen.globalAlpha = 1;
    }
    pen.textBaseline = 'middle';
    pen.textAlign = 'center';
    places.forEach((x, k) => {
      if (x === null) return;
      pen.fillStyle = this.colours.accent;
      pen.fillRect(x - .75, 0, 1.5, this.height);
      pen.fillRect(x - 7, 0, 14, 13);
      pen.fillStyle = this.colours.paper;
      pen.fillText('AB'[k], x, 7);
    });
  }

  // A frame around what was chosen.
  chosen(pen, view, picture, found) {
    const place = found && this.where(view, picture, found);
    if (!place) return;
    const { x, top, bottom, wide } = place;
    pen.strokeStyle = this.colours.accent;
    pen.lineWidth = 2;
    if (found.kind === 'message' && found.to !== null && found.other >= 0) {
      const [x1, y0, y1] = [x + place.along, this.heightOf(found.node), this.heightOf(found.other)];
      pen.lineWidth = 3;
      pen.beginPath();
      pen.moveTo(x, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    } else {
      pen.strokeRect(x - 3, top, Math.max(wide, 1.5) + 6, bottom - top);
    }
    pen.lineWidth = 1;
  }

  // Where messages of a node begin and end; not a number if its lane is hidden.
  heightOf(node) {
    const lane = this.byNode.get(node);
    if (lane) return lane.y + lane.deep + lane.band / 2 + 2;
    return node < this.first ? AXIS : node > this.last ? this.height : NaN;
  }

  // Where something is, in pixels; null if its lane is not there.
  where(view, picture, found) {
    const all = found.kind === 'mark' && found.node < 0 && this.lanes && { y: AXIS, tall: this.height - AXIS, deep: 0 };
    const lane = all || this.byNode?.get(found.node);
    if (!lane) return null;
    const at = (time) => this.left + Number(time - view.from) / view.span * this.width;
    const x = at(found.from), along = found.to === null || found.to === undefined ? 0 : at(found.to) - x;
    const span = found.kind === 'state' && picture?.spans.rows.find((row) => row[0] === found.node
      && picture.from + BigInt(Math.round(row[2])) === found.from);
    const top = lane.y + (found.kind === 'state' ? (span ? span.level * SPAN : 0) : found.kind === 'item' ? lane.deep + 1 : 1);
    return { x, along, wide: Math.max(along, 0), top, bottom: found.kind === 'state' ? top + SPAN : lane.y + lane.tall - 1, lane };
  }
}

Object.assign(Lanes.prototype, finding);
