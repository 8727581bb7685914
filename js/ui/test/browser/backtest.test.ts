/** Backtest over samples that the program has, and over an answer that is known. */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { formatTime } from '../../src/format/time';
import { assertAccessible, assertFits, open, picture, tabTo } from './browser';
import { assertLooks } from './looks';
import { Program } from './program';
import { giveRules } from './rules';
import { Site } from './serve';

const PATH = 'api/v1/alerts/backtest';
const ADDRESS = '#/alerts/backtest';
const STEP_MS = 15_000;
const MINUTE_MS = 60_000;

const RULES = `groups:
  - name: rooms
    interval: 1m
    rules:
      - record: room:temperature:max
        expr: max by (room) (temperature_celsius)
      - alert: TooHot
        expr: room:temperature:max > 80
        for: 5m
        labels:
          severity: page
        annotations:
          summary: '{{ $labels.room }} has {{ $value }} degrees'
      - alert: Cold
        expr: temperature_celsius < 0
`;
const WRONG = `groups:
  - name: rooms
    rules:
      - alert: TooHot
        expr: up +
        fro: 5m
`;

/** The newest samples. */
const END_MS = Math.floor(Date.now() / 1000) * 1000;
const program = new Program(['--no-host-metrics', '--no-own-metrics']);
let site: Site;
/** Gives an answer that is known. */
let known: Site;

/** An hour of three rooms: hot for 20 minutes, hot since 20 minutes, hot for two. */
function roomLines(): string[] {
  const lines: string[] = [];
  for (let ago = 60 * MINUTE_MS; ago >= 0; ago -= STEP_MS) {
    const put = (room: string, isHot: boolean): void => void lines.push(`temperature_celsius{room="${room}"} ${isHot ? 90 : 20} ${END_MS - ago}`);
    put('kitchen', ago <= 40 * MINUTE_MS && ago > 20 * MINUTE_MS);
    put('cellar', ago <= 20 * MINUTE_MS);
    put('hall', ago <= 50 * MINUTE_MS && ago > 48 * MINUTE_MS);
  }
  return lines;
}

before(async () => {
  await program.start();
  await program.import(roomLines());
  site = await new Site(program.url).start();
  known = await new Site(program.url).start();
  giveRules(known);
  known.answers.set(PATH, () => readFileSync(fileURLToPath(new URL('../../../test/fixtures/backtest.json', import.meta.url)), 'utf8'));
});
after(async () => {
  site?.close();
  known?.close();
  await program.remove();
});

const rulesField = (page: Page) => page.getByRole('textbox', { name: 'Rules, as in a rule file' });

for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
  test(`an answer that is known, ${width} px, ${scheme}`, async () => {
    const { page, errors } = await open(`${known.url}${ADDRESS}?end=2026-12-01+06:00:00`, { width, scheme });
    await rulesField(page).fill(RULES);
    await page.getByRole('button', { name: 'Run' }).click();
    await page.getByRole('heading', { name: '5 alerts would have fired: HighLoad, Hostile' }).waitFor();
    await page.getByRole('row', { name: /HighLoad fired 4 times; 12 alerts were only pending/ }).waitFor();
    await page.getByRole('row', { name: /Matching never fired The last error: many-to-many matching not allowed.* 37$/ }).waitFor();
    await page.getByText('2\u202f880 samples of 2 series').waitFor();
    await page.getByText('1 more fired that the node does not list').waitFor();
    const strip = page.getByRole('img', { name: 'When alerts of HighLoad were pending and firing' });
    assert.deepEqual([await strip.locator('rect.pending').count(), await strip.locator('rect.firing').count()], [3, 3]);
    assert.match((await strip.locator('rect.firing').nth(1).textContent())!, /edge-7.* firing from .* to the end, 9 h 55 min/);
    await page.getByText(/^Stored series read: .*up and others that no name selects; computed series: instance:load:ratio\.$/).waitFor();
    await page.evaluate(() => (document.activeElement as HTMLElement).blur());
    await picture(page, `backtest-${width}`);
    await assertLooks(page, `backtest-${width}`);
    assert.deepEqual(errors, []);
    assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
    await assertFits(page);
    await assertAccessible(page);
    await page.context().close();
  });
}

test('rules run over stored samples, by keys alone', async () => {
  const { page, errors } = await open(`${site.url}#/alerts`);
  await page.getByRole('navigation', { name: 'Sections' }).waitFor();
  await tabTo(page, 'Backtest');
  await page.keyboard.press('Enter');
  await rulesField(page).waitFor();
  assert.equal(await page.title(), 'Backtest – tidepool');
  await assertAccessible(page);
  await tabTo(page, 'Range, as 1h30m');
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.type('1h');
  await page.keyboard.press('Enter');
  await page.waitForURL(/range=1h/);
  await tabTo(page, 'End, as 2026-01-31 13:05:09 in local time');
  await page.keyboard.type(formatTime(END_MS, 'local'));
  await page.keyboard.press('Enter');
  await page.waitForURL(/end=/);
  await rulesField(page).focus();
  await page.keyboard.insertText(RULES);
  await page.keyboard.press('Control+Enter');
  await page.getByRole('heading', { name: '2 alerts would have fired: TooHot; 1 alert would only have been pending.' }).waitFor();
  assert.ok(site.asked.includes(`POST /${PATH}`));
  const table = page.getByRole('region', { name: 'Rules of rooms' });
  await table.getByRole('row', { name: /room:temperature:max \d+ samples of 3 series/ }).waitFor();
  await table.getByRole('row', { name: /TooHot fired 2 times; 1 alert was only pending/ }).waitFor();
  await table.getByRole('row', { name: /Cold never fired/ }).waitFor();
  const alerts = page.getByRole('region', { name: 'Alerts of TooHot' });
  await alerts.getByRole('row', { name: /kitchen.*kitchen has 90 degrees.* for \d+ min.* 90 TooHot, fired at .*: open in Query$/ }).waitFor();
  await alerts.getByRole('row', { name: /cellar.*still firing at the end/ }).waitFor();
  await page.getByText(/^Stored series read: temperature_celsius; computed series: .*room:temperature:max.*\.$/).waitFor();
  await alerts.getByRole('row', { name: /kitchen/ }).getByRole('link').click();
  const expression = page.getByRole('textbox', { name: 'Expression of panel 1' });
  await expression.waitFor();
  assert.equal(await expression.inputValue(), 'room:temperature:max > 80');
  assert.match(page.url(), /end_input=/);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('all mistakes stand beside the text, and lead to their places', async () => {
  const { page, errors } = await open(site.url + ADDRESS, { expected: ['400 (Bad Request)'] });
  await rulesField(page).fill(WRONG);
  await page.getByRole('button', { name: 'Run' }).click();
  const mistakes = page.getByRole('alert');
  await mistakes.waitFor();
  const lines = (await mistakes.textContent())!.split('\n');
  assert.equal(lines.length, 2);
  assert.match(lines[0]!, /^rules:5:\d+: groups\[0\]\.rules\[0\]\.expr: /);
  assert.match(lines[1]!, /^rules:6:9: groups\[0\]\.rules\[0\]\.fro: /);
  assert.equal(await rulesField(page).getAttribute('aria-invalid'), 'true');
  await picture(page, 'backtest-wrong');
  await assertFits(page);
  await assertAccessible(page);
  await mistakes.getByRole('button', { name: 'rules:6:9' }).click();
  const selected = await rulesField(page).evaluate((field: HTMLTextAreaElement) => [document.activeElement === field, field.value.slice(field.selectionStart, field.selectionEnd)]);
  assert.deepEqual(selected, [true, 'fro: 5m']);
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a run is cancelled, and its request ends', async () => {
  const { page, errors } = await open(known.url + ADDRESS, { expected: ['ERR_ABORTED', 'ERR_FAILED'] });
  await page.route(`**/${PATH}`, () => {});
  await rulesField(page).fill(RULES);
  const asked = page.waitForRequest(`**/${PATH}`);
  await page.getByRole('button', { name: 'Run' }).click();
  const request = await asked;
  const form = new URLSearchParams(request.postData()!);
  assert.equal(form.get('rules'), RULES);
  assert.equal(Number(form.get('end')) - Number(form.get('start')), 86_400);
  await page.getByRole('status').getByText('Evaluating the rules…').waitFor();
  await assertAccessible(page);
  const ended = page.waitForEvent('requestfailed');
  await page.getByRole('button', { name: 'Cancel' }).click();
  assert.equal((await ended).url(), request.url());
  await page.getByRole('status').getByText('Cancelled.').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'Run');
  // It can run again, and another view ends it.
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Cancel' }).waitFor();
  const left = page.waitForEvent('requestfailed');
  await page.getByRole('link', { name: 'Rules', exact: true }).click();
  await left;
  await page.getByText('Slowest groups').waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a rule and its group lead here with their YAML, which stays until the tab is closed', async () => {
  const { page, errors } = await open(`${known.url}#/alerts?search=TooHot`);
  await page.getByRole('button', { name: 'TooHot: backtest', exact: true }).click();
  assert.equal(
    await rulesField(page).inputValue(),
    `groups:
  - name: machine
    interval: 30s
    rules:
      - alert: TooHot
        expr: max by (instance) (node_thermal_zone_temp) >= 80
        for: 1m
        labels:
          severity: page
        annotations:
          summary: '{{ $labels.instance }} is hot'
`,
  );
  await page.goBack();
  await page.getByRole('button', { name: 'TooHot: backtest the group' }).click();
  const text = await rulesField(page).inputValue();
  assert.deepEqual(text.match(/(?:alert|record): .*/g), ['record: instance:load:ratio', 'alert: HighLoad', 'alert: DiskSpaceLow', 'alert: TooHot', 'alert: MemoryFull']);
  await rulesField(page).fill(`${text}# mine\n`);
  await page.getByRole('button', { name: 'Longer range' }).click();
  await page.waitForURL(/range=2d/);
  await page.reload();
  assert.match(await rulesField(page).inputValue(), /# mine\n$/);
  assert.equal(await page.getByLabel('Range, as 1h30m').inputValue(), '2d');
  assert.ok(!page.url().includes('mine'));
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('what was changed since is said, and a failure is not taken for no alerts', async () => {
  const { page } = await open(known.url + ADDRESS);
  await rulesField(page).fill(RULES);
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByRole('heading', { name: '5 alerts would have fired' }).waitFor();
  assert.equal(await page.getByText('were changed since').count(), 0);
  await rulesField(page).fill(`${RULES}\n`);
  await page.getByText('were changed since').waitFor();
  await page.route(`**/${PATH}`, (route) => route.fulfill({ status: 503, body: '{"status":"error","errorType":"timeout","error":"the backtest took too long"}', contentType: 'application/json' }));
  await page.getByRole('button', { name: 'Run' }).click();
  await page.getByRole('alert').getByText('the backtest took too long (timeout)').waitFor();
  assert.equal(await page.getByText('would have fired').count(), 0);
  await page.context().close();
});
