// Numbers and times for people.

export function count(n) {
  return Math.round(n).toLocaleString('en');
}

export function quantity(value, unit = '') {
  const prefixes = ['', 'k', 'M', 'G', 'T'];
  let power = 0;
  while (Math.abs(value) >= 1000 && power < prefixes.length - 1) { value /= 1000; power += 1; }
  const digits = value !== 0 && Math.abs(value) < 100 ? Number(value.toPrecision(3)) : Math.round(value);
  return `${digits} ${prefixes[power]}${unit}`.trim();
}

const UNITS = [[1e12, 's'], [1e9, 'ms'], [1e6, 'us'], [1e3, 'ns'], [1, 'ps']];

export function duration(ps) {
  const [size, unit] = UNITS.find(([size]) => Math.abs(ps) >= size) ?? UNITS[4];
  return `${Number((ps / size).toPrecision(4))} ${unit}`;
}

// Seconds with as many digits as tell times of such a span apart.
export function clock(s, span) {
  const digits = Math.max(0, Math.min(9, Math.ceil(2 - Math.log10(span || 1))));
  return s.toFixed(digits);
}
