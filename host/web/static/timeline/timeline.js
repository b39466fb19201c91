// The timeline: what is shown, how a user moves, and what the server is asked.
import { ask, of, reason, unpacked } from '../kit/ask.js';
import { Boards } from '../kit/boards.js';
import { by, complain, dressed } from '../kit/page.js';
import { Bookmarks } from './bookmarks.js';
import { Cursors } from './cursors.js';
import { again, Words, written } from './found.js';
import { Lanes } from './lanes.js';
import { notes, range } from './notes.js';
import { Overview } from './overview.js';
import { Pointer } from './pointer.js';
import { Questions } from './questions.js';
import { Rules } from './rules.js';
import { Search } from './searching.js';
import { openPerfetto, Selection } from './selection.js';
import { listed, ranges, Shown } from './shown.js';
import { Lists } from './side.js';
import { count } from '../kit/text.js';
import { exact } from '../kit/time.js';

const LANES = 64, OVERVIEW = 1200;

const lanes = new Lanes(by('lanes'));
const overview = new Overview(by('overview'), (from, to) => {
  const whole = Number(end - begin);
  go(begin + BigInt(Math.round(from * whole)), (to - from) * whole);
});
// Absolute times are BigInt picoseconds; a span is a number of them. `wanted`: what the address says was chosen.
const view = { from: 0n, span: 1, a: null, b: null, first: 0, board: null, chosen: null, wanted: '' };
const boards = new Boards(by('boards'), (board) => { onlyBoard(board); moved(); });
let about = null, begin = 0n, end = 1n, picture = null, busy = false, stale = false, drawn = false;
// While a recording goes on: 'all' shows all of it, 'now' keeps its end in the picture, 'still' shows what it shows.
let follows = 'still', ended = '';
const past = [], GROWS_MS = 400;
const nodeName = (node) => about.node_names[node] ?? `node ${node}`;
const words = new Words(by('card'), by('detail'), by('fields'), nodeName,
  async ({ from, node }) => (await ask('item', { at: from, node })).json());
const shows = new Shown(lanes, nodeName, () => { pointed = null; draw(); refresh(); linkSoon(); searching.filtered(); });
const lists = new Lists(() => { draw(); refresh(); });

// ------------------------------------------------------------------------------------ the server

// One picture is asked for at a time; while it is made, the last one is shown, moved and stretched.
async function refresh() {
  stale = true;
  if (busy || !about) return;
  busy = true;
  try {
    while (stale) {
      stale = false;
      const span = Math.max(Math.ceil(view.span), 2), columns = Math.max(Math.min(Math.round(lanes.width), span, 4096), 1);
      const got = await unpacked(await ask('picture', { from: view.from, to: view.from + BigInt(span), columns,
        first: view.first, lanes: shownLanes(), ...searching.only() }));
      picture = Object.assign(got, { from: BigInt(got.from_ps), span, unit: about.framed ? 'events' : 'items' });
      complain(got.trouble);
      if (view.wanted && picture.from === view.from) rechoose();
      draw();
    }
  } catch (error) {
    complain(reason(error));
  } finally {
    busy = false;
  }
}

async function whole() {
  const got = await unpacked(await ask('overview', { columns: OVERVIEW }));
  overview.show(got.counts.subarray(0, OVERVIEW), got.counts.subarray(OVERVIEW));
  mark();
  if (!got.ready) setTimeout(async () => { await whole(); refresh(); }, 400);
}

// ------------------------------------------------------------------------------------ what is shown

function draw() {
  if (!about || drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    shows.legend(picture);
    const room = window.innerHeight - by('stage').getBoundingClientRect().top - window.scrollY - by('panel').offsetHeight - 12;
    lanes.draw(view, picture, about, shows.nodes(view.first, Math.min(about.nodes - view.first, shownLanes())), room);
    by('side').style.setProperty('--room', `${Math.max(room, 200)}px`);     // or it would make the page taller
    card();
    texts();
  });
}

// The card is beside what the pointer is at, or else beside what was chosen.
let pointed = null;
function card() {
  const found = pointed ?? view.chosen, place = found && lanes.where(view, picture, found);
  const x = place && (pointed ? pointed.at : Math.min(Math.max(place.x, lanes.left), place.x + place.wide));
  if (!place || x < lanes.left || x > lanes.left + lanes.width) words.hide();
  else words.beside(found, x, place.top, place.lane.y + place.lane.tall).catch((error) => complain(reason(error)));
}

// `note`: what is said of it besides.
function choose(found, note) {
  view.chosen = found;
  view.wanted = '';
  pointed = null;
  linkSoon();
  if (found) words.panel(found, note).then(card).catch((error) => complain(reason(error)));
  draw();
}

// What the address says was chosen, once its picture is there.
function rechoose() {
  const found = again(picture, view.wanted);
  if (found) choose(found); else if (picture.ready) view.wanted = '';
}

function laneMenu() {
  const place = view.chosen && lanes.where(view, picture, view.chosen);
  if (place) shows.menu(view.chosen.node, 8, place.lane.y + 6);
}

// Where many lanes need more than the window: the one of what was chosen comes into it.
function reveal() {
  const place = view.chosen && lanes.where(view, picture, view.chosen);
  if (!place) return;
  const above = by('lanes').getBoundingClientRect().top, floor = window.innerHeight - by('panel').offsetHeight;
  if (above + place.lane.y < 0 || above + place.lane.y + place.lane.tall > floor) {
    window.scrollBy(0, above + place.lane.y + place.lane.tall / 2 - floor / 2);
  }
}

function texts() {
  by('range').textContent = range(view);
  cursors.show();
  selection.follow();
  by('note').textContent = notes(about, ended, picture, lanes.scale);
  const { dataset } = by('lanes');
  dataset.shows = picture?.items ? 'items' : 'counts';
  dataset.from = picture?.from_ps ?? '';
  dataset.to = picture?.to_ps ?? '';
  Object.assign(dataset, { follows, estimated: picture?.estimated ?? false, items: picture?.items?.time.length ?? '', states: picture?.spans.many ? 'shares' : picture?.spans.rows.length ?? '',
    marks: lanes.marks.length, messages: picture?.arrows.rows.length ?? '', losses: picture?.losses.length ?? '' });
}

function mark() {
  const length = Number(end - begin), from = Number(view.from - begin) / length;
  overview.mark(from, from + view.span / length);
}

// ------------------------------------------------------------------------------------ moving

// The whole run with a little room on both sides is the longest stretch, two clocks are the shortest.
function allowed(span) {
  return Math.min(Math.max(span, about.clock_ps * 2, 4), Math.max(Number(end - begin) * 1.02, 4));
}

function moved() {
  const span = allowed(view.span);
  view.from += BigInt(Math.round((view.span - span) / 2));
  view.span = span;
  // Not past the run.
  const slack = Math.min(Number(end - begin) * .01, span * .02), last = end + BigInt(Math.round(slack - span));
  if (view.from > last) view.from = last;
  if (view.from < begin - BigInt(Math.round(slack))) view.from = begin - BigInt(Math.round(slack));
  pointed = null;
  mark();
  draw();
  refresh();
  linkSoon();
}

function go(from, span, keep = true) {
  follows = 'still';
  if (keep) past.push([view.from, view.span]);
  view.from = from;
  view.span = span;
  moved();
  words.forget();
  searching.leave(view.from, view.from + BigInt(Math.round(view.span)));
}

function back() {
  if (past.length) go(...past.pop(), false);
}

function all(keep = true) {
  const length = Number(end - begin);
  go(begin - BigInt(Math.round(length * .01)), length * 1.02, keep);
  follows = 'all';
}

// The end of the run, in as long a stretch as is shown; while the recording goes on, the picture moves with it.
function now() {
  const span = follows === 'all' ? Math.min(view.span, 1e12) : view.span;
  go(end - BigInt(Math.round(span * .98)), span);
  follows = 'now';
}

// The time at `share` of the picture stays where it is.
function zoom(factor, share = .5) {
  const span = allowed(view.span * factor);
  if (follows === 'now') share = .98; else follows = 'still';
  view.from += BigInt(Math.round((view.span - span) * share));
  view.span = span;
  moved();
}

function pan(share) {
  follows = 'still';
  view.from += BigInt(Math.round(view.span * share));
  moved();
}

function centre(time, span = view.span) {
  go(time - BigInt(Math.round(span / 2)), span);
}

function clocks() {
  centre(view.a ?? view.from + BigInt(Math.round(view.span / 2)), about.clock_ps * 40);
}

function toCursors() {
  if (view.a === null || view.b === null || view.a === view.b) return;
  const low = view.a < view.b ? view.a : view.b, wide = Number(view.a < view.b ? view.b - view.a : view.a - view.b);
  go(low - BigInt(Math.round(wide * .05)), wide * 1.1);
}

function cursor(name, time = view.from + BigInt(Math.round(view.span / 2))) {
  view[name] = time;
  draw();
  linkSoon();
}

// A board of a large machine is shown alone, or as many nodes as fit.
function shownLanes() {
  return view.board ? view.board.nodes : LANES;
}

function onlyBoard(board) {
  view.board = board;
  view.first = board ? board.first : Math.floor(view.first / LANES) * LANES;
  picture = null;
  boards.mark(board);
}

function otherNodes(way) {
  const first = way > 0 ? view.first + shownLanes() : view.first - 1;
  if (first < 0 || first >= about.nodes) return;
  if (view.board) onlyBoard(boards.of(first));
  else view.first = way > 0 ? first : Math.max(view.first - LANES, 0);
  picture = null;
  moved();
}

// ------------------------------------------------------------------------------------ the address

let linking = 0;
function linkSoon() {
  clearTimeout(linking);
  linking = setTimeout(link, 120);
}

// The tab of the browser keeps it, too, for when it comes back from the live view.
function link() {
  history.replaceState(null, '', `#${address()}`);
  sessionStorage.setItem(`timeline of ${about.name}`, address());
}

function address() {
  const values = { from: view.from, span: Math.round(view.span) };
  if (view.a !== null) values.a = view.a;
  if (view.b !== null) values.b = view.b;
  if (view.first) values.first = view.first;
  if (view.board) values.board = 1;
  if (by('text').value) values.q = by('text').value;
  if (written(view.chosen) || view.wanted) values.on = written(view.chosen) || view.wanted;
  const text = new URLSearchParams(values);
  shows.save(text);
  return text.toString();
}

function open() {
  const values = new URLSearchParams(location.hash.slice(1) || sessionStorage.getItem(`timeline of ${about.name}`) || '');
  const whole = (name) => /^-?\d{1,20}$/.test(values.get(name) ?? '') ? BigInt(values.get(name)) : null;
  const from = whole('from'), span = whole('span'), first = whole('first');
  view.a = whole('a');
  view.b = whole('b');
  view.first = first !== null && first >= 0n && first < BigInt(about.nodes) ? Number(first) : 0;
  view.board = values.get('board') === '1' ? boards.of(view.first) : null;
  if (view.board) view.first = view.board.first;
  boards.mark(view.board);
  shows.load(values, about.nodes);
  by('text').value = values.get('q') ?? '';
  choose(null);
  words.reset();
  searching.leave(null);
  view.wanted = values.get('on') ?? '';
  if (from !== null && span !== null && span > 0n) go(from, Number(span), false); else all(false);
}

// ------------------------------------------------------------------------------------ search

// The picture goes to a time, unless it is well in sight.
function inSight(time) {
  const share = Number(time - view.from) / view.span;
  if (share < .05 || share > .95) centre(time); else moved();
}

// Chooses what a search found, and shows its lane.
function pick(found, note) {
  if (found.node >= 0 && view.board) onlyBoard(boards.of(found.node));
  else if (found.node >= 0) view.first = Math.floor(found.node / LANES) * LANES;
  // A search finds nothing on a hidden node; the place of a rule or of an answer in SQL may be on one.
  if (shows.away.delete(found.node)) note = [note, `${nodeName(found.node)} was hidden, and is shown`].filter(Boolean).join('; ');
  choose({ kind: found.kind, node: found.node, name: found.text, from: BigInt(found.time_ps), to: found.end_ps === null ? null : BigInt(found.end_ps),
    other: found.other, got: found.received, colour: found.colour, why: found.why }, note);
  requestAnimationFrame(() => requestAnimationFrame(reveal));
}

// Cursor A and the picture go to what a search found.
function show(found, note) {
  view.a = BigInt(found.time_ps);
  pick(found, note);
  inSight(view.a);
}

// The picture goes to all of what was found, unless that is well in sight; the cursors stay.
function lead(found) {
  const from = BigInt(found.time_ps), to = BigInt(found.end_ps ?? found.lost_ps ?? end), long = Math.max(Number(to - from), about.clock_ps * 4);
  pick(found);
  if (long * 20 > view.span && from >= view.from && to <= shown()[1]) moved();
  else go(from - BigInt(Math.round(long)), long * 3);
}

const bookmarks = new Bookmarks(lists, () => address(), (text) => { location.hash = text; }, complain);
const searching = new Search(words, lists, nodeName, { show, choose, complain, visible: () => shows.visible() });

const marking = { complain, show: (mark) => show({ ...mark, time_ps: mark.from, text: mark.name, end_ps: null }),
  changed: () => { lanes.marks = [...rules.marks, ...questions.marks]; draw(); } };
const rules = new Rules(lists, nodeName, marking), questions = new Questions(lists, marking);

function onlyNodes(nodes, text) {
  lists.open('hits', false);
  choose(null);
  if (!nodes.length) { words.say(`${text}: there are no such nodes; nodes are 0 to ${about.nodes - 1}`); return; }
  if (!view.board) view.first = Math.floor(nodes[0] / LANES) * LANES;
  shows.only(nodes);
  moved();
  words.say(`${text}: ${count(nodes.length)} of ${count(about.nodes)} nodes are shown`);
}

const cursors = new Cursors(view, { ends: () => [begin, end],
  say: (text) => { choose(null); words.say(text); },
  place: (name, time) => {
    view[name] = time;
    if (time !== null) inSight(time);
    draw();
    linkSoon();
  } });

function find(backwards) {
  const text = by('text').value.trim();
  if (cursors.find(text)) { lists.open('hits', false); return; }
  const only = listed(text, about.nodes);
  if (only) { onlyNodes(only, text); return; }
  searching.find(backwards, view.a ?? (backwards ? view.from + BigInt(Math.round(view.span)) : view.from - 1n));
}

// The interval between the cursors; null: there is none.
function between() {
  const { a, b } = view;
  return a === null || b === null || a === b ? null : a < b ? [a, b] : [b, a];
}

const shown = () => [view.from, view.from + BigInt(Math.ceil(view.span))];

// The nodes that are neither hidden nor of another board than the one that is open, as ranges; empty: all.
function seen() {
  const { board } = view, nodes = shows.seen().filter((node) => !board || (node >= board.first && node < board.first + board.nodes));
  return nodes.length === about.nodes ? '' : ranges(nodes) || 'none';
}

const selection = new Selection(lists, nodeName, { between, shown, seen, complain, perfetto, show: lead });

async function perfetto([from, to, nodes]) {
  try {
    await openPerfetto(from < begin ? begin : from, to > end ? end : to, nodes);
    complain('');
  } catch (error) {
    complain(reason(error));
  }
}

// ------------------------------------------------------------------------------------ mouse and keys

const stage = by('lanes');
const pointer = new Pointer(stage, lanes, view, { pan, zoom, cursor, choose, shows,
  under: (x, y) => lanes.under(picture, view, x, y),
  point: (found) => { pointed = found; card(); },
  drag: (from) => { follows = 'still'; view.from = from; moved(); },
  interval: (a, b) => { Object.assign(view, { a, b }); draw(); },
  selected: () => { linkSoon(); selection.open(); } });
const selects = (yes = !pointer.selecting) => pointer.selects(yes);

function restyle() {
  lanes.restyle();
  overview.restyle();
  draw();
}

// Keys zoom about what was chosen or cursor A, if it is in sight, or else about the centre.
function zoomed(factor) {
  const shares = [view.chosen?.from, view.a].filter((time) => time !== null && time !== undefined)
    .map((time) => Number(time - view.from) / view.span).filter((share) => share >= 0 && share <= 1);
  zoom(factor, shares[0] ?? .5);
}

const KEYS = { w: () => zoomed(.6), s: () => zoomed(1 / .6), '+': () => zoomed(.6), '-': () => zoomed(1 / .6), a: () => pan(-.2),
  d: () => pan(.2), arrowleft: () => pan(-.2), arrowright: () => pan(.2), 0: all, home: all, e: now, end: now, z: clocks, backspace: back,
  1: () => cursor('a'), 2: () => cursor('b'), f: toCursors, c: () => { view.a = view.b = null; draw(); linkSoon(); },
  '/': () => by('text').focus(), n: (event) => find(event.shiftKey), pageup: () => otherNodes(-1), pagedown: () => otherNodes(1),
  p: () => perfetto([...shown(), seen()]), i: () => selects(), b: () => bookmarks.toggle(), r: () => rules.toggle(), q: () => questions.toggle(), enter: () => selection.open(), l: laneMenu, ...dressed(restyle) };

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') {
    event.preventDefault();
    if (!event.target.matches('input, textarea')) { choose(null); words.say(''); selects(false); shows.close(); }
    stage.focus();
    return;
  }
  if (!about || event.target.matches('input, select, textarea') || ((event.key === 'Enter' || event.key === ' ') && event.target.matches('button')) || event.ctrlKey || event.metaKey || event.altKey) return;
  const action = KEYS[event.key.toLowerCase()];
  if (action) { event.preventDefault(); action(event); }
});

by('search').addEventListener('submit', (event) => { event.preventDefault(); find(false); });
by('previous').addEventListener('click', () => find(true));
by('now').addEventListener('click', now);
by('perfetto').addEventListener('click', () => perfetto([...shown(), seen()]));
by('select').addEventListener('click', () => selects());
window.addEventListener('resize', () => { draw(); refresh(); });
window.addEventListener('hashchange', () => { if (about) open(); });

function figures() {
  const parts = [`${count(about.kept)} items`, ...(about.framed ? [`${count(about.items)} events`] : []), `${count(about.nodes)} nodes`, exact(BigInt(Number(Number(end - begin).toPrecision(4))))];
  by('figures').replaceChildren(...parts.map((text) => Object.assign(document.createElement('span'), { textContent: text })),
    Object.assign(document.createElement('span'), { textContent: `${count(about.lost)} items lost`, className: about.lost ? 'some' : '' }));
  by('now').hidden = !about.growing;
}

// What has been recorded since: the picture follows, if it shows the end or all.
async function grow() {
  try {
    const before = about, last = end;
    about = await (await ask('run')).json();
    begin = BigInt(about.begin_ps);
    end = BigInt(about.end_ps);
    figures();
    if (!about.growing) ended = about.how;
    if (end !== last || !about.growing) {
      const kept = follows;
      if (kept === 'all') all(false);
      else if (kept === 'now') { view.from = end - BigInt(Math.round(view.span * .98)); moved(); }
      else { mark(); if (view.from + BigInt(Math.round(view.span)) > last || before.growing !== about.growing) refresh(); }
      follows = kept;
      await whole();
    }
    if (about.trouble) complain(about.trouble);
  } catch (error) {
    complain(reason(error));
  }
  if (about.growing) setTimeout(grow, GROWS_MS); else { draw(); judge(); }
}

// When the recording has ended.
function judge() {
  if (!about.rules) return;
  by('judged').hidden = false;
  rules.load();
}

async function main() {
  about = await (await ask('run')).json();
  of(about.name);
  begin = BigInt(about.begin_ps);
  end = BigInt(about.end_ps);
  by('name').textContent = about.name;
  document.title = `HYPERMON: ${about.name}`;
  figures();
  boards.show(about.boards);
  by('names').append(...[...about.events.slice(0, 200), 'loss'].map((name) => Object.assign(document.createElement('option'), { value: name })));
  open();
  await whole();
  if (about.growing) setTimeout(grow, GROWS_MS); else judge();
}

main().catch((error) => complain(error.message));
