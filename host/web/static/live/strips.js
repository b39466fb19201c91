// Two pictures of items: how many of each node over time, and the newest ones individually.
import { colour, nodeColour } from '../kit/colours.js';
import { clock, duration } from '../kit/text.js';

const LEFT = 70, RIGHT = 8, AXIS = 20;

function canvas(element, height) {
  const scale = window.devicePixelRatio || 1, width = element.clientWidth;
  if (element.width !== Math.round(width * scale) || element.height !== Math.round(height * scale)) {
    element.width = Math.round(width * scale);
    element.height = Math.round(height * scale);
    element.style.height = `${height}px`;
  }
  const pen = element.getContext('2d');
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '11px system-ui, sans-serif';
  return { pen, width: width - LEFT - RIGHT, height: height - AXIS };
}

function rows(pen, nodes, width, height) {
  const row = height / nodes;
  pen.fillStyle = colour('quiet');
  pen.textAlign = 'right';
  pen.textBaseline = 'middle';
  const every = Math.ceil(12 / row);
  for (let node = 0; node < nodes; node += every) pen.fillText(`node ${node}`, LEFT - 6, (node + .5) * row);
  pen.strokeStyle = colour('line');
  pen.lineWidth = 1;
  pen.beginPath();
  for (let node = 0; node <= nodes; node += 1) {
    pen.moveTo(LEFT, Math.round(node * row) + .5);
    pen.lineTo(LEFT + width, Math.round(node * row) + .5);
  }
  pen.stroke();
  return row;
}

// Round steps; texts are times in seconds or, where those would be long, times after the first.
function axis(pen, begin, end, width, height) {
  const span = end - begin;
  if (!(span > 0)) return;
  const raw = span / Math.max(2, width / 110), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw);
  pen.fillStyle = colour('quiet');
  pen.textBaseline = 'top';
  pen.textAlign = 'center';
  for (let at = Math.ceil(begin / step) * step; at <= end; at += step) {
    const x = LEFT + (at - begin) / span * width;
    pen.fillRect(x, height, 1, 4);
    if (x > LEFT + 20 && x < LEFT + width - 30) pen.fillText(`${clock(at, step * 4)} s`, x, height + 6);
  }
}

export function drawTimeline(element, picture, shown) {
  const nodes = picture.nodes, { pen, width, height } = canvas(element, Math.max(nodes * 14, 60) + AXIS);
  const row = rows(pen, nodes, width, height);
  const { bins, items, lost, begin, bin } = picture;
  if (!bins) return;
  let most = 1;
  for (const value of items) most = Math.max(most, value);
  const step = width / bins, ink = colour('heat'), red = colour('bad');
  for (let node = 0; node < nodes; node += 1) {
    if (!shown(node)) continue;
    const y = node * row + 2, tall = row - 3;
    for (let k = 0; k < bins; k += 1) {
      const value = items[k * nodes + node];
      if (value > 0) {
        pen.globalAlpha = .15 + .85 * Math.log1p(value) / Math.log1p(most);
        pen.fillStyle = ink;
        pen.fillRect(LEFT + k * step, y, Math.max(step, 1), tall);
      }
      if (lost[k * nodes + node] > 0) {
        pen.globalAlpha = 1;
        pen.fillStyle = red;
        pen.fillRect(LEFT + k * step, y + tall / 2, Math.max(step, 2), tall / 2);
      }
    }
  }
  pen.globalAlpha = 1;
  axis(pen, begin, begin + bins * bin, width, height);
}

function label(event, names) {
  if (event.event !== undefined && event.event !== null) return names[event.event] ?? `${event.event}`;
  if (event.word !== undefined && event.word !== null) return event.word.toString(16);
  return event.nibble === null || event.nibble === undefined ? '' : event.nibble.toString(16).toUpperCase();
}

// Returns what is shown, in words.
export function drawNewest(element, events, nodes, shown, names) {
  const { pen, width, height } = canvas(element, Math.max(nodes * 14, 60) + AXIS);
  const row = rows(pen, nodes, width, height);
  if (!events.length) {
    pen.fillStyle = colour('quiet');
    pen.textAlign = 'left';
    pen.textBaseline = 'middle';
    pen.fillText('none', LEFT + 8, row / 2);
    return 'none yet';
  }
  const begin = events[0].time_ps, end = events[events.length - 1].time_ps, span = Math.max(end - begin, 1);
  pen.textBaseline = 'middle';
  pen.textAlign = 'left';
  const free = new Array(nodes).fill(-1);     // where the next text of a node has room
  for (const event of events) {
    if (!shown(event.node)) continue;
    const x = LEFT + (event.time_ps - begin) / span * (width - 16), y = event.node * row;
    pen.fillStyle = event.aborted ? colour('bad') : nodeColour(event.node);
    pen.fillRect(x, y + 2, 2, row - 3);
    if (x > free[event.node]) {
      const text = label(event, names);
      pen.fillText(text, x + 3, y + row / 2 + .5);
      free[event.node] = x + 5 + pen.measureText(text).width;
    }
  }
  axis(pen, begin / 1e12, end / 1e12, width - 16, height);
  return `${events.length} in ${duration(end - begin)}, up to ${clock(end / 1e12, span / 1e12)} s`;
}
