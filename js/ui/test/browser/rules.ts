/** Answers of rules, alerts and what is told of them, moved to the present. */

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Site } from './serve';

/** When the answers were given. */
const GIVEN_MS = Date.parse('2026-11-30T06:00:03Z');
const STEP_MS = 15_000;

/** The answer of a fixture with its times as of now. */
export function fixture(name: 'rules' | 'alerts' | 'history' | 'silences' | 'receivers', change: (answer: any) => void = () => {}): string {
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

/** Has a site give events, silences and receivers of alerts. */
export function giveTold(site: Site): void {
  site.answers.set('api/v1/alerts/history', () => fixture('history'));
  site.answers.set('api/v1/alerts/receivers', () => fixture('receivers'));
  site.answers.set('api/v2/silences', () => fixture('silences'));
}

/** Has a site answer as a node that lacks all of that. */
export function giveNothingTold(site: Site): void {
  for (const path of ['api/v1/alerts/history', 'api/v1/alerts/receivers', 'api/v2/silences']) {
    site.answers.set(path, () => ({ status: 404, text: '404 page not found\n' }));
  }
}

/** Has a site give one rule that is fine, and no alert. */
export function giveQuietRule(site: Site): void {
  site.answers.set('api/v1/rules', () => fixture('rules', ({ data }) => (data.groups = [{ ...data.groups[0], rules: [data.groups[0].rules[3]] }])));
  site.answers.set('api/v1/alerts', () => '{"status":"success","data":{"alerts":[]}}');
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
