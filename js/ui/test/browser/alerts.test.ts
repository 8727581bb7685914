/** Alerts and rules: what fires, what fails, what is not known, and the ways from and to Query. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible, assertFits, open, picture, tabTo, type Tab, type TabOptions } from './browser';
import { hostileLines, machineLines } from './data';
import { assertLooks } from './looks';
import { Program } from './program';
import { alertLines, giveRules } from './rules';
import { Site } from './serve';

const program = new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']);
let site: Site;

before(async () => {
  await program.start();
  const now = Date.now();
  await program.import([...machineLines(now), ...hostileLines(now), ...alertLines(now)]);
  site = await new Site(program.url).start();
  giveRules(site);
});
after(async () => {
  site?.close();
  await program.remove();
});

async function opened(address: string, text: string, options: TabOptions = {}): Promise<Tab> {
  const tab = await open(site.url + address, options);
  await tab.page.getByText(text).first().waitFor();
  await tab.page.waitForFunction(() => document.querySelector('.loading') === null);
  await tab.page.waitForLoadState('networkidle');
  return tab;
}

for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
  test(`alerts, ${width} px, ${scheme}`, async () => {
    const { page, errors } = await opened('#/alerts', 'Slowest groups', { width, scheme });
    await page.getByRole('heading', { name: '2 alerts are firing: Gap, HighLoad' }).waitFor();
    await page.getByRole('button', { name: 'HighLoad: graph' }).click();
    await page.locator('.u-over').waitFor();
    await page.getByText('until now').waitFor();
    await page.waitForLoadState('networkidle');
    await picture(page, `alerts-${width}`);
    await assertLooks(page, `alerts-${width}`);
    assert.deepEqual(errors, []);
    assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
    await assertFits(page);
    await assertAccessible(page);
    await page.context().close();
  });
}

test('values stand beside the threshold, times are whole, and errors have their text', async () => {
  const { page, errors } = await opened('#/alerts', 'Slowest groups');
  const rules = page.getByRole('region', { name: 'Rules' });
  await rules.getByText('1.31; the threshold is > 0.7').waitFor();
  assert.match((await rules.getByRole('list', { name: 'Alerts of HighLoad' }).textContent())!, /Active since\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .*28 min/);
  await rules.getByText('many-to-many matching not allowed').waitFor();
  await rules.getByText('vector contains metrics with the same labelset').waitFor();
  await rules.getByText('whether it would fire is unknown').waitFor();
  await page.getByRole('row', { name: /^slow 8\.25 s 15s 55 %/ }).waitFor();
  // What has no one threshold has no graph.
  assert.equal(await page.getByRole('button', { name: 'Gap: graph' }).count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('rules are filtered by state and text, in the address, by keys alone', async () => {
  const { page, errors } = await opened('#/alerts', 'Slowest groups');
  await page.getByLabel('State', { exact: true }).selectOption('failing');
  await page.waitForURL(/state=failing/);
  await page.getByRole('heading', { name: /Matching/ }).waitFor();
  assert.equal(await page.locator('.rule').count(), 2);
  await tabTo(page, 'Search in rules');
  await page.keyboard.type('wrong');
  await page.waitForURL(/search=wrong/);
  await page.waitForFunction(() => document.querySelectorAll('.rule').length === 1);
  await page.reload();
  await page.getByRole('heading', { name: /job:wrong:sum/ }).waitFor();
  assert.equal(await page.locator('.rule').count(), 1);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a rule leads to its query, and a query to its rules', async () => {
  const { page, errors } = await opened('#/alerts?search=TooHot', 'Slowest groups');
  await page.getByRole('link', { name: 'TooHot: open in Query' }).click();
  const field = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await field.waitFor();
  assert.equal(await field.inputValue(), 'max by (instance) (node_thermal_zone_temp) >= 80');
  await page.goto(`${site.url}?g0.expr=max+by(instance)(node_thermal_zone_temp)&g0.tab=table`);
  await page.getByRole('link', { name: 'Rules with the expression of panel 1' }).click();
  await page.getByRole('heading', { name: /TooHot/ }).waitFor();
  assert.equal(await page.locator('.rule').count(), 1);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a clock in doubt is said', async () => {
  const own = await new Site(program.url).start();
  giveRules(own, (answer) => (answer.data.tidepool_clock_doubted = true));
  const { page } = await open(`${own.url}#/alerts`);
  await page.getByText('The node doubts its clock').waitFor();
  await page.getByRole('heading', { name: /the node’s clock is doubted/ }).waitFor();
  await assertAccessible(page);
  await page.context().close();
  own.close();
});

test('a failed request is not taken for no alerts', async () => {
  const own = await new Site(program.url).start();
  own.answers.set('api/v1/rules', () => '{"status":"error","errorType":"internal","error":"the rules are away"}');
  const { page } = await open(`${own.url}#/alerts`);
  await page.getByRole('heading', { name: 'Whether alerts are firing is unknown.' }).waitFor();
  await page.getByRole('alert').getByText('the rules are away').waitFor();
  assert.equal(await page.getByText('no rules').count(), 0);
  await page.goto(`${own.url}#/`);
  const verdict = page.getByRole('region', { name: 'Alerts' });
  await verdict.getByText('Whether alerts are firing is unknown.').waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict unknown');
  await page.context().close();
  own.close();
});

test('Home says what fires, and nothing where there are no rules', async () => {
  const { page, errors } = await open(site.url);
  const verdict = page.getByRole('region', { name: 'Alerts' });
  await verdict.getByText('2 alerts are firing: Gap, HighLoad; 1 alert is pending; 2 rules fail').waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict bad');
  await page.getByText('Data is safe on this node').waitFor();
  await picture(page, 'alerts-home');
  await assertFits(page);
  await assertAccessible(page);
  await verdict.getByRole('link', { name: 'Alerts' }).click();
  await page.getByText('Slowest groups').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();

  const own = await new Site(program.url).start();
  own.answers.set('api/v1/rules', () => '{"status":"success","data":{"groups":[]}}');
  own.answers.set('api/v1/alerts', () => '{"status":"success","data":{"alerts":[]}}');
  const none = await open(own.url);
  await none.page.getByText('Data is safe on this node').waitFor();
  await none.page.waitForLoadState('networkidle');
  assert.equal(await none.page.getByRole('region', { name: 'Alerts' }).count(), 0);
  await none.page.context().close();
  own.close();
});
