// The live page: takes what the server sends, shows it, and sends what the user wants.
import { ask, save } from '../kit/ask.js';
import { Boards } from '../kit/boards.js';
import { RateChart } from './chart.js';
import { nodeColour } from '../kit/colours.js';
import { by, complain, dressed } from '../kit/page.js';
import { drawNewest, drawTimeline } from './strips.js';
import { count, duration, quantity } from '../kit/text.js';

const SPANS = [[1, '1 s'], [10, '10 s'], [60, '1 min'], [600, '10 min'], [1e9, 'all']];
const CAUSES = {
  frame_fifo: 'frame FIFO full', node_fifo: 'node FIFO full', vector_fifo: 'vector FIFO full',
  regeneration_gate: 'regeneration board full', regeneration_line: 'lost on a regeneration line',
};
const STATES = { idle: 'idle', recording: 'recording', stopping: 'stopping: the board is drained', ended: 'ended',
  failed: 'failed', following: 'being recorded' };

const chart = new RateChart(by('chart'), by('scale'));
const hidden = new Set();
const shown = (node) => !hidden.has(node);
const boards = new Boards(by('boards'), (board) => look(board && boards.boards.indexOf(board)));
let socket = null, span = 10, held = false, latest = null, dropped = 0, trouble = '';
let board = wantedBoard();     // of a run of several, the one that is shown; null: all

// ------------------------------------------------------------------------------------ what comes

function unpack(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const state = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  const bins = state.bins ?? 0, nodes = state.nodes, numbers = new Float32Array(buffer, 4 + size);
  return { state, picture: {
    bins, nodes, begin: (state.begin_ps ?? 0) / 1e12, bin: (state.bin_ps ?? 1) / 1e12, end: (state.end_ps ?? 0) / 1e12,
    items: numbers.subarray(0, bins * nodes), lost: numbers.subarray(bins * nodes, 2 * bins * nodes) } };
}

function connect() {
  const address = new URL('changes', location.href);
  address.protocol = address.protocol.replace('http', 'ws');
  address.hash = '';
  socket = new WebSocket(address);
  socket.binaryType = 'arraybuffer';
  socket.onopen = () => { dropped = 0; trouble = ''; show(span); };
  socket.onmessage = (message) => {
    if (typeof message.data === 'string') { notice(JSON.parse(message.data)); return; }
    latest = unpack(message.data);
    if (!held) draw(); else controls(latest.state);
  };
  socket.onclose = () => {
    by('state').textContent = 'no connection: is hypermon still running?';
    by('state').dataset.state = 'failed';
    setTimeout(connect, 1000);
  };
}

// What is not a picture: pictures that this page was too slow for, and what fails in the server.
function notice(said) {
  dropped = said.dropped ?? dropped;
  trouble = said.trouble ?? trouble;
  say(latest?.state.failure ?? '');
}

// ------------------------------------------------------------------------------------ what is shown

function draw() {
  if (!latest) return;
  const { state, picture } = latest;
  controls(state);
  figures(state, picture);
  machine(state);
  if (state.boards && state.board === null) return;
  nodesTable(state, picture);
  lossTable(state.losses, !state.boards && Boolean(state.run));
  chart.draw(picture, shown);
  drawTimeline(by('timeline'), picture, shown);
  by('newest-text').textContent = drawNewest(by('newest'), state.newest, state.nodes, shown, state.names ?? {});
}

// A run of several boards: which panels there are, and the map.
function machine(state) {
  by('machine').hidden = !state.boards;
  document.querySelector('main').classList.toggle('all', Boolean(state.boards) && state.board === null);
  if (!state.boards) return;
  document.body.classList.toggle('one', state.board !== null);
  const live = state.state === 'following', [least, most, worst] = boards.show(state.boards, live ? (own) => own.rate : undefined);
  const own = state.boards[state.board] ?? null;
  boards.mark(own);
  by('whole').disabled = board === null;
  const waiting = state.boards.filter((one) => one.state === 'waiting').length;
  by('boards-text').textContent = [own ? `board ${state.board}: nodes ${own.first} to ${own.first + own.nodes - 1} of the run` :
    `faint to strong: ${live ? `${quantity(least, 'items/s')} to ${quantity(most, 'items/s')}` : `${count(least)} to ${count(most)} items`}`,
    worst ? `red: at most ${count(worst)} lost` : 'nothing lost', ...(waiting ? [`${waiting} boards have not begun`] : [])].join('; ');
}

function wantedBoard() {
  const number = new URLSearchParams(location.hash.slice(1)).get('board');
  return /^\d{1,4}$/.test(number ?? '') ? Number(number) : null;
}

function look(number) {
  if (!latest?.state.boards) return;
  board = number;
  history.replaceState(null, '', number === null ? location.pathname : `#board=${number}`);
  all();
  show(span);
}

function controls(state) {
  by('name').textContent = state.name;
  document.title = `HYPERMON: ${state.name}`;
  const said = STATES[state.state] + (state.trigger ? `, ${state.trigger}` : '');
  if (by('state').textContent !== said) by('state').textContent = said;
  by('state').dataset.state = state.state;
  const busy = state.state === 'recording' || state.state === 'stopping';
  for (const id of ['start', 'stop', 'controls']) by(id).hidden = !state.controls;
  by('start').disabled = by('form').querySelector('button').disabled = busy;
  by('stop').disabled = state.state !== 'recording';
  by('perfetto').disabled = busy || state.state === 'following' || !state.run || state.state === 'failed';
  say(state.failure);
  if (busy && state.command) by('command').textContent = state.command;
}

function say(failure) {
  complain([failure, trouble].filter(Boolean).join('; '));
}

function figures(state, picture) {
  const sum = (values) => (values ?? []).reduce((a, b) => a + b, 0);
  const link = state.lost_on_link ?? 0, lost = sum(state.lost) + link;
  by('items').textContent = count(sum(state.items));
  by('rate').textContent = state.state === 'ended' || state.state === 'failed'
    ? `${quantity(sum(state.items) / Math.max((state.time_ps ?? 0) / 1e12, 1e-12), '/s')} on average`
    : `${quantity(sum(state.boards && state.board === null ? state.boards.flatMap((own) => own.rate) : rates(picture)), '/s')} now`;
  by('lost').textContent = count(lost);
  by('lost-card').classList.toggle('some', lost > 0);
  const parts = Object.entries(state.causes ?? {}).filter(([, n]) => n).map(([name, n]) => `${CAUSES[name]}: ${count(n)}`);
  if (link) parts.push(`on the link: ${count(link)}`);
  if (state.missing_blocks) parts.push(`${count(state.missing_blocks)} blocks missing`);
  if (state.torn_bytes) parts.push(`${count(state.torn_bytes)} bytes torn`);
  if (state.faulty_blocks) parts.push(`${count(state.faulty_blocks)} invalid blocks`);
  by('causes').textContent = parts.join(', ') || 'nothing';
  for (const [name, depth] of [['frame', state.identity.frame_depth], ['vector', state.identity.vector_depth]]) {
    const level = state[`${name}_level`] ?? 0;
    by(`${name}-level`).value = depth ? level / depth : 0;
    by(`${name}-text`).textContent = depth ? `${Math.round(100 * level / depth)} %` : '–';
  }
  by('flow').textContent = quantity(state.bytes_per_s, 'B/s');
  by('bytes').textContent = `${quantity(state.bytes ?? 0, 'B')} in total` + (dropped ? `, ${count(dropped)} pictures skipped: this page is slow` : '') + (state.behind > 1e6 ? `, view ${quantity(state.behind, 'B')} behind` : '');
  by('time').textContent = duration(state.time_ps ?? 0);
  by('run').textContent = state.run ?? 'nothing recorded yet';
}

// Over the last second of the picture, or what there is of it. The last bin is counted up to `end` only.
function rates({ bins, nodes, begin, bin, end, items }) {
  const found = new Array(nodes).fill(0), first = Math.max(0, bins - Math.max(1, Math.round(1 / bin)));
  for (let k = first; k < bins; k += 1) for (let node = 0; node < nodes; node += 1) found[node] += items[k * nodes + node];
  return found.map((n) => n / Math.max(end - (begin + first * bin), 1e-12));
}

function nodesTable(state, picture) {
  const body = by('nodes').tBodies[0];
  if (body.rows.length !== state.nodes) {
    body.replaceChildren(...Array.from({ length: state.nodes }, (_, node) => nodeRow(node)));
  }
  const now = rates(picture);
  for (let node = 0; node < state.nodes; node += 1) {
    const cells = body.rows[node].cells, lost = state.lost?.[node] ?? 0;
    cells[1].textContent = quantity(now[node] ?? 0);
    cells[2].textContent = count(state.items?.[node] ?? 0);
    cells[3].textContent = count(lost);
    cells[3].className = lost ? 'bad' : '';
  }
}

function nodeRow(node) {
  const row = document.createElement('tr'), label = document.createElement('label');
  const box = Object.assign(document.createElement('input'), { type: 'checkbox', checked: shown(node) });
  box.addEventListener('change', () => { box.checked ? hidden.delete(node) : hidden.add(node); draw(); });
  const swatch = document.createElement('i');
  swatch.style.background = nodeColour(node);
  label.append(box, swatch, `${node}`);
  row.insertCell().append(label);
  for (let k = 0; k < 3; k += 1) row.insertCell();
  return row;
}

// A click on a loss opens it in the timeline. Rows are made anew only if they change: a user may be about to click.
let shownLosses = '';
function lossTable(losses, linked) {
  const now = JSON.stringify([losses.slice(-50), linked]);
  if (now === shownLosses) return;
  shownLosses = now;
  const body = by('losses').tBodies[0];
  body.replaceChildren(...losses.slice(-50).reverse().map(([node, lost, from, to]) => {
    const row = document.createElement('tr'), at = `${(from / 1e12).toFixed(6)} s`;
    for (const text of [node, count(lost), linked ? '' : at, duration(to - from)]) row.insertCell().textContent = text;
    if (linked) {
      row.cells[2].append(Object.assign(document.createElement('a'), { href: timeline(node, from, to), target: '_blank', textContent: at, title: 'Show it in the timeline' }));
    }
    return row;
  }));
  if (!losses.length) {
    const cell = body.insertRow().insertCell();
    Object.assign(cell, { colSpan: 4, textContent: 'none' });
  }
}

// ------------------------------------------------------------------------------------ what is wanted

async function send(path, body) {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body) });
  if (!answer.ok) say(await answer.text());
}

function start() {
  if (!by('start').disabled && !by('start').hidden) send('start', Object.fromEntries(new FormData(by('form'))));
}

function stop() {
  if (!by('stop').disabled && !by('stop').hidden) send('stop', {});
}

async function perfetto() {
  const button = by('perfetto');
  if (button.disabled) return;
  button.disabled = true;
  try {
    await save(await ask('perfetto', {}, 'POST'));
  } catch (error) {
    latest.state.failure = error.message;
    say(latest.state.failure);
  } finally {
    button.disabled = false;
  }
}

// The address of a stretch around a loss in the timeline: its cursors are at the ends of the loss.
function timeline(node, from, to) {
  const around = Math.max((to - from) * 2, 1e6);
  return `../timeline/#${new URLSearchParams({ from: Math.round(from - around), span: Math.round(to - from + 2 * around), a: from, b: to,
    first: Math.floor(node / 64) * 64 })}`;
}

function show(seconds) {
  span = seconds;
  document.querySelectorAll('#spans input').forEach((box) => { box.checked = Number(box.value) === seconds; });
  if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(board === null ? { span_s: seconds } : { span_s: seconds, board }));
}

function zoom(step) {
  const at = SPANS.findIndex(([s]) => s === span) + step;
  if (SPANS[at]) show(SPANS[at][0]);
}

function hold() {
  held = !held;
  by('hold').setAttribute('aria-pressed', held);
  draw();
}

function all() {
  hidden.clear();
  document.querySelectorAll('#nodes input').forEach((box) => { box.checked = true; });
  draw();
}

function restyle() {
  document.querySelectorAll('#nodes i').forEach((swatch, node) => { swatch.style.background = nodeColour(node); });
  chart.restyle();
  draw();
}

const KEYS = { s: start, x: stop, p: perfetto, h: hold, a: all, b: () => look(null), '+': () => zoom(-1), '-': () => zoom(1), ...dressed(restyle) };

document.addEventListener('keydown', (event) => {
  const typing = event.target.matches('select, input:not([type=radio]):not([type=checkbox])');
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key.toLowerCase()] ?? (SPANS[event.key - 1] && (() => show(SPANS[event.key - 1][0])));
  if (action) { event.preventDefault(); action(); }
});

for (const [seconds, text] of SPANS) {
  const label = document.createElement('label');
  const box = Object.assign(document.createElement('input'), { type: 'radio', name: 'span', value: seconds });
  box.addEventListener('change', () => show(seconds));
  label.append(box, Object.assign(document.createElement('span'), { textContent: text }));
  by('spans').append(label);
}
for (const [id, action] of Object.entries({ start, stop, perfetto, hold, all, whole: () => look(null) })) by(id).addEventListener('click', action);
by('form').addEventListener('submit', (event) => { event.preventDefault(); start(); });
window.addEventListener('resize', draw);
window.addEventListener('hashchange', () => look(wantedBoard()));
connect();
