// Questions in SQL about the run: a table of the answer, and marks where its column time_ps says.
import { answered, reason, tell } from '../kit/ask.js';
import { by } from '../kit/page.js';

const cell = (kind, text) => Object.assign(document.createElement(kind), { textContent: text ?? 'NULL', className: text === null ? 'null' : '' });
const TABLES = "select table_name, column_name, data_type from duckdb_columns() where not internal order by table_name, column_index";

export class Questions {
  // `page` can `show` a place, `complain`, and draw what `changed`.
  constructor(lists, page) {
    Object.assign(this, { lists, page, marks: [] });
    by('sql-form').addEventListener('submit', (event) => { event.preventDefault(); this.ask(); });
    by('sql-text').addEventListener('keydown', (event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.ask(); });
    by('sql-text').addEventListener('input', () => { if (this.failed) this.note(''); });
    by('sql-close').addEventListener('click', () => { lists.open('sql', false); this.mark([]); });
    by('sql-open').addEventListener('click', () => this.toggle());
  }

  toggle() {
    this.lists.open('sql', by('sql').hidden);
    if (by('sql').hidden) return;
    by('sql-text').focus({ preventScroll: true });
    this.tables().catch((error) => this.note(reason(error), true));
  }

  note(text, failed = false) {
    this.failed = failed;
    by('sql-note').textContent = text;
  }

  // The tables of the run and their columns: a click inserts a name.
  async tables() {
    if (by('sql-tables').children.length) return;
    const { rows } = await answered(await tell('question', TABLES)), tables = new Map();
    for (const [table, column, kind] of rows) tables.set(table, [...tables.get(table) ?? [], [column, kind]]);
    const name = (text, title) => {
      const made = Object.assign(cell('button', text), { type: 'button', title });
      made.addEventListener('click', () => this.insert(text));
      return made;
    };
    by('sql-tables').replaceChildren(...[...tables].map(([table, columns]) => {
      const row = document.createElement('p');
      row.append(Object.assign(name(table, `Insert ${table}`), { className: 'table' }), ...columns.map(([column, kind]) => name(column, kind)));
      return row;
    }));
  }

  insert(text) {
    const field = by('sql-text'), { selectionStart: at } = field, before = field.value.slice(0, at);
    field.setRangeText(`${/[\w"]$/.test(before) ? ' ' : ''}${/^[a-z_]\w*$/i.test(text) ? text : `"${text.replaceAll('"', '""')}"`}`, at, field.selectionEnd, 'end');
    field.focus({ preventScroll: true });
    if (this.failed) this.note('');
  }

  async ask() {
    this.note('asking');
    try {
      this.show(await answered(await tell('question', by('sql-text').value)));
    } catch (error) {
      this.mark([]);
      by('sql-table').replaceChildren();
      this.note(reason(error), true);
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
    this.note(`${more ? 'The first ' : ''}${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`
      + (places.length ? '; marks are at their times.' : '. A column time_ps marks its times, with a column node in its lane.'));
  }
}
