/** What a chart of expressions is. */

import type { Unit } from '../format/number';

/** Lines of a chart that one expression gives. */
export interface ChartQuery {
  expr: string;
  /** The name of a line: `{label}` stands for a label's value. Nothing shows all labels. */
  title?: string;
  /**
   * Whether its values are negated, to be drawn below the others: the legend shows them without
   * sign.
   */
  isBelow?: boolean;
}

/** A chart. */
export interface ChartSpec {
  title: string;
  unit: Unit;
  queries: readonly ChartQuery[];
  isStacked?: boolean;
  yMin?: number;
  /** Whether a machine may lack it, so that nothing is shown then. */
  isOptional?: boolean;
}

/** A line's name from its labels. */
export function titleOf(template: string, labels: Record<string, string>): string {
  return template.replace(/\{(\w+)\}/g, (_, name: string) => labels[name] ?? '').trim() || 'all';
}
