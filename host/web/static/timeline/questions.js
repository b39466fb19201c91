// Questions in SQL about the run: a table of the answer, and marks where its column time_ps says.
import { reason, tell } from '../kit/ask.js';
import { by } from '../kit/page.js';

const cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text ?? '' });

export class Questions {
  // `page` can `show` a place, `complain`, and draw what `changed`.
  constructor(lists, page) {
    Object.assign(this, { lists, page, marks: [] });
    by('sql-form').addEventListener('submit', (event) => { event.preventDefault(); this.ask(); });
    by('sql-text').addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.ask(); });
    by('sql-close').addEventListener('click', () => { lists.open('sql', false); this.mark([]); });
    by('sql-open').addEventListener('click', () => this.toggle());
  }

  toggle() {
    this.lists.open('sql', by('sql').hidden);
    if (!by('sql').hidden) by('sql-text').focus({ preventScroll: true });
  }

  async ask() {
    by('sql-note').textContent = 'asking';
    try {
      this.show(await (await tell('question', by('sql-text').value)).json());
    } catch (error) {
      this.mark([]);
      by('sql-table').replaceChildren();
      by('sql-note').textContent = reason(error);
    }
  }

  mark(marks) {
    this.marks = marks;
    this.page.changed();
  }

  show({ columns, rows, places, more }) {
    this.mark(places.map((place, k) => place && { kind: 'mark', name: 'SQL', colour: 'accent', node: place[1], from: BigInt(place[0]),
      why: columns.map((name, at) => name === 'time_ps' || name === 'node' || rows[k][at] === null ? '' : `${name} ${rows[k][at]}`).filter(Boolean).join(', ') }).filter(Boolean));
    const head = document.createElement('tr'), time = columns.indexOf('time_ps');
    head.append(...columns.map((name) => Object.assign(cell('th', name), { scope: 'col' })));
    let at = 0;
    by('sql-table').replaceChildren(head, ...rows.map((row, k) => {
      const line = document.createElement('tr');
      line.append(...row.map((text) => cell('td', text)));
      if (places[k]) {
        const mark = this.marks[at], go = Object.assign(cell('button', row[time]), { type: 'button', className: 'link' });
        at += 1;
        go.addEventListener('click', () => this.page.show(mark));
        line.children[time].replaceChildren(go);
      }
      return line;
    }));
    by('sql-note').textContent = `${more ? 'The first ' : ''}${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
      + (places.length ? '; marks are at their times.' : '. A column time_ps marks its times, with a column node in its lane.');
  }
}
