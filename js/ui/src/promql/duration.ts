/** Durations as PromQL writes them, such as `1h30m`. Source: Prometheus' `model.ParseDuration`. */

const UNITS: [string, number][] = [
  ['y', 365 * 86_400_000],
  ['w', 7 * 86_400_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
];

const PATTERN = /^(?:(\d+)y)?(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?(?:(\d+)ms)?$/;

/** Milliseconds; nothing if it is no duration or takes no time. A bare number is in seconds. */
export function parseDuration(text: string): number | undefined {
  const trimmed = text.trim();
  if (/^\d+(\.\d+)?$/.test(trimmed)) return Number(trimmed) * 1000 || undefined;
  const parts = PATTERN.exec(trimmed);
  if (parts === null) return undefined;
  const ms = UNITS.reduce((sum, [, size], i) => sum + Number(parts[i + 1] ?? 0) * size, 0);
  return ms > 0 && Number.isSafeInteger(ms) ? ms : undefined;
}

/** The shortest text without weeks and years, as Prometheus prints them but in days. */
export function printDuration(ms: number): string {
  if (ms <= 0) return '0s';
  let rest = Math.round(ms);
  let text = '';
  for (const [name, size] of UNITS.slice(2)) {
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${name}`;
    rest -= count * size;
  }
  return text;
}
