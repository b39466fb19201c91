// Figures of a selected interval, and files of exactly that interval.
import { ask, save, wanted } from '../kit/ask.js';
import { by } from '../kit/page.js';
import { count, quantity } from '../kit/text.js';
import { absolute, exact } from '../kit/time.js';

const percent = (share) => share > 0 && share < .001 ? 'under 0.1 %' : `${Number((share * 100).toFixed(1))} %`;
const short = (ps) => exact(BigInt(Number(Number(ps).toPrecision(3))));

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

// Shows the figures of an interval; `nodes` gives the name of a node.
export async function figuresOf(from, to, nodes) {
  const found = await (await ask('statistics', { from, to })).json(), seconds = Number(to - from) / 1e12;
  const lines = [['from', absolute(from)], ['to', absolute(to)], ['duration', exact(to - from)], ['items', count(found.items)],
    ['rate', quantity(found.items / seconds, '/s')],
    ['lost', `${count(found.lost)}${found.edges ? `, and ${count(found.edges)} across its edges` : ''}`]];
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
      found.messages.map(([name, n, , median, late, longest]) => [`${name} (${count(n)})`, short(median), short(late), short(longest)])));
  }
  tables.push(table('Nodes', ['node', 'items', 'rate', 'lost'], found.nodes.map(([node, items, lost]) =>
    [nodes(node), count(items), quantity(items / seconds, '/s'), count(lost)])));
  by('statistics-text').replaceChildren(list, ...tables);
}

// A file of an interval, which the browser saves.
export async function saveAs(kind, from, to) {
  await save(await ask('file', { kind, from, to }, 'POST'));
}

// An interval in Perfetto's own interface, in a new tab. Its times are nanoseconds.
export async function openPerfetto(from, to) {
  const tab = window.open('', '_blank');
  try {
    await ask('perfetto', { from, to }, 'POST');
    const positive = (ps) => ps < 0n ? 0n : ps, here = location.href.split('#')[0];
    const values = new URLSearchParams({ url: new URL(`perfetto/trace?${wanted({ from, to })}`, here).href,
      visStart: positive(from) / 1000n, visEnd: positive(to) / 1000n + 1n });
    tab.location = new URL(`perfetto/#!/viewer?${values}`, here).href;
  } catch (error) {
    tab?.close();
    throw error;
  }
}
