// The colours of the theme in force, and one for every node.

export function colour(name) {
  // Canvas does not know light-dark(), so the browser resolves it first.
  const probe = document.createElement('i');
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

export function dark() {
  const theme = document.documentElement.dataset.theme;
  return theme ? theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

// Neighbours are far apart in hue, and lightness alternates. Red is for what was lost.
export function nodeColour(node) {
  const hue = 30 + (180 + node * 131.25) % 300, odd = node % 2;
  return dark() ? `hsl(${hue} 75% ${odd ? 78 : 62}%)` : `hsl(${hue} 75% ${odd ? 28 : 42}%)`;
}
