// Times: picoseconds, as BigInt where they are absolute, because days of them have more than 53 bits.

const UNITS = [[10n ** 12n, 's'], [10n ** 9n, 'ms'], [10n ** 6n, 'us'], [10n ** 3n, 'ns'], [1n, 'ps']];

function grouped(digits) {
  return digits.replace(/(\d{3})(?=\d)/g, '$1\u202f');
}

// In seconds, with the digits that tell times of such a resolution apart.
export function absolute(ps, resolution = 1) {
  const digits = Math.max(0, Math.min(12, Math.ceil(12 - Math.log10(Math.max(resolution, 1)) - 1e-9)));
  const sign = ps < 0n ? '−' : '', size = ps < 0n ? -ps : ps;
  const part = (size % 10n ** 12n).toString().padStart(12, '0').slice(0, digits);
  return `${sign}${size / 10n ** 12n}${digits ? '.' : ''}${grouped(part)} s`;
}

// A duration, exactly: no digit is dropped.
export function exact(ps) {
  const sign = ps < 0n ? '−' : '', size = ps < 0n ? -ps : ps;
  const [unit, name] = UNITS.find(([unit]) => size >= unit) ?? UNITS[4];
  const part = (size % unit).toString().padStart(unit.toString().length - 1, '0').replace(/0+$/, '');
  return `${sign}${size / unit}${unit > 1n && part ? `.${grouped(part)}` : ''} ${name}`;
}

// The time that a text says, with a unit: 1 ms, 0.25 s, 166 us; from the zero of the time stamps, as on the axis. 25 % is
// a part of the run from `begin` to `end`. Spaces between digits are allowed. Null: the text is no time.
export function timeOf(text, begin, end) {
  const match = /^(-?)(\d{1,15})(?:\.(\d{1,15}))?([mnpu]?s|%)$/.exec(text.replace(/\s/g, '').replace('−', '-').replace(/[µμ]/, 'u'));
  if (!match) return null;
  const [, sign, whole, part = '', unit] = match, digits = 10n ** BigInt(part.length);
  const size = unit === '%' ? end - begin : UNITS.find(([, name]) => name === unit)[0], many = digits * (unit === '%' ? 100n : 1n);
  const ps = (BigInt(whole + part) * size + many / 2n) / many, time = sign ? -ps : ps;
  return unit === '%' ? begin + time : time;
}

// A round step of at least the given number of picoseconds: 1, 2 or 5 times a power of ten.
export function step(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return Math.round([1, 2, 5, 10].map((k) => k * power).find((s) => s >= least * .999) ?? power * 10);
}

// Labels of an axis: the time to which they are added, if that makes them short, and the text of each time.
export function labels(from, span, every) {
  const digits = Math.log10(Math.max(Number(from < 0n ? -from : from), span) / every);
  if (digits < 4) return { base: 0n, common: '', text: (at) => absolute(at, every) };
  const unit = step(span * 5), round = BigInt(unit), base = from / round * round;
  return { base, common: absolute(base, unit), text: (at) => `${at < base ? '' : '+'}${exact(at - base)}` };
}
