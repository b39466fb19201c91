// Figures of a selected interval, and files of exactly that interval.
import { answered, ask, reason, save, wanted } from '../kit/ask.js';
import { by } from '../kit/page.js';
import { count, quantity } from '../kit/text.js';
import { absolute, exact } from '../kit/time.js';
import { ByNode, percent, short } from './bynode.js';

const LATE_MS = 150, same = (one, other) => one !== null && other !== null && one.every((value, k) => value === other[k]);

function table(name, heads, rows) {
  const made = document.createElement('table'), line = (cells, kind) => {
    const row = made.insertRow();
    cells.forEach((text) => row.append(Object.assign(document.createElement(kind), { textContent: text })));
  };
  made.append(Object.assign(document.createElement('caption'), { textContent: name }));
  line(heads, 'th');
  rows.forEach((row) => line(row, 'td'));
  return made;
}

// Shows the figures of an interval, or of the part of it in which there is a recording; `nodes` gives the name of a node, `byNode` makes a table.
function show(found, nodes, byNode) {
  const from = BigInt(found.from_ps), to = BigInt(found.to_ps), seconds = Number(to - from) / 1e12;
  const lines = [['from', absolute(from)], ['to', absolute(to)], ['duration', exact(to - from)], ...(found.framed ? [['events', count(found.events)]] : []), ['items', count(found.items)],
    ['nodes', `${count(found.of[0])} of ${count(found.of[1])}${found.of[0] < found.of[1] ? ', which are shown' : ''}`],
    ...(found.hits ? [['hits', `${found.hits.counted ? '' : 'at least '}${count(found.hits.total)} of ${found.text}`]] : []),
    ['rate', quantity(found.items / seconds, ' items/s')],
    ['items lost', `${count(found.lost)}${found.edges ? `, and ${count(found.edges)} across its edges` : ''}`]];
  const list = document.createElement('dl');
  for (const [name, text] of lines) {
    const pair = document.createElement('div');
    pair.append(Object.assign(document.createElement('dt'), { textContent: name }),
      Object.assign(document.createElement('dd'), { textContent: text }));
    list.append(pair);
  }
  const tables = [];
  if (found.states.length) tables.push(table('States', ['name', 'share', 'states'], found.states.map(([name, share, n]) => [name, percent(share), count(n)])));
  if (found.messages.length) {
    tables.push(table('Latencies', ['message', 'median', '99 %', 'longest'],
      found.messages.map(([name, n, , median, late, longest, unsure]) => [
        `${name} (${count(n)}${unsure ? `; ${count(unsure)} uncertain after losses` : ''})`, ...[median, late, longest].map(short)])));
  }
  tables.push(table('Nodes', ['node', ...(found.framed ? ['events'] : []), 'items', 'items/s', 'lost'], found.nodes.map(([node, events, items, lost]) =>
    [nodes(node), ...(found.framed ? [count(events)] : []), count(items), quantity(items / seconds), count(lost)])));
  const place = byNode.held();
  by('statistics-text').replaceChildren(list, ...byNode.made(found, Number(to - from)), ...tables);
  byNode.hold(place);
}

// What the files have.
function files({ framed, events, items, of: [own, all] }) {
  return `Files: ${framed ? `${count(events)} events, ` : ''}${count(items)} items of ${count(own)} of ${count(all)} nodes.`;
}

// The panel is of the interval between the cursors or, if it was opened without one, of the visible stretch: it is made
// again when these move. It is of the nodes that are not hidden. Files are of the interval and the nodes that the panel shows.
export class Selection {
  // `nodes` gives the name of a node; `page` has the interval `between` the cursors or null, the stretch that is `shown`,
  // `seen`: a list of the nodes that are, or an empty text, and can `show` what was found, `complain`, and `perfetto`.
  constructor(lists, nodes, page) {
    by('text').addEventListener('change', () => this.follow());
    Object.assign(this, { lists, nodes, page, interval: null, wanted: null, busy: false, visible: false, led: null });
    this.byNode = new ByNode(nodes, (kind, node, name) => this.lead(kind, node, name));
    by('statistics-close').addEventListener('click', () => this.close());
    by('selected-perfetto').addEventListener('click', () => { if (this.interval) this.page.perfetto(this.interval); });
    by('selected-report').addEventListener('click', () => this.file('report'));
    by('selected-export').addEventListener('click', () => this.file(by('format').value));
  }

  close() {
    this.wanted = this.interval = null;
    this.lists.open('statistics', false);
  }

  // What the panel is of: an interval, nodes, and the text of a search.
  of(between) { return [...between ?? this.page.shown(), this.page.seen(), by('text').value.trim()]; }

  async open() {
    const between = this.page.between();
    this.visible = !between;
    this.led = null;
    this.wanted = this.of(between);
    await this.make();
  }

  // To the longest state, loss or unknown time of a node. The panel stays as it is while that is shown.
  async lead(kind, node, name) {
    const [from, to] = this.interval;
    try {
      const found = await answered(await ask('longest', { from, to, kind, node, name }));
      if (found) this.page.show(found);
      this.led = this.of(null);
      this.page.complain('');
    } catch (error) {
      this.page.complain(reason(error));
    }
  }

  // Called after each change of the cursors or the picture.
  follow() {
    if (!this.wanted) return;
    const between = this.page.between(), now = this.of(between);
    if (between) this.visible = false;
    if (!between && !this.visible) { this.close(); return; }
    if (!between && same(now, this.led)) return;
    this.led = null;
    if (same(now, this.wanted)) return;
    this.wanted = now;
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.make(), LATE_MS);
    by('statistics-text').setAttribute('aria-busy', 'true');
  }

  // One interval is asked for at a time.
  async make() {
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted && !same(this.wanted, this.interval)) {
        const asked = this.wanted, [from, to, nodes, q] = asked;
        const found = await (await ask('statistics', { from, to, ...(nodes && { nodes }), ...(q && { q }) })).json();
        if (!this.wanted) return;
        show({ ...found, text: q }, this.nodes, this.byNode);
        by('selected-note').textContent = files(found);
        by('statistics-title').textContent = this.visible ? 'Visible stretch' : 'Selection';
        this.interval = asked;
      }
      this.page.complain('');
      if (this.wanted) this.lists.open('statistics', true);
    } catch (error) {
      this.close();
      this.page.complain(reason(error));
    } finally {
      this.busy = false;
      by('statistics-text').setAttribute('aria-busy', 'false');
    }
  }

  async file(kind) {
    if (!this.interval) return;
    const buttons = by('statistics').querySelectorAll('.choices button'), [from, to, nodes] = this.interval;
    buttons.forEach((button) => { button.disabled = true; });
    try {
      await save(await ask('file', { kind, from, to, ...(nodes && { nodes }) }, 'POST'));
      this.page.complain('');
    } catch (error) {
      this.page.complain(reason(error));
    } finally {
      buttons.forEach((button) => { button.disabled = false; });
    }
  }
}

// An interval of some nodes in Perfetto's own interface, in a new tab. Its times are nanoseconds.
export async function openPerfetto(from, to, nodes) {
  const tab = window.open('', '_blank');
  try {
    const of = { from, to, ...(nodes && { nodes }) };
    await ask('perfetto', of, 'POST');
    const positive = (ps) => ps < 0n ? 0n : ps, here = location.href.split('#')[0];
    const values = new URLSearchParams({ url: new URL(`perfetto/trace?${wanted(of)}`, here).href,
      visStart: positive(from) / 1000n, visEnd: positive(to) / 1000n + 1n });
    tab.location = new URL(`perfetto/#!/viewer?${values}`, here).href;
  } catch (error) {
    tab?.close();
    throw error;
  }
}
