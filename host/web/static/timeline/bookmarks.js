// Bookmarks with notes, which are kept beside the run.
import { ask, reason } from '../kit/ask.js';
import { by } from '../kit/page.js';

export class Bookmarks {
  // `address` gives that of the picture, `go` shows one, `lists` has the column beside the lanes.
  constructor(lists, address, go, complain) {
    Object.assign(this, { lists, address, go, complain });
    by('bookmarks-form').addEventListener('submit', (event) => { event.preventDefault(); this.add(); });
    by('bookmarks-close').addEventListener('click', () => lists.open('bookmarks', false));
    by('bookmark').addEventListener('click', () => this.toggle());
  }

  async toggle() {
    if (!by('bookmarks').hidden) { this.lists.open('bookmarks', false); return; }
    await this.change(() => ask('bookmarks'));
    this.lists.open('bookmarks', true);
    by('note-text').focus({ preventScroll: true });
  }

  add() {
    return this.change(async () => {
      const answer = await ask('bookmarks', { note: by('note-text').value.trim(), address: this.address() }, 'POST');
      by('note-text').value = '';
      return answer;
    });
  }

  async change(act) {
    try {
      this.show(await (await act()).json());
      this.complain('');
    } catch (error) {
      this.complain(reason(error));
    }
  }

  show(all) {
    by('bookmarks-list').replaceChildren(...all.map(({ number, note, address }) => {
      const row = document.createElement('li'), text = note || `picture ${number}`;
      const open = Object.assign(document.createElement('button'), { type: 'button', textContent: text });
      const away = Object.assign(document.createElement('button'), { type: 'button', textContent: '×', className: 'away' });
      away.setAttribute('aria-label', `Remove ${text}`);
      open.addEventListener('click', () => this.go(address));
      away.addEventListener('click', () => this.change(() => ask('bookmarks/remove', { number }, 'POST')));
      row.append(open, away);
      return row;
    }));
    by('bookmarks-note').textContent = all.length ? '' : 'None yet. They are kept in bookmarks.json of the run.';
  }
}
