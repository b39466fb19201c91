// What both tabs have: the theme, the list of keys, and the other tab.

export const by = (id) => document.getElementById(id);

export function complain(text) {
  by('failure').hidden = !text;
  if (by('failure').textContent !== text) by('failure').textContent = text;
}

// The next theme, or the one that is named; `restyle` draws anew what has colours of its own.
function theme(restyle, next) {
  const names = ['system', 'light', 'dark'], root = document.documentElement;
  const name = names.includes(next) ? next : names[(names.indexOf(root.dataset.theme ?? 'system') + 1) % 3];
  if (name === 'system') delete root.dataset.theme; else root.dataset.theme = name;
  localStorage.setItem('theme', name);
  by('theme').lastElementChild.textContent = `Theme: ${name}`;
  restyle();
}

function help() {
  by('keys').hidden = !by('keys').hidden;
  by('help').setAttribute('aria-expanded', !by('keys').hidden);
}

// Makes the buttons of the header work; returns the keys that do the same.
export function dressed(restyle) {
  by('theme').addEventListener('click', () => theme(restyle));
  by('help').addEventListener('click', help);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', restyle);
  theme(restyle, localStorage.getItem('theme') ?? 'system');
  return { t: () => theme(restyle), '?': help, v: () => by('other').click() };
}
