// The verdicts on rules: a list of rules and of the places where they fail or are undecided, and marks at these places.
import { ask, reason } from '../kit/ask.js';
import { by } from '../kit/page.js';
import { absolute } from '../kit/time.js';

const AGAIN_MS = 500;

export class Rules {
  // `page` can `show` a place with a note, `complain`, and draw what `changed`; `nodes` gives the name of a node.
  constructor(lists, nodes, page) {
    Object.assign(this, { lists, nodes, page, marks: [], judged: null, open: new Set() });
    by('rules-close').addEventListener('click', () => lists.open('rules', false));
    by('judged').addEventListener('click', () => this.toggle());
  }

  // Asks until the rules are judged.
  async load() {
    try {
      this.judged = await (await ask('verdicts')).json();
      if (!this.judged) { setTimeout(() => this.load(), AGAIN_MS); return; }
      this.marks = this.judged.rules.flatMap(({ name, where }) => where.map((place) => ({ kind: 'mark', name, node: place.node,
        from: BigInt(place.time_ps), colour: place.failed ? 'bad' : 'doubt', why: place.why })));
      by('judged').lastElementChild.textContent = `Rules: ${this.judged.verdict}`;
      this.page.changed();
      if (this.judged.verdict !== 'pass') this.list();
    } catch (error) {
      this.page.complain(reason(error));
    }
  }

  toggle() {
    if (!by('rules').hidden) this.lists.open('rules', false);
    else if (this.judged) this.list();
  }

  list(now = -1) {
    const rows = [];
    for (const rule of this.judged.rules) {
      const places = this.marks.filter((mark) => mark.name === rule.name), open = this.open.has(rule.name);
      rows.push([`${places.length ? (open ? '▾ ' : '▸ ') : ''}${rule.name}: ${rule.verdict}${this.count(rule)}`, () => this.choose(rule, places), rule.verdict]);
      if (open) for (const place of places) rows.push([`${absolute(place.from, 1000)} ${this.nodes(place.node)}: ${place.why}`, () => this.page.show(place), 'place']);
    }
    this.lists.show('rules', `Rules: ${this.judged.verdict}`, rows, now, 'Marks are at the first ten places of each rule.');
  }

  count({ failed, undecided, instances }) {
    const parts = [failed ? `${failed} failed` : '', undecided ? `${undecided} undecided` : ''].filter(Boolean);
    return parts.length ? ` (${parts.join(', ')} of ${instances})` : ` (${instances})`;
  }

  // Opens or closes the places of a rule, and goes to the first of them.
  choose(rule, places) {
    if (!this.open.delete(rule.name) && places.length) {
      this.open.add(rule.name);
      this.page.show(places[0]);
    }
    this.list();
  }
}
