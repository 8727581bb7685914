import assert from 'node:assert/strict';
import { test } from 'node:test';
import { edit, parse } from './tag.js';

const batch = {
  symbols: '__name__münzensite',
  symbolEnds: [8, 12, 15, 19],
  // Symbol 3 is `site`: the second series has it.
  labelRefs: Uint32Array.of(0, 1, 0, 1, 3, 2),
  seriesEnds: Uint32Array.of(2, 6),
};

test('series without the label get it', () => {
  const changes = edit(batch, parse('site=nörd'));
  assert.deepEqual(changes.relabeled, [0]);
  assert.deepEqual(changes.labelRefs, [0, 1, 4, 5]);
  assert.deepEqual(changes.seriesEnds, [4]);
  assert.deepEqual([changes.symbols, changes.symbolEnds], ['sitenörd', [4, 9]]);
});

test('a batch in which all have it stays as it is', () => {
  assert.equal(edit({ ...batch, labelRefs: [3, 1, 3, 1], seriesEnds: [2, 4] }, parse('site=a')), undefined);
});

test('a wrong configuration is refused', () => {
  assert.throws(() => parse('site'), /name=value/);
});
