import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tokenize } from '../../src/promql/tokens';

/** Kinds and texts without spaces. */
function kinds(text: string): string[] {
  return tokenize(text)
    .filter((token) => token.kind !== 'space')
    .map((token) => `${token.kind} ${text.slice(token.start, token.end)}`);
}

test('tokens follow one another without a gap, whatever the text is', () => {
  const texts = ['', 'up', 'sum by (job) (rate(x{a="b"}[5m:1m] offset -1h)) # end', '"open', '{a=~`x', '\u{1f600} é §', '\\', '((((', ']})'];
  for (const text of texts) {
    let at = 0;
    for (const { start, end } of tokenize(text)) {
      assert.equal(start, at, text);
      assert.ok(end > start, text);
      at = end;
    }
    assert.equal(at, text.length, text);
  }
});

test('an aggregation with all kinds of tokens', () => {
  assert.deepEqual(kinds('sum by (job, "a.b") (rate(x_total{a!~"b\\"c"}[5m]) > bool 1e3) # why'), [
    'aggregation sum',
    'keyword by',
    'punctuation (',
    'label job',
    'punctuation ,',
    'label "a.b"',
    'punctuation )',
    'punctuation (',
    'function rate',
    'punctuation (',
    'metric x_total',
    'punctuation {',
    'label a',
    'operator !~',
    'string "b\\"c"',
    'punctuation }',
    'punctuation [',
    'duration 5m',
    'punctuation ]',
    'punctuation )',
    'operator >',
    'keyword bool',
    'number 1e3',
    'punctuation )',
    'comment # why',
  ]);
});

test('words are what stands behind them', () => {
  assert.deepEqual(kinds('sum + rate'), ['metric sum', 'operator +', 'metric rate']);
  assert.deepEqual(kinds('sum(rate)'), ['aggregation sum', 'punctuation (', 'metric rate', 'punctuation )']);
  assert.deepEqual(kinds('SUM without(a)(b)'), [
    'aggregation SUM',
    'keyword without',
    'punctuation (',
    'label a',
    'punctuation )',
    'punctuation (',
    'metric b',
    'punctuation )',
  ]);
  assert.deepEqual(kinds('{by="x",sum="y"}'), [
    'punctuation {',
    'label by',
    'operator =',
    'string "x"',
    'punctuation ,',
    'label sum',
    'operator =',
    'string "y"',
    'punctuation }',
  ]);
});

test('numbers, durations and names with colons', () => {
  assert.deepEqual(kinds('0x1F .5 1_000 Inf NaN 1h30m 15ms a:b:c'), [
    'number 0x1F',
    'number .5',
    'number 1_000',
    'number Inf',
    'number NaN',
    'duration 1h30m',
    'duration 15ms',
    'metric a:b:c',
  ]);
  assert.deepEqual(kinds('x[1h:5m]'), ['metric x', 'punctuation [', 'duration 1h', 'punctuation :', 'duration 5m', 'punctuation ]']);
});

test('what is not closed is an error up to the end of the line', () => {
  assert.deepEqual(kinds('up{a="b'), ['metric up', 'punctuation {', 'label a', 'operator =', 'error "b']);
  assert.deepEqual(kinds('"a\nup'), ['error "a', 'metric up']);
  assert.deepEqual(kinds('up $ 1'), ['metric up', 'error $', 'number 1']);
});
