import assert from 'node:assert/strict';
import { test } from 'node:test';
import { piecesOf } from '../../src/editor/pieces';
import { misplacedOf } from '../../src/promql/error';
import { AGGREGATIONS, FUNCTIONS, signatureText } from '../../src/promql/functions';
import { differing, isFound, labelName, quoted, selectorOf, seriesText } from '../../src/promql/selector';
import { printTree, type TreeNode } from '../../src/promql/tree';

test('names and values of any characters are quoted', () => {
  assert.equal(quoted('a"\\\n'), '"a\\"\\\\\\n"');
  assert.equal(labelName('job'), 'job');
  assert.equal(labelName('a.b'), '"a.b"');
  assert.equal(selectorOf('up', ['a="b"']), 'up{a="b"}');
  assert.equal(selectorOf('my.metric'), '{"my.metric"}');
  assert.equal(seriesText({ __name__: 'up', job: '<b>"x"' }), 'up{job="<b>\\"x\\""}');
  assert.equal(seriesText({}), '{}');
});

test('searches find words in their order in any case', () => {
  assert.ok(isFound('node_CPU_seconds', 'cpu sec'));
  assert.ok(!isFound('node_cpu_seconds', 'sec cpu'));
  assert.ok(isFound('x', ''));
});

test('a parser names its place in bytes', () => {
  assert.deepEqual(misplacedOf('invalid parameter "query": 1:5: parse error: unexpected <by>', 'sum by'), {
    start: 4,
    end: 6,
    text: 'unexpected <by>',
  });
  // é takes two bytes, the face four bytes and two units.
  assert.deepEqual(misplacedOf('1:14: parse error: x', '{a="é\u{1f600}"} oops')?.start, 10);
  assert.deepEqual(misplacedOf('2:2: parse error: x', 'a +\n !b'), { start: 5, end: 6, text: 'x' });
  assert.deepEqual(misplacedOf('1:5: parse error: unexpected end of input', 'up +'), { start: 3, end: 4, text: 'unexpected end of input' });
  assert.equal(misplacedOf('too many samples', 'up'), undefined);
  assert.deepEqual(misplacedOf('9:99: parse error: x', 'up'), { start: 1, end: 2, text: 'x' });
});

test('coloured pieces are the text, cut where something is wrong', () => {
  const pieces = piecesOf('sum(up) + ', { start: 5, end: 7 }, 1);
  assert.equal(pieces.map((piece) => piece.text).join(''), 'sum(up) + ');
  assert.equal(pieces.filter((piece) => piece.isWrong).map((piece) => piece.text).join(''), 'p)');
  assert.ok(pieces.some((piece) => piece.start === 1));
});

test('there are as many functions and aggregations as in Prometheus 3.15', () => {
  assert.equal(FUNCTIONS.size, 90);
  assert.equal(AGGREGATIONS.size, 14);
  assert.equal(signatureText('round', FUNCTIONS.get('round')!), 'round(instant-vector, [scalar])');
  assert.equal(signatureText('label_join', FUNCTIONS.get('label_join')!), 'label_join(instant-vector, string, string, [string, …])');
  assert.equal(signatureText('time', FUNCTIONS.get('time')!), 'time()');
});

test('a tree gives its expression', () => {
  const shift = { offset: 0, timestamp: null, startOrEnd: null };
  const selector: TreeNode = {
    type: 'matrixSelector',
    name: 'x',
    range: 300_000,
    matchers: [
      { name: '__name__', value: 'x', type: '=' },
      { name: 'a.b', value: 'y"', type: '!~' },
    ],
    ...shift,
    offset: -60_000,
  };
  const rate: TreeNode = { type: 'call', func: { name: 'rate', argTypes: ['matrix'], returnType: 'vector' }, args: [selector] };
  const sum: TreeNode = { type: 'aggregation', op: 'topk', expr: rate, param: { type: 'numberLiteral', val: '3' }, grouping: ['job'], without: true };
  const binary: TreeNode = {
    type: 'binaryExpr',
    op: '>',
    lhs: { type: 'parenExpr', expr: sum },
    rhs: { type: 'vectorSelector', name: 'my.metric', matchers: [{ name: '__name__', value: 'my.metric', type: '=' }], ...shift, timestamp: 1500 },
    matching: { card: 'many-to-one', labels: ['job'], on: true, include: ['z'] },
    bool: true,
  };
  assert.equal(
    printTree(binary),
    '(topk without (job) (3, rate(x{"a.b"!~"y\\""}[5m] offset -1m))) > bool on (job) group_left (z) {"my.metric"} @ 1.500',
  );
});

test('series are told apart by the labels that differ', () => {
  const all = [{ job: 'a', cpu: '0' }, { job: 'a', cpu: '1' }, { job: 'a', cpu: '1', mode: 'x' }];
  assert.deepEqual(differing(all), [{ cpu: '0' }, { cpu: '1' }, { cpu: '1', mode: 'x' }]);
  assert.deepEqual(differing(all.slice(0, 1)), all.slice(0, 1));
  assert.deepEqual(differing([]), []);
});
