// Queries give the answers of Prometheus: the cases of tests/contract/queries.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { open } from './store.mjs';

const file = new URL('../../../tests/contract/queries/cases.json', import.meta.url);
const cases = JSON.parse(readFileSync(file, 'utf8'));

const OPTIONS = {
  lookbackMs: 0n,
  samplesMax: 50_000_000n,
  seriesMax: 0n,
  memoryBytesMax: 256n << 20n,
  subqueryStepMs: 0n,
  experimentalFunctions: false,
  extendedRangeSelectors: false,
  binopFillModifiers: false,
  delayedNameRemoval: false,
  typeAndUnitLabels: false,
  startTimestamps: false,
  statsPerStep: false,
};

test('queries give the answers of Prometheus', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'tidepool-'));
  const { store, query } = await open(directory, 'generated-promql');
  for (const { labels, startMs, stepMs, values } of cases.series) {
    const pairs = Object.entries(labels).map(([name, value]) => ({ name, value }));
    const series = new BigUint64Array(values.length).fill(store.seriesRef(pairs));
    const timestampsMs = BigInt64Array.from(values, (_, step) => BigInt(startMs + stepMs * step));
    const rows = { series, timestampsMs, values: Float64Array.from(values) };
    assert.equal(store.append(rows, timestampsMs.at(-1)).refused, 0n);
  }
  assert.ok(cases.queries.length >= 20);
  for (const one of cases.queries) assertAnswer(query, one);
  store.close();
  rmSync(directory, { recursive: true });
});

function assertAnswer(query, one) {
  switch (one.errorType) {
    case 'bad_data': {
      const message = one.error.replace('invalid parameter "query": ', '');
      assert.throws(
        () => ask(query, one),
        ({ tag, val }) => tag === 'parse' && val.text === message,
      );
      return;
    }
    case 'execution':
      assert.throws(() => ask(query, one), ({ tag }) => tag === 'execution');
      return;
  }
  const { series, annotations, ...found } = ask(query, one);
  const texts = (areWarnings) =>
    annotations.filter(({ isWarning }) => isWarning === areWarnings).map(({ text }) => text);
  const { resultType, text = '', warnings, infos } = one;
  assert.deepEqual({ ...found, warnings: texts(true), infos: texts(false) }, {
    resultType,
    text,
    warnings,
    infos,
  });
  const wanted = sorted(one.series);
  assert.deepEqual(series.map(({ labels }) => labels), wanted.map(({ labels }) => labels));
  for (const [i, { points }] of wanted.entries()) {
    const times = points.map(([timeMs]) => timeMs);
    assert.deepEqual(Array.from(series[i].timesMs, Number), times, one.query);
    for (const [at, [, text]] of points.entries()) {
      const [value, wantedValue] = [series[i].values[at], Number(text.replace('Inf', 'Infinity'))];
      const isNear = Math.abs(value - wantedValue) <= 1e-12 * Math.abs(wantedValue);
      assert.ok(Object.is(value, wantedValue) || isNear, `${one.query}: ${value}, not ${text}`);
    }
  }
}

function ask(query, { query: expression, startMs, endMs, stepMs }) {
  const times = [startMs, endMs, stepMs].map(BigInt);
  const evaluation =
    stepMs === 0
      ? query.instant(expression, times[0], OPTIONS)
      : query.range(expression, ...times, OPTIONS);
  try {
    const series = [];
    for (;;) {
      const some = evaluation.next(1 << 20);
      if (some.length === 0) break;
      series.push(...some);
    }
    const named = series.map(({ labels, ...rest }) => {
      return { labels: Object.fromEntries(labels.map(({ name, value }) => [name, value])), ...rest };
    });
    return {
      resultType: evaluation.valueType(),
      text: evaluation.text(),
      annotations: evaluation.annotations(0),
      series: sorted(named),
    };
  } finally {
    evaluation[Symbol.dispose]();
  }
}

function sorted(series) {
  const key = ({ labels }) => JSON.stringify(Object.entries(labels).sort());
  return [...series].sort((a, b) => (key(a) < key(b) ? -1 : 1));
}
