// What is at a place in the lanes, of each kind: methods of Lanes.
import { count } from '../kit/text.js';
import { sharesAt } from './shares.js';

// Pixels: heights of a bar and of a board's heading, half the width of a mark, and within which something is near.
export const SPAN = 14, HEAD = 16, MARK = 6;
const NEAR = 6;

export const finding = {
  // The board whose heading is at a place; undefined: none.
  headAt(x, y) {
    return x < this.left ? this.heads?.find((each) => y >= each.y && y < each.y + HEAD) : undefined;
  },

  // The node whose name is at a place; null: none.
  nameAt(x, y) {
    return x < this.left ? this.lanes?.find((each) => y >= each.y && y < each.y + each.tall)?.node ?? null : null;
  },

  // What is at a place, as found.js describes it; null: nothing.
  under(picture, view, x, y) {
    const lane = this.lanes?.find((each) => y >= each.y && y < each.y + each.tall);
    if (!picture || !lane || x < this.left) return null;
    const mark = y < lane.y + MARK * 2 && this.marks.find((each) => (each.node === lane.node || (each.node < 0 && lane === this.lanes[0])) && Math.abs(this.where(view, picture, each).x - x) < MARK);
    if (mark) return mark;
    const { node } = lane, time = (number) => picture.from + BigInt(Math.round(number));
    const level = Math.floor((y - lane.y) / SPAN);
    const span = y < lane.y + lane.deep && picture.spans.rows.find((row) => row[0] === node && row.level === level && !this.hidden.has(row[5])
      && this.x(row[2]) <= x && this.x(row[3]) + 1 >= x);
    if (span) return { kind: 'state', node, name: span[1], from: time(span[2]), to: time(span[3]), unseen: !span[4] };
    if (picture.spans.many && y < lane.y + lane.deep) return this.shares(picture, node, x, time);
    return this.item(picture, node, x) ?? this.loss(picture, node, x, time) ?? this.message(picture, x, y, time)
      ?? this.columns(picture, node, x, time);
  },

  item({ items, from }, node, x) {
    if (!items) return null;
    let nearest = NEAR, found = null;
    items.time.forEach((time, k) => {
      const far = Math.abs(this.x(time) - x);
      if (items.node[k] === node && far < nearest) {
        nearest = far;
        found = { kind: 'item', node, name: items.labels[items.label[k]], from: from + BigInt(time) };
      }
    });
    return found;
  },

  loss({ losses }, node, x, time) {
    const row = losses.find((each) => each[0] === node && this.x(each[1]) - 2 <= x && this.x(each[2]) + 2 >= x);
    return row ? { kind: 'loss', node, name: `lost ${count(row[3])}`, from: time(row[1]), to: time(row[2]), outages: row[4] } : null;
  },

  message({ arrows }, x, y, time) {
    const row = arrows.rows.find(([, sender, receiver, sent, received]) => {
      const x0 = this.x(sent), y0 = this.heightOf(sender), dx = this.x(received) - x0, dy = this.heightOf(receiver) - y0;
      const along = Math.min(Math.max(((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1), 0), 1);
      return Math.hypot(x - x0 - along * dx, y - y0 - along * dy) < NEAR;
    });
    return row ? { kind: 'message', name: row[0], node: row[1], other: row[2], from: time(row[3]), to: time(row[4]) } : null;
  },

  shares(picture, node, x, time) {
    const wide = picture.span / picture.columns, column = Math.floor(((x - this.left) / this.width * this.span - this.shift) / wide);
    const found = sharesAt(picture, node, column, this.hidden);
    return found.length ? { kind: 'shares', node, name: 'states', from: time(column * wide), to: time((column + 1) * wide),
      shares: found.map(([name, share]) => [picture.names[name], share]) } : null;
  },

  columns({ items, counts, columns, first, lanes, span, unit }, node, x, time) {
    if (items) return null;
    const wide = span / columns, column = Math.floor(((x - this.left) / this.width * this.span - this.shift) / wide);
    const value = counts[column * lanes + node - first];
    return value >= .001 ? { kind: 'count', node, name: unit, value, from: time(column * wide), to: time((column + 1) * wide) } : null;
  },
};
