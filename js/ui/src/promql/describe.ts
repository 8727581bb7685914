/** A node of an expression's tree in a sentence. */

import { formatTime } from '../format/time';
import { printDuration } from './duration';
import { AGGREGATIONS, FUNCTIONS } from './functions';
import type { Shift, TreeMatching, TreeNode } from './tree';

/** What a node does. */
export function describe(node: TreeNode): string {
  switch (node.type) {
    case 'numberLiteral':
      return 'a number';
    case 'stringLiteral':
      return 'a text';
    case 'vectorSelector':
      return `the newest sample of each selected series${shifted(node)}`;
    case 'matrixSelector':
      return `the samples of the last ${printDuration(node.range)} of each selected series${shifted(node)}`;
    case 'subquery':
      return `the inner expression at every step of the last ${printDuration(node.range)}${shifted(node)}`;
    case 'unaryExpr':
      return node.op === '-' ? 'the values with the other sign' : 'the values as they are';
    case 'parenExpr':
      return 'parentheses';
    case 'binaryExpr':
      return binary(node.op, node.bool, node.matching);
    case 'aggregation': {
      const what = AGGREGATIONS.get(node.op)?.help ?? node.op;
      if (node.without) return `${what}, over series that differ only in ${list(node.grouping)}`;
      return node.grouping.length === 0 ? `${what}, over all series` : `${what}, for each ${list(node.grouping)}`;
    }
    case 'call':
      return FUNCTIONS.get(node.func.name)?.help ?? `the function ${node.func.name}`;
  }
}

function shifted(shift: Shift): string {
  let text = '';
  if (shift.timestamp !== null) text += ` at ${formatTime(shift.timestamp, 'utc')} UTC`;
  if (shift.startOrEnd !== null) text += ` at the ${shift.startOrEnd} of the query`;
  if (shift.offset > 0) text += `, ${printDuration(shift.offset)} before`;
  if (shift.offset < 0) text += `, ${printDuration(-shift.offset)} after`;
  return text;
}

const SETS: Record<string, string> = {
  and: 'series of the left side that the right side has, too',
  or: 'series of the left side, and those that only the right side has',
  unless: 'series of the left side that the right side has not',
};

function binary(op: string, isBool: boolean, matching: TreeMatching | null): string {
  const isComparison = ['==', '!=', '<', '>', '<=', '>='].includes(op);
  let text = SETS[op] ?? (isComparison ? (isBool ? '1 where the comparison holds, otherwise 0' : 'series for which the comparison holds') : 'computed pair by pair');
  if (matching !== null && (matching.on || matching.labels.length > 0)) {
    text += matching.on ? `; pairs agree in ${list(matching.labels)}` : `; pairs agree in all labels but ${list(matching.labels)}`;
  }
  if (matching?.card === 'many-to-one') text += '; many on the left to one on the right';
  if (matching?.card === 'one-to-many') text += '; one on the left to many on the right';
  return text;
}

function list(names: readonly string[]): string {
  if (names.length === 0) return 'no label';
  return names.length === 1 ? names[0]! : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;
}
