// The line above the lanes: which stretch is shown, and what is not as it seems.
import { count, quantity } from '../kit/text.js';
import { absolute, exact } from '../kit/time.js';

export function range({ from, span }) {
  const close = Math.max(span / 1000, 1);
  return `${absolute(from, close)} to ${absolute(from + BigInt(Math.round(span)), close)} (${exact(BigInt(Number(span.toPrecision(4))))})`;
}

// `ended`: how a recording that was followed ended; `scale`: what the height of a lane means, or null.
export function notes(about, ended, picture, scale) {
  const found = [];
  if (about.growing) found.push('recording; states and messages appear when it has ended');
  if (ended) found.push(`recording ended: ${ended}`);
  if (picture && !picture.ready) found.push(picture.counted < 1 ? `counting: ${Math.floor(picture.counted * 100)} %` : 'states and messages are being made');
  if (scale) found.push(`a full lane: ${quantity(scale)} ${about.framed ? 'events' : 'items'} a column`);
  if (picture?.estimated) found.push('pale: not counted yet');
  if (picture?.spans.many) found.push('states: mean colour of each column');
  if (picture?.arrows.out) found.push(`${count(picture.arrows.out)} messages of ${count(picture.arrows.out + picture.arrows.rows.length)} are not drawn`);
  return found.join('; ');
}
