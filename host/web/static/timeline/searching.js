// Searches, and the list of what they find.
import { answered, ask, reason } from '../kit/ask.js';
import { by } from '../kit/page.js';
import { count } from '../kit/text.js';
import { absolute, exact } from '../kit/time.js';

// How long a hit took, in words; and as a number: what is not known comes last.
const took = ({ took }) => took === null ? '' : /^-?\d+$/.test(took) ? exact(BigInt(took)) : took;
const length = ({ took }) => /^-?\d+$/.test(took ?? '') ? Number(took) : -Infinity;

const number = (n, counted) => `${counted ? '' : 'at least '}${count(n)}`;

export class Search {
  // `page` can `show` what was found with a note, `choose` nothing, and `complain`, and knows which nodes are `visible`: a
  // list, or an empty text, which means all; `nodes` gives the name of a node.
  constructor(words, lists, nodes, page) {
    Object.assign(this, { words, lists, nodes, page });
    this.listed = { q: '', hits: [] };
    by('hits-sort').addEventListener('click', () => {
      by('hits-sort').setAttribute('aria-pressed', String(!this.sorted));
      this.again();
    });
    by('hits-close').addEventListener('click', () => lists.open('hits', false));
  }

  get sorted() { return by('hits-sort').getAttribute('aria-pressed') === 'true'; }

  // The next match after a time, or the last one before it, of the nodes that are not hidden.
  async find(backwards, at) {
    const q = by('text').value.trim();
    if (!q) { by('text').focus(); return; }
    this.words.say('searching');
    try {
      const found = await answered(await ask('search', { q, at, back: backwards ? 1 : 0, ...this.only() }));
      this.page.complain('');
      if (!found) { await this.nothing(q, at); return; }
      this.page.show(found, found.wrapped ? `from the ${backwards ? 'end' : 'beginning'} of the run again` : '');
      await this.list(q, found);
    } catch (error) {
      this.page.complain('');
      this.none(reason(error));
    }
  }

  only() {
    const nodes = this.page.visible();
    return nodes && { nodes };
  }

  // The foot's line and the list are of another picture: what is not of what was chosen goes, unless a listed hit is in sight.
  leave(from, to) {
    if (this.listed.hits.some(({ time_ps: time }) => from !== null && BigInt(time) >= from && BigInt(time) <= to)) return;
    this.lists.open('hits', false);
    this.listed = { q: '', hits: [] };
  }

  async nothing(q, at) {
    const { hidden, counted } = this.page.visible() ? await this.asked(q, at) : { hidden: 0, counted: true };
    if (!hidden && !counted) this.none(`${q}: none on the nodes that are shown; hidden nodes were not searched to the end`);
    else this.none(hidden ? `${q}: none on the nodes that are shown, ${number(hidden, counted)} on hidden nodes` : `${q}: none in the whole run`);
  }

  none(text) {
    this.lists.open('hits', false);
    this.page.choose(null);
    this.words.say(text);
  }

  async asked(q, at) { return answered(await ask('hits', { q, at, longest: this.sorted ? 1 : 0, ...this.only() })); }

  // The list stays while one goes from hit to hit in it.
  async list(q, found) {
    const same = (hit) => hit.time_ps === found.time_ps && hit.node === found.node && hit.text === found.text;
    if (this.listed.q === q && !by('hits').hidden && this.listed.hits.some(same)) {
      this.now = this.listed.hits.find(same);
      this.lists.mark('hits', this.order.indexOf(this.now));
      return;
    }
    const only = this.page.visible(), answer = await this.asked(q, found.time_ps);
    if (by('text').value.trim() !== q) return;
    this.listed = { q, only, at: found.time_ps, ...answer };
    this.now = answer.hits.find(same);
    this.draw();
  }

  // The same hits in another order, or of other nodes.
  async again() {
    const { q, at } = this.listed, found = this.now ?? { time_ps: at };
    this.listed = { q: '', hits: [] };
    try {
      await this.list(q, found);
    } catch (error) {
      this.page.complain(reason(error));
    }
  }

  // Called when nodes were hidden, or shown again.
  filtered() { if (this.listed.q && !by('hits').hidden && this.listed.only !== this.page.visible()) this.again(); }

  // The hits around a time, in order of time, or the longest first: of all, or of those that are listed.
  draw() {
    const { hits, before, after, longest, total, hidden, counted } = this.listed, { sorted } = this;
    by('hits-sort').hidden = !hits.some((hit) => hit.took !== null);
    this.order = sorted && !longest ? [...hits].sort((one, other) => length(other) > length(one) ? 1 : length(other) < length(one) ? -1 : 0) : hits;
    this.lists.show('hits', hits.length < total || !counted ? `${count(hits.length)} of ${number(total, counted)} hits` : total === 1 ? '1 hit' : `${count(total)} hits`,
      this.order.map((hit) => [`${absolute(BigInt(hit.time_ps), 1000)} ${took(hit) && `(${took(hit)}) `}${hit.node < 0 ? '' : this.nodes(hit.node)}: ${hit.text}`,
        () => { this.now = hit; this.page.show(hit); }]),
      this.order.indexOf(this.now), this.notes(hits, before, after, longest, total, hidden, counted));
  }

  notes(hits, before, after, longest, total, hidden, counted) {
    const more = [before ? 'earlier' : '', after ? 'later' : ''].filter(Boolean).join(' and '), { sorted } = this;
    return [sorted && longest && hits.length < total ? 'These are the longest ones.' : '',
      sorted && !longest && more ? `These ${hits.length} are sorted, not all hits.` : '',
      more && `There are ${more} ones. N goes on.`,
      hidden ? `Not listed: ${number(hidden, counted)} on hidden nodes.` : ''].filter(Boolean).join(' ');
  }
}
