// What is shown: a legend of states and counters, whose entries hide them, and lanes that are pinned or hidden.
import { by } from '../kit/page.js';

function button(text, act, pressed = null) {
  const made = Object.assign(document.createElement('button'), { type: 'button', textContent: text });
  if (pressed !== null) made.setAttribute('aria-pressed', String(pressed));
  made.addEventListener('click', act);
  return made;
}

// The nodes that a text lists, such as 4-7,9 or only 9; null: it is no list. Numbers from `count` on are left out.
export function listed(text, count) {
  const match = /^(only\s+)?(?:nodes?\s+)?(\d{1,5}(?:\s*-\s*\d{1,5})?(?:\s*,\s*\d{1,5}(?:\s*-\s*\d{1,5})?)*)$/i.exec(text.trim());
  if (!match || !(match[1] || /[-,]/.test(match[2]))) return null;
  const nodes = new Set();
  for (const part of match[2].split(',')) {
    const [first, last = first] = part.split('-').map(Number);
    for (let node = first; node <= Math.min(last, count - 1); node += 1) nodes.add(node);
  }
  return [...nodes].sort((a, b) => a - b);
}

// Nodes in order as a text: 0-3.7.
export function ranges(nodes) {
  const found = [];
  for (const node of nodes) if (found.length && found[found.length - 1][1] === node - 1) found[found.length - 1][1] = node; else found.push([node, node]);
  return found.map(([first, last]) => first === last ? first : `${first}-${last}`).join('.');
}

export class Shown {
  // `changed` is called after a choice; `name` gives the name of a node.
  constructor(lanes, name, changed) {
    Object.assign(this, { lanes, name, changed, away: new Set(), order: [], drawn: '', node: null, count: 0 });
    window.addEventListener('scroll', () => this.close());
  }

  // Where a node's lane is among the others: those that were moved come first, as they were put.
  rank(node) {
    const at = this.order.indexOf(node);
    return at < 0 ? this.order.length + node : at;
  }

  // The lanes of a range of nodes, in order.
  nodes(first, count) {
    const all = Array.from({ length: count }, (_, k) => first + k).filter((node) => !this.away.has(node))
      .sort((a, b) => this.rank(a) - this.rank(b));
    if (this.node !== null && !all.includes(this.node)) this.close();
    return [...all.filter((node) => this.lanes.pinned.has(node)), ...all.filter((node) => !this.lanes.pinned.has(node))];
  }

  // Made anew only if it changes: a user may be about to click.
  legend(picture) {
    const names = picture?.names ?? [], counters = Object.keys(picture?.counters ?? {}), { hidden } = this.lanes;
    for (const name of counters) this.counters.add(name);
    const now = JSON.stringify([names, [...this.counters], [...hidden], [...this.away], this.lanes.dark]);
    if (now === this.drawn) return;
    this.drawn = now;
    const entry = (key, text, colour, kind) => {
      const made = button('', () => { this.toggle(this.lanes.hidden, key); }, !hidden.has(key)), mark = document.createElement('i');
      mark.className = kind;
      mark.style.setProperty(kind === 'line' ? 'border-color' : 'background', colour);
      made.append(mark, text);
      made.title = `${hidden.has(key) ? 'Show' : 'Hide'} ${text}`;
      return made;
    };
    const held = [...by('legend').children].indexOf(document.activeElement);
    by('legend').replaceChildren(...names.map((text, key) => entry(key, text, this.lanes.mean(key), 'bar')),
      ...[...this.counters].map((text) => entry(text, text, this.lanes.line(text), 'line')),
      ...(this.away.size ? [button(`Show ${this.away.size} hidden ${this.away.size === 1 ? 'node' : 'nodes'}`, () => this.all())] : []));
    by('legend').hidden = !by('legend').children.length;
    if (held >= 0) by('legend').children[held]?.focus();
  }

  counters = new Set();

  // Hides all nodes but these.
  only(nodes) {
    this.away = new Set(Array.from({ length: this.count }, (_, node) => node).filter((node) => !nodes.includes(node)));
    this.close();
    this.changed();
  }

  toggle(set, key) {
    if (!set.delete(key)) set.add(key);
    this.close();
    this.changed();
  }

  // Puts a node's lane in the place of the one above or below it.
  move(node, way) {
    const lanes = this.lanes.lanes.map((lane) => lane.node), at = lanes.indexOf(node), other = lanes[at + way];
    if (other === undefined) return;
    [lanes[at], lanes[at + way]] = [other, node];
    this.order = [...lanes, ...this.order.filter((each) => !lanes.includes(each))];
    this.changed();
  }

  all() {
    this.order = [];
    this.away.clear();
    this.close();
    this.changed();
  }

  // What can be done with the lane of a node: beside its name. It stays open while the lane is moved.
  menu(node, x, y) {
    const { pinned, own } = this.lanes;
    this.node = node;
    this.put(x, y, [Object.assign(document.createElement('strong'), { textContent: this.name(node) }),
      button(pinned.has(node) ? 'Unpin' : 'Pin to the top', () => this.toggle(this.lanes.pinned, node)),
      button('Move up', () => this.move(node, -1)), button('Move down', () => this.move(node, 1)),
      button(own.has(node) ? 'Scale of all lanes' : 'Its own scale', () => this.toggle(own, node)),
      button('Hide', () => this.toggle(this.away, node)), button('Show only this', () => this.only([node])),
      ...(this.away.size || this.order.length ? [button('Show all, in order', () => this.all())] : [])]);
  }

  // What can be done with a board.
  boardMenu({ group, nodes: { first, nodes } }, x, y) {
    const hide = () => {
      for (let node = first; node < first + nodes; node += 1) this.away.add(node);
      this.close();
      this.changed();
    };
    this.node = null;
    this.put(x, y, [Object.assign(document.createElement('strong'), { textContent: `board ${group}` }), button('Hide its nodes', hide)]);
  }

  put(x, y, entries) {
    const menu = by('menu');
    menu.replaceChildren(...entries);
    menu.hidden = false;
    // In the window, not in the lanes: these may be lower than the menu.
    const { left, top } = menu.parentElement.getBoundingClientRect();
    menu.style.left = `${left + x}px`;
    menu.style.top = `${Math.max(Math.min(top + y, window.innerHeight - menu.offsetHeight - 4), 0)}px`;
    menu.querySelector('button').focus({ preventScroll: true });
  }

  close() {
    by('menu').hidden = true;
    this.node = null;
  }

  // The nodes that are not hidden.
  seen() { return Array.from({ length: this.count }, (_, node) => node).filter((node) => !this.away.has(node)); }

  // These as ranges; empty: all.
  visible() { return this.away.size ? ranges(this.seen()) || 'none' : ''; }

  // For the address.
  save(values) {
    for (const key of this.lanes.hidden) values.append('hide', typeof key === 'number' ? `s${key}` : `c${key}`);
    if (this.lanes.pinned.size) values.set('pin', [...this.lanes.pinned].join('.'));
    if (this.away.size > this.count / 2) values.set('only', this.seen().join('.'));
    else if (this.away.size) values.set('off', [...this.away].join('.'));
    if (this.order.length) values.set('order', this.order.join('.'));
    if (this.lanes.own.size) values.set('own', [...this.lanes.own].join('.'));
  }

  load(values, count) {
    const nodes = (name) => (values.get(name) ?? '').split('.').filter((text) => /^\d{1,5}$/.test(text)).map(Number).filter((node) => node < count);
    this.lanes.hidden = new Set(values.getAll('hide').slice(0, 200).map((text) => /^s\d{1,5}$/.test(text) ? Number(text.slice(1)) : text.slice(1)));
    this.lanes.pinned = new Set(nodes('pin'));
    this.count = count;
    this.away = new Set(nodes('off'));
    if (values.has('only')) {
      const only = nodes('only');
      for (let node = 0; node < count; node += 1) if (!only.includes(node)) this.away.add(node);
    }
    this.order = [...new Set(nodes('order'))];
    this.lanes.own = new Set(nodes('own'));
  }
}
