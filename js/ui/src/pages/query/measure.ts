/** The cost of each part of an expression: each is evaluated by itself, one after the other. */

import { partsOf, printTree, type TreeNode } from '../../promql/tree';
import { ApiError, type Source } from '../../source/source';
import type { Panel } from './panels';
import { runInstant } from './run';

/** Parts that are evaluated. */
const PARTS_MAX = 50;

/** What a part has cost. */
export interface Cost {
  series: number;
  isCut: boolean;
  /** Seconds in the source. */
  seconds: number | undefined;
  samples: number | undefined;
  /** Why there is no result. */
  error?: string;
}

/** Measures the parts of a tree. `onCosts` is called with what is known after each. */
export async function measureParts(
  source: Source,
  root: TreeNode,
  panel: Panel,
  signal: AbortSignal,
  onCosts: (costs: ReadonlyMap<TreeNode, Cost>) => void,
): Promise<void> {
  const costs = new Map<TreeNode, Cost>();
  // All parts are evaluated at the same time.
  const endMs = panel.endMs ?? source.endMs ?? Date.now();
  for (const node of measurable(root).slice(0, PARTS_MAX)) {
    costs.set(node, await costOf(source, { ...panel, expr: printTree(node), endMs }, signal));
    onCosts(new Map(costs));
  }
}

async function costOf(source: Source, panel: Panel, signal: AbortSignal): Promise<Cost> {
  try {
    const { data, isCut, seriesInAll } = await runInstant(source, panel, signal);
    const isList = data.resultType === 'vector' || data.resultType === 'matrix';
    return {
      series: seriesInAll ?? (isList ? data.result.length : 1),
      isCut: isCut && seriesInAll === undefined,
      seconds: data.stats?.timings?.['execTotalTime'],
      samples: data.stats?.samples?.samplesRead ?? data.stats?.samples?.totalQueryableSamples,
    };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof ApiError) || error.errorType === 'unreachable') throw error;
    return { series: 0, isCut: false, seconds: undefined, samples: undefined, error: error.message };
  }
}

/** The parts that have a cost, outer ones first. */
function measurable(node: TreeNode): TreeNode[] {
  const isLiteral = node.type === 'numberLiteral' || node.type === 'stringLiteral' || node.type === 'parenExpr';
  return [...(isLiteral ? [] : [node]), ...partsOf(node).flatMap(measurable)];
}
