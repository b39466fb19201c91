// The mouse, and fingers: wheel, drags, clicks, and what the pointer is at.
import { by } from '../kit/page.js';

export class Pointer {
  // `page` moves, places cursors, and so on: see timeline.js.
  constructor(stage, lanes, view, page) {
    Object.assign(this, { stage, lanes, view, page, held: null, selecting: false });
    stage.addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    stage.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      this.held = { x: event.offsetX, from: view.from, far: false, selects: this.selecting || event.shiftKey };
      stage.setPointerCapture(event.pointerId);
    });
    stage.addEventListener('pointermove', (event) => this.move(event));
    stage.addEventListener('pointerleave', () => page.point(null));
    stage.addEventListener('pointerup', (event) => this.up(event));
    stage.addEventListener('pointercancel', () => { this.held = null; });
  }

  // Whether a drag selects an interval, also without Shift.
  selects(yes) {
    this.selecting = yes;
    by('select').setAttribute('aria-pressed', yes);
    this.stage.classList.toggle('selects', yes);
  }

  timeAt(x) {
    return this.view.from + BigInt(Math.round((x - this.lanes.left) / this.lanes.width * this.view.span));
  }

  wheel(event) {
    event.preventDefault();
    const { lanes, page } = this, unit = event.deltaMode === 1 ? 30 : 1, share = (event.offsetX - lanes.left) / lanes.width;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) page.pan((event.deltaX || event.deltaY) * unit / 1000);
    else page.zoom(Math.exp(event.deltaY * unit * .002), Math.min(Math.max(share, 0), 1));
  }

  move({ offsetX, offsetY }) {
    const { held, lanes, view, page } = this;
    if (!held) {
      const found = page.under(offsetX, offsetY);
      page.point(found && { ...found, at: offsetX });
      return;
    }
    const far = offsetX - held.x;
    held.far ||= Math.abs(far) > 3;
    if (held.far && held.selects) {
      page.interval(this.timeAt(Math.max(Math.min(held.x, offsetX), lanes.left)), this.timeAt(Math.max(held.x, offsetX, lanes.left)));
    } else if (held.far) page.drag(held.from - BigInt(Math.round(far / lanes.width * view.span)));
  }

  up({ offsetX, offsetY, shiftKey }) {
    const { held, lanes, page } = this;
    this.held = null;
    if (held?.far && held.selects) page.selected();
    page.shows.close();
    if (!held || held.far) return;
    if (offsetX < lanes.left) {
      const node = lanes.nameAt(offsetX, offsetY), head = lanes.headAt(offsetX, offsetY);
      if (head) page.shows.boardMenu(head, 8, offsetY + 6);
      if (node !== null) page.shows.menu(node, 8, offsetY + 6);
      return;
    }
    const under = page.under(offsetX, offsetY);
    page.cursor(shiftKey ? 'b' : 'a', under?.kind === 'item' ? under.from : this.timeAt(offsetX));
    page.choose(under);
  }
}
