/**
 * The viewer from `file://`, over the data directory of the program. The expectations are the
 * program's answers over HTTP for the same data.
 */

import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits, open, picture, savedReport, tabTo } from '../browser/browser';
import { hostileLines, machineLines } from '../browser/data';
import { Program } from '../browser/program';
import { repackLog } from './zstd';

const address = new URL('../../../dist-viewer/viewer.html', import.meta.url).href;
const program = new Program(['--no-host-metrics', '--no-own-metrics']);
const work = mkdtempSync(join(tmpdir(), 'tidepool-viewer-'));
const copy = join(work, 'copy');
const endMs = Math.floor(Date.now() / 1000) * 1000;

const EXPRESSIONS = [
  'sum by (mode, cpu) (rate(node_cpu_seconds_total[5m]))',
  'sum by (mode) (count_over_time(node_cpu_seconds_total[1d]))',
  'sum(count_over_time(old_samples[1d]))',
  'node_load1 / 3',
];
const HTTP = new Map<string, { metric: Record<string, string>; value: [number, string] }[]>();

before(async () => {
  // Two blocks of half a day ago, whatever the time of day, then a log of the last hour.
  const beginMs = Math.floor(endMs / 7_200_000 - 6) * 7_200_000 + 600_000;
  const old = Array.from({ length: 2000 }, (_, i) => `old_samples{n="${i % 10}"} ${i} ${beginMs + Math.floor(i / 10) * 60_000}`);
  program.importBlocks(old);
  await program.start();
  await program.import([...machineLines(endMs), ...hostileLines(endMs)]);
  for (const query of EXPRESSIONS) HTTP.set(query, (await program.api('query', { query, time: `${endMs / 1000}` })).result);
  // The program still has the directory open.
  cpSync(program.dataDir, copy, { recursive: true });
});
after(async () => {
  await program.remove();
  rmSync(work, { recursive: true, force: true });
});

async function pickDirectory(page: Page, dir: string): Promise<void> {
  await page.locator('input[webkitdirectory]').setInputFiles(dir);
  await page.getByRole('link', { name: 'Explore' }).waitFor();
}

/** Rows of the table that is shown: labels and value. */
async function rowsOf(page: Page): Promise<string[]> {
  await page.getByText('samples read').waitFor();
  return page.locator('.panel table tbody tr, main table tbody tr').evaluateAll((rows) => rows.map((row) => (row as HTMLElement).innerText.replace(/\s+/g, ' ').trim()));
}

test('a directory of the program gives the answers of the program', async () => {
  const { page, errors } = await open(address);
  await page.getByRole('heading', { name: 'Query a data directory' }).waitFor();
  await assertAccessible(page);
  const begun = Date.now();
  await pickDirectory(page, copy);
  console.log(`open after ${Date.now() - begun} ms`);
  await page.getByText(/copy: .*blocks/).waitFor();
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  for (const query of EXPRESSIONS) {
    const known = HTTP.get(query)!;
    assert.ok(known.length > 0, query);
    await page.evaluate((search) => {
      history.replaceState(null, '', `?${search}#/query`);
      dispatchEvent(new PopStateEvent('popstate'));
    }, `${new URLSearchParams({ 'g0.expr': query, 'g0.tab': 'table' })}`);
    await page.waitForFunction((text) => (document.querySelector('textarea') as HTMLTextAreaElement | null)?.value === text, query);
    await page.waitForFunction((values) => values.every((value) => document.querySelector('main')!.textContent!.includes(value)), known.map(({ value }) => value[1]));
    const rows = await rowsOf(page);
    assert.equal(rows.length, known.length, query);
    for (const { metric, value } of known) {
      const wanted = [...Object.values(metric), value[1]];
      assert.ok(rows.some((row) => wanted.every((text) => row.includes(text))), `${query}: ${wanted.join(' ')} in ${rows.join('; ')}`);
    }
  }
  await field.waitFor();
  await page.getByRole('tab', { name: 'Graph' }).click();
  await page.getByText('a point each').waitFor();
  await picture(page, 'viewer-graph');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a directory of a hundred blocks', async () => {
  const [blocks, series, ofBlock, blockMs] = [100, 3, 24, 7_200_000];
  const many = new Program();
  const beginMs = Math.floor(endMs / blockMs - 110) * blockMs;
  const lines = Array.from({ length: series }, (_, n) =>
    Array.from({ length: blocks * ofBlock }, (_, i) => `many_blocks{n="${n}"} ${i} ${beginMs + i * (blockMs / ofBlock)}`),
  );
  many.importBlocks(lines.flat());
  assert.equal(many.blocks().length, blocks);
  const panels = { 'g0.expr': 'sum by (n) (count_over_time(many_blocks[10d]))', 'g0.tab': 'table', 'g1.expr': 'many_blocks{n="1"}', 'g1.tab': 'table' };
  const { page, errors } = await open(`${address}?${new URLSearchParams(panels)}`);
  await pickDirectory(page, many.dataDir);
  await page.getByText(`${blocks} blocks`).waitFor();
  await page.getByText('samples read').nth(1).waitFor();
  const values = await page.locator('.panel td.number').allTextContents();
  assert.deepEqual(values, [...Array(series).fill(`${blocks * ofBlock}`), `${blocks * ofBlock - 1}`]);
  assert.equal(await page.getByText('damaged').count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
  await many.remove();
});

const skip = spawnSync('zstd', ['--version']).error === undefined ? false : 'zstd is not on the path';

test('a log that Prometheus would write with --wal-compression=zstd', { skip }, async () => {
  const packed = join(work, 'packed');
  cpSync(copy, packed, { recursive: true });
  assert.ok(repackLog(join(packed, 'wal')) > 0);
  const query = EXPRESSIONS[1]!;
  const { page, errors } = await open(`${address}?${new URLSearchParams({ 'g0.expr': query, 'g0.tab': 'table' })}`);
  await pickDirectory(page, packed);
  const rows = await rowsOf(page);
  const known = HTTP.get(query)!;
  assert.equal(rows.length, known.length);
  for (const { metric, value } of known) assert.ok(rows.some((row) => row.includes(metric['mode']!) && row.includes(value[1])), value[1]);
  assert.equal(await page.getByText('damaged').count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('the program writes a viewer that opens its files', async () => {
  const file = join(work, 'viewer.html');
  writeFileSync(file, program.run(['viewer']));
  const { page, errors } = await open(`file://${file}?${new URLSearchParams({ 'g0.expr': EXPRESSIONS[2]!, 'g0.tab': 'table' })}`);
  await pickDirectory(page, copy);
  const rows = await rowsOf(page);
  assert.ok(rows.some((row) => row.includes(HTTP.get(EXPRESSIONS[2]!)![0]!.value[1])), rows.join('; '));
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('by keyboard alone: a directory, a query, a report of it', async () => {
  const { page, errors } = await open(address);
  const chosen = page.waitForEvent('filechooser');
  await tabTo(page, 'Open a directory');
  await page.keyboard.press('Enter');
  await (await chosen).setFiles(copy);
  await page.getByText(/copy: .*blocks/).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('sum(node_load1)');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await page.getByText('a point each').waitFor();
  await tabTo(page, 'Save as a report');
  const file = await savedReport(page, () => page.keyboard.press('Enter'));
  const report = await open(`file://${file}`);
  await report.page.getByRole('region', { name: 'Expression' }).getByText('sum(node_load1)').waitFor();
  await report.page.getByText('copy', { exact: true }).waitFor();
  await report.page.locator('.u-over').waitFor();
  const last = (where: Page) => where.locator('.legend td.number').first().textContent();
  assert.equal(await last(report.page), await last(page));
  await picture(report.page, 'viewer-report');
  assert.deepEqual([...errors, ...report.errors], []);
  await report.page.context().close();
  await page.context().close();
});

test('what was open before leaves no listeners behind', async () => {
  const { page } = await open(address);
  const session = await page.context().newCDPSession(page);
  const listeners = async (): Promise<number> => {
    const { result } = await session.send('Runtime.evaluate', { expression: 'document' });
    const { listeners } = await session.send('DOMDebugger.getEventListeners', { objectId: result.objectId! });
    return listeners.filter(({ type }) => type === 'visibilitychange').length;
  };
  const counts: number[] = [];
  for (let i = 0; i < 3; i += 1) {
    await pickDirectory(page, copy);
    await page.getByText(/copy: .*blocks/).waitFor();
    counts.push(await listeners());
  }
  assert.ok(counts[0]! > 0);
  assert.deepEqual(new Set(counts).size, 1, counts.join(' '));
  await page.context().close();
});

test('a directory that is dropped onto the page', async () => {
  const { page, errors } = await open(`${address}?g0.expr=node_load1&g0.tab=table`);
  await page.getByRole('heading', { name: 'Query a data directory' }).waitFor();
  const session = await page.context().newCDPSession(page);
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const) {
    await session.send('Input.dispatchDragEvent', { type, x: 200, y: 200, data: { items: [], files: [copy], dragOperationsMask: 1 } });
  }
  await page.getByText(/copy: .*2 blocks/).waitFor();
  assert.equal((await rowsOf(page)).length, 1);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('the pages that files have, on a phone; a live directory; an archive; damage', async () => {
  const { page, errors } = await open(address, { width: 360 });
  // The program works in this one.
  await pickDirectory(page, program.dataDir);
  for (const [section, text] of [['metrics', 'node_load1'], ['labels', 'mountpoint'], ['cardinality', 'Pairs by series'], ['storage', 'Blocks']] as const) {
    await page.evaluate((hash) => (location.hash = hash), `#/explore/${section}`);
    await page.getByText(text).first().waitFor();
    await page.waitForFunction(() => document.querySelector('.loading') === null);
    await assertFits(page);
    await assertAccessible(page);
    await picture(page, `viewer-${section}-360`);
  }
  assert.deepEqual(await page.getByRole('link', { name: /Home|Targets|Flags|Configuration/ }).count(), 0);
  await page.evaluate(() => (location.hash = '#/explore/metrics?metric=hostile'));
  await page.getByText('direction').first().waitFor();
  assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);

  const archive = join(work, 'copy.tar.gz');
  execFileSync('tar', ['-C', work, '-czf', archive, 'copy']);
  await page.locator('input[type=file]:not([webkitdirectory])').setInputFiles(archive);
  await page.getByText(/copy: .*blocks/).waitFor();

  const block = readdirSync(copy).filter((name) => /^[0-9A-Z]{26}$/.test(name)).sort()[0]!;
  truncateSync(join(copy, block, 'index'), 100);
  await pickDirectory(page, copy);
  await page.getByText(`Block ${block} is left out`).waitFor();
  await assertAccessible(page);
  await picture(page, 'viewer-damage-360');

  const nothing = join(work, 'nothing');
  cpSync(fileURLToPath(address), join(nothing, 'viewer.html'));
  await page.locator('input[webkitdirectory]').setInputFiles(nothing);
  await page.getByRole('alert').getByText('There is no block and no log').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});
