// A map of the boards of a large machine: a tile for each, a cell per node. A click shows the nodes of that board.
const CELL = 10, NAMESPACE = 'http://www.w3.org/2000/svg';

function shape(parent, name, values) {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

export class Boards {
  constructor(element, choose) {
    this.element = element;
    this.choose = choose;      // called with a board, or null for all
    this.boards = [];
  }

  show(boards) {
    this.boards = boards;
    this.element.hidden = !boards.length;
    const items = boards.flatMap((board) => board.items);
    const least = items.reduce((a, b) => Math.min(a, b), Infinity), most = items.reduce((a, b) => Math.max(a, b), 0);
    const worst = boards.flatMap((board) => board.lost).reduce((a, b) => Math.max(a, b), 0);
    this.element.replaceChildren(...boards.map((board, number) => this.tile(board, number, [least, most], worst)));
  }

  tile(board, number, [least, most], worst) {
    const tile = document.createElement('button'), sum = (values) => values.reduce((a, b) => a + b, 0);
    tile.type = 'button';
    tile.title = `board ${number}: ${sum(board.items).toLocaleString('en')} items, ${sum(board.lost).toLocaleString('en')} lost`;
    tile.setAttribute('aria-label', tile.title);
    tile.setAttribute('aria-pressed', 'false');
    tile.addEventListener('click', () => this.choose(tile.getAttribute('aria-pressed') === 'true' ? null : board));
    const side = Math.ceil(Math.sqrt(board.nodes)), rows = Math.ceil(board.nodes / side);
    const svg = shape(tile, 'svg', { viewBox: `0 0 ${side * CELL} ${rows * CELL}`, 'aria-hidden': 'true' });
    board.items.forEach((count, node) => {
      const x = node % side * CELL, y = Math.floor(node / side) * CELL;
      const share = most > least ? (count - least) / (most - least) : 1;
      shape(svg, 'rect', { x, y, width: CELL - 1, height: CELL - 1, class: 'heat', 'fill-opacity': .12 + .88 * share });
      if (!board.lost[node]) return;
      const size = Math.max(Math.sqrt(board.lost[node] / worst) * (CELL - 3), 2), at = (CELL - 1 - size) / 2;
      shape(svg, 'rect', { x: x + at, y: y + at, width: size, height: size, class: 'lost' });
    });
    return tile;
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
