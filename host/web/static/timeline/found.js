// What a click, a search or the pointer found, in words: in a card beside it, and in a panel that stays in sight.
//
// What was found has a `kind` (item, state, message, loss, count, shares, mark), `node`, `name`, `from` and, unless it is an item, `to`,
// which is null if it is not known; a message also has `other`, the node at its other end, and `got`: it was found where
// it was received.
import { count, quantity } from '../kit/text.js';
import { absolute, exact } from '../kit/time.js';

const GAP = 12;

const long = ({ from, to }) => exact(to > from ? to - from : from - to);

// Rows of a name and a text.
function rows(found, nodes) {
  const { kind, from, to } = found;
  if (kind === 'mark') return [...(found.why ? [['', found.why]] : []), ['time', absolute(from)]];
  if (kind === 'item') return [['time', absolute(from)]];
  if (kind === 'count') return [[found.name, found.value < 1 ? 'less than 1' : quantity(found.value)], ['from', absolute(from)], ['duration', long(found)]];
  if (kind === 'shares') {
    return [...found.shares.map(([name, share]) => [name, share < .01 ? 'under 1 %' : `${Math.round(share * 100)} %`]), ['from', absolute(from)], ['duration', long(found)]];
  }
  if (kind === 'message') {
    const [sent, received] = found.got ? [to, from] : [from, to];
    return [[found.got ? 'from' : 'to', found.other < 0 ? 'not known' : nodes(found.other)], ['sent', sent === null ? 'not seen' : absolute(sent)],
      ['received', received === null ? 'not seen' : absolute(received)], ...(to === null ? [] : [['latency', long(found)]])];
  }
  if (kind === 'loss') return [['after', absolute(from)], ['before', absolute(to)], ['duration', long(found)], ...(found.outages > 1 ? [['outages', count(found.outages)]] : [])];
  return [['from', absolute(from)], ['to', to === null || found.unseen ? 'not seen' : absolute(to)], ...(to === null ? [] : [['duration', long(found)]])];
}

function list(element, pairs) {
  element.replaceChildren(...pairs.map(([name, text]) => {
    const pair = document.createElement('div');
    pair.append(Object.assign(document.createElement('dt'), { textContent: name }),
      Object.assign(document.createElement('dd'), { textContent: text }));
    return pair;
  }));
}

export class Words {
  // `nodes` gives the name of a node, `fields` asks for the fields of an item: a list of objects.
  constructor(card, line, table, nodes, fields) {
    Object.assign(this, { card, line, table, nodes, fields });
    this.shown = '';
    this.kept = new Map();
  }

  title(found) { return `${found.node < 0 ? '' : `${this.nodes(found.node)}: `}${found.name}`; }

  key(found) { return `${found.kind} ${found.node} ${found.from} ${found.name}`; }

  // In one line, and as rows.
  async panel(found, note = '') {
    const pairs = rows(found, this.nodes);
    this.line.textContent = [`${this.title(found)}${found.kind === 'item' ? ' at ' : ', '}`
      + pairs.map(([name, text]) => name === 'time' ? text : `${name} ${text}`).join(', '), note].filter(Boolean).join('; ');
    list(this.table, []);
    const more = await this.asked(found);
    if (more.length) list(this.table, more);
  }

  say(text) {
    this.said = text;
    this.line.textContent = text;
    list(this.table, []);
  }

  // A line that is of no thing goes.
  forget() { if (this.line.textContent === this.said) this.reset(); }

  reset() { this.say('Point at something, click it, or search.'); }

  // All fields of the items of one node at one time.
  async asked(found) {
    if (found.kind !== 'item') return [];
    const key = this.key(found);
    if (!this.kept.has(key)) {
      if (this.kept.size > 200) this.kept.clear();
      this.kept.set(key, (await this.fields(found)).flatMap((row) => Object.entries(row).filter(([name]) => name !== 'time_ps' && name !== 'node')));
    }
    return this.kept.get(key);
  }

  // Beside a place: x, the top and the bottom of the lane, all in pixels of the card's parent.
  async beside(found, x, top, bottom) {
    const key = this.key(found), { card } = this, changed = this.shown !== key || card.hidden;
    if (changed) {
      this.shown = key;
      card.hidden = false;
      card.firstElementChild.textContent = this.title(found);
      list(card.lastElementChild, rows(found, this.nodes));
    }
    this.put(x, top, bottom);
    if (!changed || found.kind !== 'item') return;
    await new Promise((resolve) => { setTimeout(resolve, 80); });
    if (this.shown !== key) return;
    const more = await this.asked(found);
    if (this.shown !== key || card.hidden) return;
    list(card.lastElementChild, [...rows(found, this.nodes), ...more].slice(0, 12));
    this.put(x, top, bottom);
  }

  put(x, top, bottom) {
    const { card } = this, room = card.parentElement, { offsetWidth: wide, offsetHeight: tall } = card;
    const left = x + GAP + wide > room.clientWidth ? Math.max(x - GAP - wide, 0) : x + GAP;
    const below = bottom + 4, seen = Math.min(room.clientHeight, window.innerHeight - room.getBoundingClientRect().top - this.floor);
    card.style.left = `${left}px`;
    card.style.top = `${below + tall > seen && top - tall - 4 >= 0 ? top - tall - 4 : below}px`;
  }

  // Pixels at the foot of the window that something else covers.
  get floor() { return window.innerHeight - this.line.parentElement.getBoundingClientRect().top; }

  hide() {
    this.shown = '';
    this.card.hidden = true;
  }
}

// What was chosen, for the address; and the same again in a picture, or null if it is not there.
export function written(found) {
  return found && ['item', 'state', 'message', 'loss'].includes(found.kind) ? `${found.kind}.${found.node}.${found.from}${found.got ? '.got' : ''}` : '';
}

export function again(picture, text) {
  const parts = /^(item|state|message|loss)\.(\d{1,5})\.(-?\d{1,20})(\.got)?$/.exec(text);
  if (!parts) return null;
  const [, kind, number, from, got] = parts, node = Number(number), at = Number(BigInt(from) - picture.from);
  const time = (value) => picture.from + BigInt(Math.round(value)), same = (value) => Math.round(value) === at;
  if (kind === 'item') {
    const k = picture.items?.time.findIndex((value, place) => value === at && picture.items.node[place] === node) ?? -1;
    return k < 0 ? null : { kind, node, name: picture.items.labels[picture.items.label[k]], from: time(at) };
  }
  if (kind === 'state') {
    const row = picture.spans.rows.find((each) => each[0] === node && same(each[2]));
    return row ? { kind, node, name: row[1], from: time(at), to: time(row[3]), unseen: !row[4] } : null;
  }
  if (kind === 'loss') {
    const row = picture.losses.find((each) => each[0] === node && same(each[1]));
    return row ? { kind, node, name: `lost ${count(row[3])}`, from: time(at), to: time(row[2]), outages: row[4] } : null;
  }
  const row = picture.arrows.rows.find((each) => got ? each[2] === node && same(each[4]) : each[1] === node && same(each[3]));
  return row ? { kind, node, name: row[0], other: got ? row[1] : row[2], from: time(at), to: time(got ? row[3] : row[4]), got: Boolean(got) } : null;
}
