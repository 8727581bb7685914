/** The expressions that were run, newest first, kept in the browser. */

import { readSetting, writeSetting } from '../../app/settings';

const ENTRIES_MAX = 100;
/** Longer expressions are not kept. */
const CHARACTERS_MAX = 4000;

/** Reads the history. */
export function readHistory(): string[] {
  try {
    const kept: unknown = JSON.parse(readSetting('history') ?? '[]');
    return Array.isArray(kept) ? kept.filter((entry) => typeof entry === 'string').slice(0, ENTRIES_MAX) : [];
  } catch {
    return [];
  }
}

/** The history with an expression at its beginning. */
export function withEntry(history: readonly string[], expression: string): string[] {
  const entry = expression.trim();
  if (entry === '' || entry.length > CHARACTERS_MAX) return [...history];
  return [entry, ...history.filter((other) => other !== entry)].slice(0, ENTRIES_MAX);
}

/** Adds an expression. */
export function remember(expression: string): void {
  writeSetting('history', JSON.stringify(withEntry(readHistory(), expression)));
}
