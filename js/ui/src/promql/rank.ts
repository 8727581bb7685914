/** Which completions fit what was typed, best first. */

/** How well a name fits: less is better; nothing if it does not. */
export function fitOf(name: string, typed: string): number | undefined {
  if (typed === '') return 0;
  const lower = name.toLowerCase();
  const wanted = typed.toLowerCase();
  if (lower === wanted) return 0;
  if (lower.startsWith(wanted)) return 1;
  // A word inside: node_cpu_seconds by "cpu".
  const at = lower.indexOf(wanted);
  if (at > 0) return /[^a-z0-9]/.test(lower[at - 1]!) ? 2 : 3;
  return isSubsequence(lower, wanted) ? 4 : undefined;
}

/** Names that fit, best first and then as they came, at most so many. */
export function ranked<T>(all: Iterable<T>, nameOf: (item: T) => string, typed: string, countMax: number): T[] {
  const buckets: T[][] = [[], [], [], [], []];
  let best = 0;
  for (const item of all) {
    const fit = fitOf(nameOf(item), typed);
    if (fit === undefined) continue;
    buckets[fit]!.push(item);
    if (fit <= 1 && (best += 1) >= countMax) break;
  }
  return buckets.flat().slice(0, countMax);
}

function isSubsequence(text: string, wanted: string): boolean {
  let at = 0;
  for (const c of wanted) {
    at = text.indexOf(c, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
