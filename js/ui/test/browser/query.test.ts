/** Queries, by keyboard and by pointer. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { printTree, type TreeNode } from '../../src/promql/tree';
import { open } from './browser';
import { machineLines, manySeries } from './data';
import { Program } from './program';
import { Site } from './serve';

const program = new Program(['--no-host-metrics', '--no-own-metrics']);
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
  const { page, errors } = await open(`${site.url}#/query`);
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
  // And the way back leads out of the zoom.
  await page.goBack();
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
