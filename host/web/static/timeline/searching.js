// Searches, and the list of what they find.
import { answered, ask, reason } from '../kit/ask.js';
import { by } from '../kit/page.js';
import { absolute, exact } from '../kit/time.js';

// How long a hit took, in words; and as a number: what is not known comes last.
const took = ({ took }) => took === null ? '' : /^-?\d+$/.test(took) ? exact(BigInt(took)) : took;
const length = ({ took }) => /^-?\d+$/.test(took ?? '') ? Number(took) : -Infinity;

export class Search {
  // `page` can `show` what was found with a note, `choose` nothing, and `complain`; `nodes` gives the name of a node.
  constructor(words, lists, nodes, page) {
    Object.assign(this, { words, lists, nodes, page });
    this.listed = { q: '', hits: [] };
    by('hits-sort').addEventListener('click', () => {
      by('hits-sort').setAttribute('aria-pressed', by('hits-sort').getAttribute('aria-pressed') !== 'true');
      this.draw();
    });
    by('hits-close').addEventListener('click', () => lists.open('hits', false));
  }

  // The next match after a time, or the last one before it.
  async find(backwards, at) {
    const q = by('text').value.trim();
    if (!q) { by('text').focus(); return; }
    this.words.say('searching');
    try {
      const found = await answered(await ask('search', { q, at, back: backwards ? 1 : 0 }));
      this.page.complain('');
      if (!found) { this.none(`${q}: none in the whole run`); return; }
      this.page.show(found, found.wrapped ? `from the ${backwards ? 'end' : 'beginning'} of the run again` : '');
      await this.list(q, found);
    } catch (error) {
      this.page.complain('');
      this.none(reason(error));
    }
  }

  // The foot's line and the list are of another picture: what is not of what was chosen goes, unless a listed hit is in sight.
  leave(from, to) {
    if (this.listed.hits.some(({ time_ps: time }) => from !== null && BigInt(time) >= from && BigInt(time) <= to)) return;
    this.lists.open('hits', false);
    this.listed = { q: '', hits: [] };
  }

  none(text) {
    this.lists.open('hits', false);
    this.page.choose(null);
    this.words.say(text);
  }

  // The list stays while one goes from hit to hit in it.
  async list(q, found) {
    const same = (hit) => hit.time_ps === found.time_ps && hit.node === found.node && hit.text === found.text;
    if (this.listed.q === q && !by('hits').hidden && this.listed.hits.some(same)) {
      this.now = this.listed.hits.find(same);
      this.lists.mark('hits', this.order.indexOf(this.now));
      return;
    }
    const answer = await answered(await ask('hits', { q, at: found.time_ps }));
    if (by('text').value.trim() !== q) return;
    this.listed = { q, ...answer };
    this.now = answer.hits.find(same);
    this.draw();
  }

  // The listed hits, in order of time, or the longest first.
  draw() {
    const { hits, before, after } = this.listed, more = [before ? 'earlier' : '', after ? 'later' : ''].filter(Boolean).join(' and ');
    const sorted = by('hits-sort').getAttribute('aria-pressed') === 'true';
    by('hits-sort').hidden = !hits.some((hit) => hit.took !== null);
    this.order = sorted ? [...hits].sort((one, other) => length(other) > length(one) ? 1 : length(other) < length(one) ? -1 : 0) : hits;
    this.lists.show('hits', more ? `${hits.length} of the hits` : hits.length === 1 ? '1 hit' : `${hits.length} hits`,
      this.order.map((hit) => [`${absolute(BigInt(hit.time_ps), 1000)} ${took(hit) && `(${took(hit)}) `}${hit.node < 0 ? '' : this.nodes(hit.node)}: ${hit.text}`,
        () => { this.now = hit; this.page.show(hit); }]),
      this.order.indexOf(this.now), more && `There are ${more} ones${sorted ? ', which are not sorted here' : ''}. N goes on.`);
  }
}
