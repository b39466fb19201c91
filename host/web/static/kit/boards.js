// A map of the boards of a large machine: a tile for each, a cell per node. A click shows the nodes of that board.
const CELL = 10, NAMESPACE = 'http://www.w3.org/2000/svg';

function shape(parent, name, values) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

// Most of a live picture stays as it was.
function set(element, values) {
  for (const [key, value] of Object.entries(values)) {
    if (element.getAttribute(key) !== String(value)) element.setAttribute(key, value);
  }
}

export class Boards {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;      // called with a board, or null for all
    this.boards = [];
    this.cells = [];
  }

  // A board has `first` and `nodes`, and of each node `items` and `lost`; `heat` are the numbers that make a cell dark.
  show(boards, heat = (board) => board.items) {
    const same = this.boards.length === boards.length && boards.every((board, k) => board.nodes === this.boards[k].nodes);
    this.boards = boards;
    this.element.hidden = !boards.length;
    if (!same) {
      this.cells = [];
      this.element.replaceChildren(...boards.map((board, number) => this.tile(board, number)));
    }
    const every = boards.flatMap(heat), worst = boards.flatMap((board) => board.lost).reduce((a, b) => Math.max(a, b), 0);
    const least = every.reduce((a, b) => Math.min(a, b), Infinity), most = every.reduce((a, b) => Math.max(a, b), 0);
    boards.forEach((board, number) => this.fill(board, number, heat(board), [least, most], worst));
    return [least, most, worst];
  }

  tile(board, number) {
    const tile = document.createElement('button');
    tile.type = 'button';
    tile.setAttribute('aria-pressed', 'false');
    tile.addEventListener('click', () =>
      this.choose(tile.getAttribute('aria-pressed') === 'true' ? null : this.boards[number]));
    const side = Math.ceil(Math.sqrt(board.nodes)), rows = Math.ceil(board.nodes / side);
    const svg = shape(tile, 'svg', { viewBox: `0 0 ${side * CELL} ${rows * CELL}`, 'aria-hidden': 'true' });
    this.cells.push(Array.from({ length: board.nodes }, (_, node) => {
      const x = node % side * CELL, y = Math.floor(node / side) * CELL;
      return { x, y, svg, lost: null, heat: shape(svg, 'rect', { x, y, width: CELL - 1, height: CELL - 1, class: 'heat' }) };
    }));
    return tile;
  }

  fill(board, number, heat, [least, most], worst) {
    const tile = this.element.children[number], sum = (values) => values.reduce((a, b) => a + b, 0);
    const title = `board ${number}: ${sum(board.items).toLocaleString('en')} items, ${sum(board.lost).toLocaleString('en')} lost`;
    if (tile.title !== title) {
      tile.title = title;
      tile.setAttribute('aria-label', title);
    }
    this.cells[number].forEach((cell, node) => {
      const share = most > least ? (heat[node] - least) / (most - least) : 1;
      set(cell.heat, { 'fill-opacity': (.12 + .88 * share).toFixed(2) });
      if (!board.lost[node]) return;
      cell.lost ??= shape(cell.svg, 'rect', { class: 'lost' });
      const size = Math.max(Math.sqrt(board.lost[node] / worst) * (CELL - 3), 2), at = (CELL - 1 - size) / 2;
      set(cell.lost, { x: cell.x + at, y: cell.y + at, width: size, height: size });
    });
  }

  // The board that has a node, if there is a map.
  of(node) {
    return this.boards.find((board) => node >= board.first && node < board.first + board.nodes) ?? null;
  }

  mark(chosen) {
    this.boards.forEach((board, number) =>
      this.element.children[number].setAttribute('aria-pressed', String(board === chosen)));
  }
}
