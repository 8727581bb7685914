/** Which targets are shown, where the source gives all of them. */

import { isFound } from '../../../promql/selector';
import type { Labels, Target } from '../../../source/answers';

/** What is asked for. */
export interface Choice {
  search: string;
  /** Nothing is any. */
  health: string;
}

/** The targets that are asked for, those that are down first. */
export function chosenTargets(targets: readonly Target[], { search, health }: Choice): Target[] {
  const found = targets.filter((target) => (health === '' || target.health === health) && isTarget(target, search));
  return [...found.filter(isDown), ...found.filter((target) => !isDown(target))];
}

function isDown(target: Target): boolean {
  return target.health === 'down';
}

function isTarget({ scrapeUrl, scrapePool, labels, lastError }: Target, search: string): boolean {
  return search.trim() === '' || isFound(`${scrapePool} ${scrapeUrl} ${textOf(labels)} ${lastError}`, search);
}

/** Labels in a line that can be searched. */
export function textOf(labels: Labels): string {
  return Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(' ');
}
