// The time of each node in each state of an interval. A click on a heading sorts; one on a cell leads to its longest one.
import { by } from '../kit/page.js';
import { count } from '../kit/text.js';
import { exact } from '../kit/time.js';

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -1e6], End: [0, 1e6],
  PageUp: [-10, 0], PageDown: [10, 0] };

export const percent = (share) => share > 0 && share < .001 ? 'under 0.1 %' : `${Number((share * 100).toFixed(1))} %`;
export const short = (ps) => ps === null ? '–' : exact(BigInt(Number(Number(ps).toPrecision(3))));
const make = (kind, values) => Object.assign(document.createElement(kind), values);
const limit = (value, most) => Math.max(Math.min(value, most), 0);

export class ByNode {
  // `nodes` gives the name of a node; `leads` shows the longest one: its kind, node and name.
  constructor(nodes, leads) { Object.assign(this, { nodes, leads, column: 0, down: false }); }

  // The elements of a table, of the figures of an interval of so many picoseconds.
  made({ by_node: { names, nodes, cells, unknown, out }, nodes: figures, of }, span) {
    if (!names.length) return [];
    const row = new Map(nodes.map((node) => [node, [node, ...names.map(() => 0), 0, 0]])), put = (node, at, value) => { if (row.has(node)) row.get(node)[at] = value; };
    cells.forEach(([node, name, ps]) => put(node, name + 1, ps));
    unknown.forEach(([node, ps]) => put(node, names.length + 1, ps));
    figures.forEach(([node, , , lost]) => put(node, names.length + 2, lost));
    this.kinds = ['', ...names.map(() => 'state'), 'unknown', 'loss'];
    this.names = ['node', ...names, 'not known', 'lost'];
    this.rows = [...row.values()];
    this.column = Math.min(this.column, this.names.length - 1);
    const table = make('table', { role: 'grid' }), head = table.createTHead().insertRow();
    table.setAttribute('aria-label', 'Time of each node in each state');
    head.append(...this.names.map((textContent) => make('th', { scope: 'col', textContent, tabIndex: -1, title: 'Sort' })));
    this.body = table.createTBody();
    this.lines = new Map(this.rows.map((values) => [values, this.line(values, span)]));
    table.addEventListener('click', (event) => this.act(event.target.closest('th, td')));
    table.addEventListener('keydown', (event) => this.key(event));
    table.addEventListener('focusin', ({ target }) => this.stop(target));
    this.table = table;
    this.sort();
    head.cells[0].tabIndex = 0;
    const left = [out ? `${count(out)} states with less time` : '', of && of[0] > nodes.length ? `${count(of[0] - nodes.length)} nodes` : ''].filter(Boolean);
    const scroll = make('div', { id: 'by-node', className: 'scroll' });
    scroll.append(table);
    return [make('p', { className: 'caption', textContent: 'Nodes and states' }), scroll,
      ...(left.length ? [make('p', { className: 'quiet', textContent: `Left out: ${left.join(', ')}.` })] : [])];
  }

  line(values, span) {
    const line = make('tr'), last = values.length - 1;
    line.append(...values.map((value, k) => {
      const cell = make(k ? 'td' : 'th', { tabIndex: -1 });
      if (!k) Object.assign(cell, { scope: 'row', textContent: this.nodes(value) });
      else if (k === last || !value) cell.textContent = count(value);
      else cell.append(`${short(value)} `, make('span', { className: 'share', textContent: percent(value / span) }));
      return cell;
    }));
    return line;
  }

  sort() {
    const sign = this.down ? -1 : 1, at = this.column;
    this.rows.sort((one, other) => sign * (one[at] - other[at]) || one[0] - other[0]);
    this.body.append(...this.rows.map((values) => this.lines.get(values)));
    [...this.table.tHead.rows[0].cells].forEach((cell, k) => {
      if (k === at) cell.setAttribute('aria-sort', this.down ? 'descending' : 'ascending'); else cell.removeAttribute('aria-sort');
    });
  }

  act(cell) {
    if (!cell) return;
    const at = cell.cellIndex, values = this.rows[cell.parentElement.rowIndex - 1];
    if (!values) {
      this.down = this.column === at ? !this.down : at > 0;
      this.column = at;
      this.sort();
    } else if (at && values[at]) this.leads(this.kinds[at], values[0], this.names[at]);
  }

  // One cell at a time is a stop of the Tab key; arrows go from it to others.
  stop(cell) {
    this.table.querySelectorAll('[tabindex="0"]').forEach((each) => { each.tabIndex = -1; });
    cell.tabIndex = 0;
  }

  key(event) {
    const cell = event.target.closest('th, td'), move = MOVES[event.key];
    if (!cell || event.ctrlKey || event.metaKey || event.altKey || !(move || event.key === 'Enter' || event.key === ' ')) return;
    event.preventDefault();
    event.stopPropagation();
    if (!move) { this.act(cell); return; }
    const row = this.table.rows[limit(cell.parentElement.rowIndex + move[0], this.table.rows.length - 1)];
    row.cells[limit(cell.cellIndex + move[1], row.cells.length - 1)].focus();
  }

  // Whether it has the focus, and where: for one that replaces it.
  held() {
    const cell = by('by-node')?.contains(document.activeElement) && document.activeElement.closest('th, td');
    return cell ? [cell.parentElement.rowIndex, cell.cellIndex] : null;
  }

  hold(place) { if (place) this.table?.rows[limit(place[0], this.table.rows.length - 1)].cells[limit(place[1], this.names.length - 1)].focus(); }
}
