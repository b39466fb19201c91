// The column beside the lanes: lists that one clicks. A list is there while it has something.
import { by } from '../kit/page.js';

export class Lists {
  // `changed` is called when the column comes or goes: the lanes are narrower or wider then.
  constructor(changed) { this.changed = changed; }

  // `rows`: a text, what a click does, and the class of the row, if it has one; `now`: the row that is shown.
  show(name, title, rows, now = -1, note = '') {
    by(`${name}-title`).textContent = title;
    by(`${name}-note`).textContent = note;
    by(`${name}-list`).replaceChildren(...rows.map(([text, act, kind = ''], k) => {
      const row = Object.assign(document.createElement('li'), { className: kind }), button = Object.assign(document.createElement('button'), { type: 'button', textContent: text });
      button.addEventListener('click', () => { this.mark(name, k); act(); });
      row.append(button);
      return row;
    }));
    this.mark(name, now);
    this.open(name, true);
  }

  mark(name, now) {
    [...by(`${name}-list`).children].forEach((row, k) => {
      if (k === now) row.firstElementChild.setAttribute('aria-current', 'true');
      else row.firstElementChild.removeAttribute('aria-current');
    });
    // Only the list moves, not the window.
    const row = by(`${name}-list`).children[now], list = by(`${name}-list`);
    if (row) list.scrollTop = row.offsetTop - list.offsetTop - list.clientHeight / 2;
  }

  open(name, shown) {
    by(name).hidden = !shown;
    const { hidden } = by('side');
    by('side').hidden = [...by('side').children].every((each) => each.hidden);
    if (hidden !== by('side').hidden) this.changed();
  }
}
