// States that are too many to be drawn one by one: each column of a lane has the mean of their colours.

// The mean colour of the states of each column of a node, weighted by their shares; where two are open, their sum is 1.
// Returns red, green, blue and how much of the column is covered, or null if the node has none.
export function means({ spans, shares, columns }, node, colours, hidden) {
  const mean = new Float32Array(columns * 4);
  let some = false;
  spans.kinds.forEach(([of, name], row) => {
    if (of !== node || hidden.has(name)) return;
    some = true;
    const [red, green, blue] = colours[name];
    for (let k = 0, at = row * columns; k < columns; k += 1, at += 1) {
      const share = shares[at];
      if (!share) continue;
      mean[4 * k] += share * red;
      mean[4 * k + 1] += share * green;
      mean[4 * k + 2] += share * blue;
      mean[4 * k + 3] += share;
    }
  });
  if (!some) return null;
  for (let k = 0; k < mean.length; k += 4) {
    const sum = mean[k + 3];
    if (!sum) continue;
    mean[k] /= sum;
    mean[k + 1] /= sum;
    mean[k + 2] /= sum;
    mean[k + 3] = Math.min(sum / 255, 1);
  }
  return mean;
}

// The shares of one column of a node: number of the name and share, largest first.
export function sharesAt({ spans, shares, columns }, node, column, hidden) {
  return spans.kinds.map(([of, name], row) => [of, name, shares[row * columns + column]])
    .filter(([of, name, share]) => of === node && share && !hidden.has(name))
    .map(([, name, share]) => [name, share / 255]).sort((a, b) => b[1] - a[1]);
}

// Stretches of columns that one state fills: number of the name, first column, one after the last.
export function filled({ spans, shares, columns }, node, least) {
  const found = [];
  spans.kinds.forEach(([of, name], row) => {
    if (of !== node) return;
    for (let k = 0, from = 0; k <= columns; k += 1) {
      if (k < columns && shares[row * columns + k] > 250) continue;
      if (k - from >= least) found.push([name, from, k]);
      from = k + 1;
    }
  });
  return found;
}
