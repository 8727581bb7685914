/** Answers of rules and alerts as Prometheus gives them, moved to the present. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Site } from './serve';

/** When the answers were given. */
const GIVEN_MS = Date.parse('2026-11-30T06:00:03Z');
const STEP_MS = 15_000;

/** The answer of a fixture with its times as of now. */
export function fixture(name: 'rules' | 'alerts', change: (answer: any) => void = () => {}): string {
  const text = readFileSync(fileURLToPath(new URL(`../../../test/fixtures/${name}.json`, import.meta.url)), 'utf8');
  const moved = text.replace(/"20\d\d-[\d:.T-]+Z"/g, (time) => JSON.stringify(new Date(Date.parse(JSON.parse(time) as string) + Date.now() - GIVEN_MS).toISOString()));
  const answer: unknown = JSON.parse(moved);
  change(answer);
  return JSON.stringify(answer);
}

/** Has a site give them. */
export function giveRules(site: Site, change?: (answer: any) => void): void {
  site.answers.set('api/v1/rules', () => fixture('rules', change));
  site.answers.set('api/v1/alerts', () => fixture('alerts'));
}

/** What the node has recorded of the alert that fires since half an hour. */
export function alertLines(endMs: number): string[] {
  const labels = 'alertname="HighLoad",instance="edge-7",job="node",severity="page"';
  const lines: string[] = [];
  const beginMs = endMs - 28.5 * 60_000;
  for (let time = beginMs; time <= endMs; time += STEP_MS) {
    const state = time < beginMs + 300_000 ? 'pending' : 'firing';
    lines.push(`ALERTS{${labels},alertstate="${state}"} 1 ${Math.round(time)}`);
  }
  return lines;
}
