/**
 * The tree of an expression as `parse_query` gives it, and its text. Source: Prometheus'
 * `web/api/v1/translate_ast.go` and `promql/parser/printer.go`.
 */

import { printDuration } from './duration';
import { labelName, quoted } from './selector';

/** A matcher of a selector. */
export interface TreeMatcher {
  name: string;
  value: string;
  type: '=' | '!=' | '=~' | '!~';
}

/** A duration that is computed. */
export type DurationNode =
  | { type: 'numberLiteral'; val: string; duration?: boolean }
  | { type: 'durationExpr'; op: string; lhs: DurationNode | null; rhs: DurationNode | null; wrapped: boolean };

/** Where a selector looks. Times are milliseconds. */
export interface Shift {
  offset: number;
  offsetExpr?: DurationNode | null;
  timestamp: number | null;
  startOrEnd: 'start' | 'end' | null;
  anchored?: boolean;
  smoothed?: boolean;
}

/** How two vectors are matched. */
export interface TreeMatching {
  card: 'one-to-one' | 'many-to-one' | 'one-to-many' | 'many-to-many';
  labels: string[];
  on: boolean;
  include: string[];
  fillValues?: { lhs: number | null; rhs: number | null };
}

/** A node of the tree. */
export type TreeNode =
  | { type: 'numberLiteral'; val: string }
  | { type: 'stringLiteral'; val: string }
  | ({ type: 'vectorSelector'; name: string; matchers: TreeMatcher[] } & Shift)
  | ({ type: 'matrixSelector'; name: string; matchers: TreeMatcher[]; range: number; rangeExpr?: DurationNode | null } & Shift)
  | ({ type: 'subquery'; expr: TreeNode; range: number; rangeExpr?: DurationNode | null; step: number; stepExpr?: DurationNode | null } & Shift)
  | { type: 'unaryExpr'; op: string; expr: TreeNode }
  | { type: 'parenExpr'; expr: TreeNode }
  | { type: 'binaryExpr'; op: string; lhs: TreeNode; rhs: TreeNode; matching: TreeMatching | null; bool: boolean }
  | { type: 'aggregation'; op: string; expr: TreeNode; param: TreeNode | null; grouping: string[]; without: boolean }
  | { type: 'call'; func: { name: string; argTypes: string[]; returnType: string }; args: TreeNode[] };

/** The parts of a node, in their order. */
export function partsOf(node: TreeNode): TreeNode[] {
  switch (node.type) {
    case 'subquery':
    case 'unaryExpr':
    case 'parenExpr':
      return [node.expr];
    case 'binaryExpr':
      return [node.lhs, node.rhs];
    case 'aggregation':
      return node.param === null ? [node.expr] : [node.param, node.expr];
    case 'call':
      return node.args;
    default:
      return [];
  }
}

/** The expression of a node. */
export function printTree(node: TreeNode): string {
  switch (node.type) {
    case 'numberLiteral':
      return node.val;
    case 'stringLiteral':
      return quoted(node.val);
    case 'vectorSelector':
      return selector(node) + modifiers(node);
    case 'matrixSelector':
      return `${selector(node)}[${span(node.range, node.rangeExpr)}]${modifiers(node)}`;
    case 'subquery': {
      const step = node.step === 0 && !node.stepExpr ? '' : span(node.step, node.stepExpr);
      return `${printTree(node.expr)}[${span(node.range, node.rangeExpr)}:${step}]${modifiers(node)}`;
    }
    case 'unaryExpr':
      return node.op + printTree(node.expr);
    case 'parenExpr':
      return `(${printTree(node.expr)})`;
    case 'binaryExpr':
      return `${printTree(node.lhs)} ${node.op}${node.bool ? ' bool' : ''}${matching(node.matching)} ${printTree(node.rhs)}`;
    case 'aggregation':
      return aggregation(node);
    case 'call':
      return `${node.func.name}(${node.args.map(printTree).join(', ')})`;
  }
}

function selector({ name, matchers }: { name: string; matchers: TreeMatcher[] }): string {
  const rest = matchers.filter((matcher) => !(matcher.name === '__name__' && matcher.type === '=' && matcher.value === name));
  const texts = rest.map((matcher) => `${labelName(matcher.name)}${matcher.type}${quoted(matcher.value)}`);
  const isPlain = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/.test(name);
  if (name !== '' && !isPlain) texts.unshift(quoted(name));
  const braces = texts.length === 0 && isPlain ? '' : `{${texts.join(', ')}}`;
  return isPlain ? name + braces : braces;
}

function modifiers(shift: Shift): string {
  let text = shift.anchored ? ' anchored' : shift.smoothed ? ' smoothed' : '';
  if (shift.timestamp !== null) text += ` @ ${(shift.timestamp / 1000).toFixed(3)}`;
  else if (shift.startOrEnd !== null) text += ` @ ${shift.startOrEnd}()`;
  if (shift.offsetExpr) text += ` offset ${duration(shift.offsetExpr)}`;
  else if (shift.offset > 0) text += ` offset ${printDuration(shift.offset)}`;
  else if (shift.offset < 0) text += ` offset -${printDuration(-shift.offset)}`;
  return text;
}

function span(ms: number, computed: DurationNode | null | undefined): string {
  return computed ? duration(computed) : printDuration(ms);
}

function duration(node: DurationNode): string {
  if (node.type === 'numberLiteral') {
    return node.duration ? printDuration(Number(node.val) * 1000) : node.val;
  }
  const operand = (side: DurationNode | null): string => (side === null ? '' : duration(side));
  const { op, lhs, rhs, wrapped } = node;
  let text;
  if (op === 'step' || op === 'range') text = `${op}()`;
  else if (op === 'min_of' || op === 'max_of') text = `${op}(${operand(lhs)}, ${operand(rhs)})`;
  else if (lhs === null) text = wrapped && op === '+' ? operand(rhs) : op + operand(rhs);
  else text = `${operand(lhs)} ${op} ${operand(rhs)}`;
  return wrapped ? `(${text})` : text;
}

function matching(matching: TreeMatching | null): string {
  if (matching === null) return '';
  let text = '';
  const labels = matching.labels.map(labelName).join(', ');
  // The grammar wants `on` or `ignoring` before `group_left`, even without labels.
  const isGroup = matching.card === 'many-to-one' || matching.card === 'one-to-many';
  if (matching.on || matching.labels.length > 0 || isGroup) text += ` ${matching.on ? 'on' : 'ignoring'} (${labels})`;
  const include = matching.include.map(labelName).join(', ');
  if (matching.card === 'many-to-one') text += ` group_left (${include})`;
  if (matching.card === 'one-to-many') text += ` group_right (${include})`;
  const { lhs = null, rhs = null } = matching.fillValues ?? {};
  if (lhs !== null && lhs === rhs) text += ` fill (${lhs})`;
  else if (lhs !== null) text += ` fill_left (${lhs})`;
  if (rhs !== null && lhs !== rhs) text += ` fill_right (${rhs})`;
  return text;
}

function aggregation(node: Extract<TreeNode, { type: 'aggregation' }>): string {
  const labels = node.grouping.map(labelName).join(', ');
  const grouping = node.without ? ` without (${labels}) ` : labels === '' ? '' : ` by (${labels}) `;
  const param = node.param === null ? '' : `${printTree(node.param)}, `;
  return `${node.op}${grouping}(${param}${printTree(node.expr)})`;
}
