// The cursors: fields that show their times and accept others, and searches for a time.
import { by } from '../kit/page.js';
import { absolute, exact, timeOf } from '../kit/time.js';

export class Cursors {
  // `page` has the `ends` of the run, can `place` a cursor at a time or remove it (null), and `say` a line.
  constructor(view, page) {
    Object.assign(this, { view, page });
    for (const name of ['a', 'b']) {
      const field = this.field(name);
      field.addEventListener('keydown', (event) => { if (event.key === 'Enter') { event.preventDefault(); this.set(name); } });
      field.addEventListener('focus', () => field.select());
      field.addEventListener('blur', () => this.restore(name));
    }
  }

  field(name) { return by(`cursor-${name}`); }

  text(name) { return this.view[name] === null ? '' : absolute(this.view[name]); }

  // A field that is being edited keeps its text.
  show() {
    const { a, b } = this.view;
    for (const name of ['a', 'b']) if (document.activeElement !== this.field(name)) this.restore(name);
    by('between').textContent = a === null || b === null ? '' : `B − A = ${exact(b - a)}`;
  }

  restore(name) {
    const field = this.field(name), text = this.text(name);
    if (field.value !== text) field.value = text;
    field.removeAttribute('aria-invalid');
  }

  // Enter: the cursor is placed; without a text, it is removed.
  set(name) {
    const field = this.field(name), text = field.value.trim();
    if (text === this.text(name) || this.go(name, text)) {
      if (text) field.value = this.text(name);
      field.removeAttribute('aria-invalid');
      field.select();
    } else field.setAttribute('aria-invalid', 'true');
  }

  // Whether the cursor was placed; the line says so, or why it was not.
  go(name, text) {
    const label = `cursor ${name.toUpperCase()}`, [begin, end] = this.page.ends();
    if (!text) {
      this.page.place(name, null);
      this.page.say(`${label} removed`);
      return true;
    }
    const time = timeOf(text, begin, end);
    if (time === null) this.page.say(`${label}: '${text}' is not a time; a time has a unit: 1 ms, 0.25 s, 25 % of the run`);
    else if (time < begin) this.page.say(`${label}: ${absolute(time)} is before the beginning of the run, ${absolute(begin)}`);
    else if (time > end) this.page.say(`${label}: ${absolute(time)} is after the end of the run, ${absolute(end)}`);
    else {
      this.page.place(name, time);
      this.page.say(`${label} is at ${absolute(time)}`);
      return true;
    }
    return false;
  }

  // A search for a time; false: the text is none.
  find(text) {
    if (timeOf(text, ...this.page.ends()) === null) return false;
    this.go('a', text);
    return true;
  }
}
