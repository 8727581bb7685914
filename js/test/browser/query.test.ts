/** Queries in a real browser: Prometheus' answers, from a worker and its files. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Cases } from '../shared/queries.js';
import { Profile } from './browser.js';

const CASES = JSON.parse(
  readFileSync(new URL('../../../../tests/contract/queries/cases.json', import.meta.url), 'utf8'),
) as Cases;

const profile = new Profile();

test('a store in a worker gives the answers of Prometheus, also after a reload', async () => {
  const page = await profile.tab();
  assert.ok(CASES.queries.length >= 20);
  for (const isFirst of [true, false]) {
    const wrong = await page.evaluate(
      async ([cases, isFirst]) => {
        const load = (path: string) => import(new URL(path, location.href).href);
        const { openInWorker } = await load('/src/promql/worker/index.js');
        const { wrongAnswers, writeCases } = await load('/test/shared/queries.js');
        const store = await openInWorker({ name: 'queries' });
        if (isFirst) await writeCases(store, cases);
        const wrong: string[] = await wrongAnswers(store, cases);
        await store.close();
        return wrong;
      },
      [CASES, isFirst] as const,
    );
    assert.deepEqual(wrong, []);
    await page.reload();
  }
  await page.close();
});

test('a page can query a store of its own, and end a query', async () => {
  const page = await profile.tab();
  const found = await page.evaluate(async (cases) => {
    const load = (path: string) => import(new URL(path, location.href).href);
    const { open, MemoryStorage } = await load('/src/promql/index.js');
    const { wrongAnswers, writeCases } = await load('/test/shared/queries.js');
    const store = await open({ storage: new MemoryStorage() });
    await writeCases(store, cases);
    const wrong: string[] = await wrongAnswers(store, cases);
    const answer = store.query('http_requests_total', { signal: AbortSignal.abort() });
    const aborted: string = await answer.result().catch((error: Error) => error.name);
    await store.close();
    return { wrong, aborted };
  }, CASES);
  assert.deepEqual(found, { wrong: [], aborted: 'AbortError' });
  await page.close();
});
