import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf, type Place } from '../../src/promql/place';

/** The place of the cursor, which `|` marks. */
function at(marked: string): Place | undefined {
  const cursor = marked.indexOf('|');
  return placeOf(marked.slice(0, cursor) + marked.slice(cursor + 1), cursor);
}

test('names stand where an expression may begin', () => {
  assert.deepEqual(at('|'), { kind: 'expression', from: 0, to: 0, typed: '' });
  assert.deepEqual(at('no|de'), { kind: 'expression', from: 0, to: 4, typed: 'no' });
  assert.deepEqual(at('sum(no|)'), { kind: 'expression', from: 4, to: 6, typed: 'no' });
  assert.deepEqual(at('a + |'), { kind: 'expression', from: 4, to: 4, typed: '' });
  assert.deepEqual(at('a an|'), { kind: 'expression', from: 2, to: 4, typed: 'an' });
  assert.deepEqual(at('a and|'), { kind: 'expression', from: 2, to: 5, typed: 'and' });
});

test('names of labels stand behind braces and commas, with what selects their series', () => {
  assert.deepEqual(at('up{|}'), { kind: 'label-name', metric: 'up', matchers: [], from: 3, to: 3, typed: '' });
  assert.deepEqual(at('up{jo|="x"}'), { kind: 'label-name', metric: 'up', matchers: [], from: 3, to: 5, typed: 'jo' });
  assert.deepEqual(at('up{job="a", in|}'), { kind: 'label-name', metric: 'up', matchers: ['job="a"'], from: 12, to: 14, typed: 'in' });
  assert.deepEqual(at('{|, a="b"}'), { kind: 'label-name', metric: undefined, matchers: ['a="b"'], from: 1, to: 1, typed: '' });
  assert.equal(at('up{job=|}'), undefined);
});

test('values stand in quotes', () => {
  assert.deepEqual(at('up{job="no|"}'), { kind: 'label-value', label: 'job', metric: 'up', matchers: [], from: 8, to: 10, typed: 'no' });
  assert.deepEqual(at('up{job="no|'), { kind: 'label-value', label: 'job', metric: 'up', matchers: [], from: 8, to: 10, typed: 'no' });
  assert.deepEqual(at('up{a="b", job=~"|"}'), { kind: 'label-value', label: 'job', metric: 'up', matchers: ['a="b"'], from: 16, to: 16, typed: '' });
  assert.deepEqual(at('{"a.b"="|"}'), { kind: 'label-value', label: 'a.b', metric: undefined, matchers: [], from: 8, to: 8, typed: '' });
  assert.equal(at('up{job="x"|}'), undefined);
  assert.equal(at('label_join(up, "|")'), undefined);
});

test('lists of labels know the metrics of the expression', () => {
  assert.deepEqual(at('sum by (|) (up)'), { kind: 'grouping', metrics: ['up'], from: 8, to: 8, typed: '' });
  assert.deepEqual(at('sum by (a, jo|) (up)'), { kind: 'grouping', metrics: ['up'], from: 11, to: 13, typed: 'jo' });
  assert.deepEqual(at('a * on(|) b'), { kind: 'grouping', metrics: ['a', 'b'], from: 7, to: 7, typed: '' });
});

test('durations stand in brackets and behind offset', () => {
  assert.deepEqual(at('up[|]'), { kind: 'duration', from: 3, to: 3, typed: '' });
  assert.deepEqual(at('up[5|]'), { kind: 'duration', from: 3, to: 4, typed: '5' });
  assert.deepEqual(at('up[5m:1|]'), { kind: 'duration', from: 6, to: 7, typed: '1' });
  assert.deepEqual(at('up offset |'), { kind: 'duration', from: 10, to: 10, typed: '' });
});

test('numbers and comments have no completion', () => {
  assert.equal(at('1|'), undefined);
  assert.equal(at('up # no|te'), undefined);
});
