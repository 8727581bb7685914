/** Queries, by keyboard and by pointer. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { printTree, type TreeNode } from '../../src/promql/tree';
import { assertAccessible, assertFits, open, picture, savedReport } from './browser';
import { machineLines, manySeries } from './data';
import { Program } from './program';
import { STALE, writeRequest, type Sample } from './remote-write';
import { Site } from './serve';

const program = new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']);
let site: Site;

before(async () => {
  await program.start();
  const now = Date.now();
  await program.import([...machineLines(now), ...manySeries(10_000, now)]);
  site = await new Site(program.url).start();
});
after(async () => {
  site?.close();
  await program.remove();
});

const panelParams = (url: string) => new URL(url).searchParams;

test('a query by keyboard alone: completion, run, tabs, history', async () => {
  // A pause while it is written asks for its mistakes.
  const { page, errors } = await open(`${site.url}#/query`, { expected: ['400 (Bad Request)'] });
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await field.waitFor();
  await page.keyboard.press('/');
  assert.ok(await field.evaluate((element) => element === document.activeElement));
  await page.keyboard.type('su');
  await page.getByRole('option', { name: 'sum', exact: true }).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await field.inputValue(), 'sum()');
  await page.keyboard.type('node_lo');
  await page.getByRole('option', { name: /node_load1 gauge/ }).waitFor();
  // Down to node_load15, which comes second.
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  assert.equal(await field.inputValue(), 'sum(node_load15)');
  await page.keyboard.type('{inst');
  await page.getByRole('option', { name: 'instance' }).waitFor();
  await page.keyboard.press('Tab');
  await page.getByRole('option', { name: 'edge-7' }).waitFor();
  await page.keyboard.press('Tab');
  assert.equal(await field.inputValue(), 'sum(node_load15{instance="edge-7")');
  await page.keyboard.type('}');
  assert.equal(await field.inputValue(), 'sum(node_load15{instance="edge-7"})');
  await page.keyboard.press('Enter');
  await page.getByText('a point each').waitFor();
  assert.equal(panelParams(page.url()).get('g0.expr'), 'sum(node_load15{instance="edge-7"})');

  // To the tabs, and along them.
  await page.getByRole('tab', { name: 'Graph' }).focus();
  await page.keyboard.press('ArrowLeft');
  await page.getByText('samples read').waitFor();
  assert.equal(panelParams(page.url()).get('g0.tab'), 'table');
  const value = await page.locator('td.number').first().textContent();
  const expected = await program.api('query', { query: 'sum(node_load15)' });
  assert.equal(value, expected.result[0].value[1]);

  // The expression before comes back.
  await field.focus();
  await page.keyboard.press('Control+A');
  await page.keyboard.type('1 + 1');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await page.getByText('scalar').waitFor();
  await page.keyboard.press('Alt+ArrowUp');
  await page.keyboard.press('Alt+ArrowUp');
  assert.equal(await field.inputValue(), 'sum(node_load15{instance="edge-7"})');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('what is wrong is said under its place', async () => {
  const { page } = await open(`${site.url}#/query`);
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await field.fill('sum(node_load1) by by');
  const wrong = page.locator('.wrong-text');
  await wrong.waitFor();
  assert.match((await wrong.textContent())!, /unexpected/);
  assert.equal(await page.locator('pre .wrong').textContent(), 'by');
  const [mark, text] = await Promise.all([page.locator('pre .wrong').boundingBox(), wrong.boundingBox()]);
  assert.ok(Math.abs(mark!.x - text!.x) < 12, `${mark!.x} and ${text!.x}`);
  assert.ok(text!.y > mark!.y);
  await field.fill('sum(node_load1)');
  await wrong.waitFor({ state: 'detached' });
  await page.context().close();
});

test('the letters of the field stand where those of its copy do', async () => {
  const { page } = await open(`${site.url}#/query`, { width: 360 });
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await field.fill('sum by (mode, instance) (rate(node_cpu_seconds_total{mode!="idle"}[5m])) / 2\n  + 1');
  const heights = await page.evaluate(() => {
    const area = document.querySelector<HTMLTextAreaElement>('.editor textarea')!;
    return [area.scrollHeight, area.clientHeight, document.querySelector<HTMLElement>('.editor pre')!.offsetHeight];
  });
  assert.equal(heights[0], heights[1]);
  assert.equal(heights[1], heights[2]);
  await page.context().close();
});

test('a drawn span is zoomed into; a hidden line and the axis stand in the address', async () => {
  const { page, errors } = await open(`${site.url}?g0.expr=%7B__name__%3D~%22node_load1%7Cnode_load5%22%7D&g0.tab=graph&g0.range_input=1h`);
  const over = page.locator('.u-over');
  await over.waitFor();
  const box = (await over.boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.25, box.y + 50);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.75, box.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL(/g0\.end_input/);
  assert.match(panelParams(page.url()).get('g0.range_input')!, /^(29m|30m)/);
  await page.getByText('a point each 8s').waitFor();

  await page.getByRole('button', { name: /node_load5/ }).click();
  await page.waitForURL(/g0\.hidden=/);
  assert.equal(panelParams(page.url()).get('g0.hidden')!.split(',').length, 1);
  await page.getByRole('button', { name: 'Log axis' }).click();
  await page.waitForURL(/g0\.log=1/);
  // The same address shows the same.
  await page.reload();
  await page.locator('.legend tr.off').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Log axis' }).getAttribute('aria-pressed'), 'true');
  // And the way back leads to the axis before, and then out of the zoom.
  await page.goBack();
  await page.waitForURL((url) => !url.searchParams.has('g0.log'));
  assert.equal(await page.getByRole('button', { name: 'Log axis' }).getAttribute('aria-pressed'), 'false');
  await page.getByText('a point each 8s').waitFor();
  await page.goBack();
  await page.waitForURL((url) => !url.searchParams.has('g0.end_input'));
  await page.getByText('a point each 15s').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('where there is no sample there is a gap', async () => {
  const { page } = await open(`${site.url}?g0.expr=gappy&g0.tab=graph&g0.range_input=1h`);
  await page.getByText('a point each').waitFor();
  await page.getByText('Values in a table').click();
  const gaps = await page.locator('details.values td.number').evaluateAll((cells) => cells.map((cell) => cell.textContent));
  // The newest 50 of 241 points come after the gap.
  assert.ok(gaps.every((text) => text !== '–'));
  for (let i = 0; i < 2; i += 1) await page.getByRole('button', { name: 'Next times' }).click();
  const middle = await page.locator('details.values td.number').evaluateAll((cells) => cells.map((cell) => cell.textContent));
  assert.ok(middle.some((text) => text === '–'), middle.join(' '));
  await page.context().close();
});

test('a line ends at a stale marker, and only there', async () => {
  const STEP_MS = 15_000;
  // On the grid of the graph, so that each point has a sample of its own time.
  const endMs = Math.floor(Date.now() / STEP_MS) * STEP_MS - STEP_MS;
  const timeOf = (step: number): number => endMs - (240 - step) * STEP_MS;
  // Ten steps without a sample: less than a query looks back.
  const steps = Array.from({ length: 241 }, (_, step) => step).filter((step) => step <= 200 || step > 210);
  const plain: Sample[] = steps.map((step) => [timeOf(step), step]);
  const marked: Sample[] = [...plain.slice(0, 200), [timeOf(200), STALE], ...plain.slice(201)];
  await program.write(writeRequest({ __name__: 'ended', kind: 'missing' }, plain));
  await program.write(writeRequest({ __name__: 'ended', kind: 'marked' }, marked));
  const params = new URLSearchParams({ 'g0.expr': 'ended', 'g0.tab': 'graph', 'g0.range_input': '1h', 'g0.end_input': new Date(endMs).toISOString().slice(0, 19).replace('T', ' ') });
  const { page, errors } = await open(`${site.url}?${params}`);
  await page.getByText('a point each 15s').waitFor();
  await page.getByText('Values in a table').click();
  const columns = await page.locator('details.values thead th.number').allTextContents();
  assert.deepEqual(columns, ['ended{kind="marked"}', 'ended{kind="missing"}']);
  const rows = await page.locator('details.values tbody tr').evaluateAll((all) => all.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent)));
  // The newest first: 240 to 191.
  const shown = rows.map((row, i) => [240 - i, ...row] as const);
  assert.equal(shown.length, 50);
  for (const [step, ofMarked, ofMissing] of shown) {
    assert.equal(ofMarked, step >= 200 && step <= 210 ? '–' : `${step}`, `step ${step}`);
    assert.equal(ofMissing, step > 200 && step <= 210 ? '200' : `${step}`, `step ${step}`);
  }
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('the last time below a graph is whole', async () => {
  // Ends on a full hour, where a label stands at the right edge, in each width of labels.
  for (const [range, end] of [['1h', '2026-01-31 12:00:00'], ['2m', '2026-01-31 12:00:00'], ['4000d', '2026-01-01 00:00:00']]) {
    const params = new URLSearchParams({ 'g0.expr': 'vector(1)', 'g0.tab': 'graph', 'g0.range_input': range!, 'g0.end_input': end! });
    const { page } = await open(`${site.url}?${params}`);
    await page.getByRole('button', { name: 'Local time' }).click();
    await page.locator('.u-over').waitFor();
    const ink = await page.evaluate(() => {
      const canvas = document.querySelector<HTMLCanvasElement>('.u-wrap canvas')!;
      const { width, height } = canvas;
      const alphaIn = (left: number, columns: number): boolean => {
        const { data } = canvas.getContext('2d')!.getImageData(left, height - 30, columns, 30);
        return data.some((value, i) => i % 4 === 3 && value > 0);
      };
      const over = document.querySelector('.u-over')!.getBoundingClientRect();
      const right = Math.round((over.right - canvas.getBoundingClientRect().left) * devicePixelRatio);
      return { atEdge: alphaIn(width - 1, 1), besideGraph: alphaIn(right, width - right) };
    });
    assert.deepEqual(ink, { atEdge: false, besideGraph: true }, `${range}`);
    await page.context().close();
  }
});

test('a report is a file that shows graph, table and query without the node', async () => {
  const hostile = 'label_replace(node_load1, "html", "</script><img src=x onerror=window.harmed=1>", "", "")';
  for (const tab of ['graph', 'table']) {
    const { page, errors } = await open(`${site.url}?${new URLSearchParams({ 'g0.expr': hostile, 'g0.tab': tab, 'g0.range_input': '30m' })}`);
    await page.getByText('samples read').waitFor();
    const figure = tab === 'graph' ? '.legend td.number' : '.scroll td.number';
    const known = await page.locator(figure).first().textContent();
    const file = await savedReport(page, () => page.getByRole('button', { name: 'Save as a report' }).click());
    const text = readFileSync(file, 'utf8');
    const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(text)![1]!;
    assert.match(policy, /^default-src 'none'; script-src 'sha256-[^ ]+'; style-src 'sha256-[^ ]+'; img-src data:; base-uri 'none'; form-action 'none'$/);

    const report = await open(`file://${file}`, { width: 360 });
    await report.page.getByRole('region', { name: 'Expression' }).getByText('label_replace').waitFor();
    for (const fact of [new URL(site.url).host, 'Saved']) await report.page.getByText(fact).first().waitFor();
    assert.equal(await report.page.locator(figure).first().textContent(), known);
    if (tab === 'graph') {
      await report.page.locator('.u-over').waitFor();
      assert.equal(await report.page.locator('details.values tbody tr').count(), 50);
    }
    await picture(report.page, `report-${tab}-360`);
    await assertFits(report.page);
    await assertAccessible(report.page);
    assert.equal(await report.page.getByRole('button', { name: 'Save as a report' }).count(), 0);
    assert.equal(await report.page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
    assert.deepEqual([...errors, ...report.errors], []);
    // Its policy lets nothing out.
    const refused = await report.page.evaluate((url) => fetch(url).then(() => 'answered', () => 'refused'), site.url);
    assert.equal(refused, 'refused');
    await report.page.context().close();
    await page.context().close();
  }
});

test('of ten thousand series a graph draws a hundred, and says so', async () => {
  const { page, errors } = await open(`${site.url}?g0.expr=wide&g0.tab=graph&g0.range_input=5m`);
  await page.getByText('10\u202f000 series; the answer was cut off after 1\u202f000.').waitFor();
  await page.getByText('The graph draws the 100 with the greatest values.').waitFor();
  assert.equal(await page.locator('.legend tbody tr').count(), 100);
  await page.getByRole('button', { name: 'Draw 1\u202f000' }).click();
  await page.getByText('and 800 more lines').waitFor();
  await page.getByRole('tab', { name: 'Table' }).click();
  await page.getByText('10\u202f000 series').first().waitFor();
  assert.equal(await page.locator('.scroll tbody tr').count(), 100);
  await page.getByRole('searchbox', { name: 'Search in the result' }).fill('n="9999');
  await page.getByText('9999', { exact: true }).waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('panels are added and removed, and share their cursor', async () => {
  const { page, errors } = await open(`${site.url}?g0.expr=node_load1&g0.tab=graph&g1.expr=node_load5&g1.tab=graph#/query`);
  await page.locator('.u-over').nth(1).waitFor();
  await page.locator('.u-over').first().hover();
  const box = (await page.locator('.u-over').first().boundingBox())!;
  const left = await page.locator('.panel').nth(1).locator('.u-cursor-x').evaluate((line) => new DOMMatrix(getComputedStyle(line).transform).e);
  assert.ok(Math.abs(left - box.width / 2) < 3, `${left} of ${box.width}`);
  await page.getByRole('button', { name: 'Add a panel' }).click();
  await page.getByRole('textbox', { name: 'Expression of panel 3' }).waitFor();
  await page.getByRole('button', { name: 'Remove panel 1' }).click();
  await page.getByRole('textbox', { name: 'Expression of panel 3' }).waitFor({ state: 'detached' });
  assert.equal(await page.getByRole('textbox', { name: 'Expression of panel 1' }).inputValue(), 'node_load5');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('an explanation has the parts with their cost', async () => {
  const { page, errors } = await open(`${site.url}?g0.expr=sum+by+(mode)+(rate(node_cpu_seconds_total%5B5m%5D))+/+2&g0.tab=explain`);
  await page.getByText('the samples of the last 5m of each selected series').waitFor();
  await page.getByRole('button', { name: 'Measure the parts' }).click();
  await page.locator('.part .cost').nth(3).waitFor();
  const costs = await page.locator('.part .cost').allTextContents();
  assert.match(costs[0]!, /^4 series/);
  assert.match(costs.at(-1)!, /^8 series/);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('the text of a tree gives the same tree', async () => {
  const expressions = [
    'sum by (a, "b.c") (rate(x{y!~"z.*", "q.r"="s\\n"}[5m] offset 1h))',
    'topk without (a) (3, x) > bool on (a, b) group_left (c) -y ^ 2',
    'a and ignoring (b) c or d unless on () e',
    'max_over_time(rate({"my.metric"}[1m])[1h:30s] @ 1700000000.5 offset -5m)',
    'x @ start() + max_over_time(x[5m:]) * time()',
    'label_replace(up, "a", "$1", "b", "(.*)") == 1e-7',
    '(1 + 2) * +Inf % -NaN',
    'count_values("v", {a!=""})',
    'a * ignoring () group_right (x) b',
  ];
  for (const query of expressions) {
    const tree = (await program.api('parse_query', { query })) as TreeNode;
    assert.ok(tree !== undefined, query);
    assert.deepEqual(await program.api('parse_query', { query: printTree(tree) }), tree, printTree(tree));
  }
});
