/** Numbers for people. What a query gave is shown as it came; these are for axes and summaries. */

/** What a number measures. */
export type Unit = 'none' | 'bytes' | 'bytes_per_second' | 'seconds' | 'ratio' | 'celsius';

const DECIMAL = ['', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
/** Seconds below one: milli, micro, nano. */
const FRACTIONS = ['s', 'ms', 'µs', 'ns'];
const NONE = '–';

/** A number in its unit with about this many digits, such as `1.53 MiB`; a dash for none. */
export function formatNumber(value: number | undefined | null, unit: Unit = 'none', digits = 3): string {
  if (value === undefined || value === null) return NONE;
  if (!Number.isFinite(value)) return specialOf(value);
  switch (unit) {
    case 'bytes':
      return scaled(value, 1024, BINARY, digits, ' ');
    case 'bytes_per_second':
      return `${scaled(value, 1024, BINARY, digits, ' ')}/s`;
    case 'seconds':
      return secondsOf(value, digits);
    case 'ratio':
      return `${plain(value * 100, digits)} %`;
    case 'celsius':
      return `${plain(value, digits)} °C`;
    case 'none':
      return scaled(value, 1000, DECIMAL, digits, '');
  }
}

/** A count with its digits in groups of three. */
export function formatCount(value: number | undefined): string {
  if (value === undefined) return NONE;
  if (!Number.isFinite(value)) return specialOf(value);
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

/** The unit that a metric's name or metadata says. */
export function unitOf(name: string, said = ''): Unit {
  const unit = said === '' ? name.replace(/_(total|sum|bucket|max|min)$/, '') : `_${said}`;
  if (unit.endsWith('_bytes')) return 'bytes';
  if (/_seconds$/.test(unit) && !/timestamp|time_seconds$/.test(unit)) return 'seconds';
  if (unit.endsWith('_ratio')) return 'ratio';
  if (unit.endsWith('_celsius')) return 'celsius';
  return 'none';
}

function specialOf(value: number): string {
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

function scaled(value: number, base: number, names: string[], digits: number, space: string): string {
  let power = 0;
  let rest = Math.abs(value);
  // What rounds up to the base is one of the next unit.
  while (rest >= base * 0.9995 && power < names.length - 1) {
    rest /= base;
    power += 1;
  }
  const sign = value < 0 ? '-' : '';
  const name = names[power]!;
  return `${sign}${plain(rest, digits)}${name === '' ? '' : space + name}`;
}

function secondsOf(value: number, digits: number): string {
  const seconds = Math.abs(value);
  if (seconds >= 60) return `${value < 0 ? '-' : ''}${formatDuration(seconds)}`;
  let power = 0;
  let rest = value;
  while (Math.abs(rest) < 1 && rest !== 0 && power < FRACTIONS.length - 1) {
    rest *= 1000;
    power += 1;
  }
  return `${plain(rest, digits)} ${rest === 0 ? 's' : FRACTIONS[power]}`;
}

/** Digits without an exponent where that stays short. */
function plain(value: number, digits: number): string {
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e15)) return value.toPrecision(digits).replace(/\.?0+e/, 'e');
  const whole = size >= 1 ? Math.floor(Math.log10(size)) + 1 : 1;
  const decimals = size >= 1 || size === 0 ? digits - whole : digits - 1 - Math.floor(Math.log10(size)) - 1 + 1;
  const text = value.toFixed(Math.max(0, Math.min(12, decimals)));
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

const PARTS: [number, string][] = [
  [86_400 * 365, 'y'],
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
  [1, 's'],
];

/** A time span in its two largest units, such as `3 d 4 h`. */
export function formatDuration(seconds: number | undefined): string {
  if (seconds === undefined || Number.isNaN(seconds)) return NONE;
  if (!Number.isFinite(seconds)) return 'for ever';
  let rest = Math.max(0, seconds);
  if (rest < 1) return rest === 0 ? '0 s' : `${plain(rest * 1000, 2)} ms`;
  rest = Math.round(rest);
  const first = PARTS.findIndex(([size]) => rest >= size);
  const texts: string[] = [];
  for (const [size, name] of PARTS.slice(first, first + 2)) {
    const count = Math.floor(rest / size);
    if (count > 0) texts.push(`${count} ${name}`);
    rest -= count * size;
  }
  return texts.join(' ');
}
