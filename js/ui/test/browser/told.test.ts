/** What is told of alerts: events, silences and receivers on their views, in Alerts, on Home. */

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible, assertFits, open, picture, tabTo } from './browser';
import { machineLines } from './data';
import { assertLooks } from './looks';
import { Program } from './program';
import { fixture, giveNothingTold, giveQuietRule, giveRules, giveTold } from './rules';
import { Site, type Asked } from './serve';

const HISTORY = 'api/v1/alerts/history';
const RECEIVERS = 'api/v1/alerts/receivers';
const SILENCES = 'api/v2/silences';
/** The fixture's active silence. */
const ACTIVE = 'api/v2/silence/7d8e2d1c-3f0a-4a52-8a83-2b1f6d0f5c11';
const EXPIRE = 'Expire alertname="HighLoad", instance=~"edge-.*"';
const FAILED = { status: 500, text: '{"status":"error","errorType":"internal","error":"the disk is away"}' };

const program = new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']);
let site: Site;

before(async () => {
  await program.start();
  await program.import(machineLines(Date.now()));
  site = await ownSite();
});
after(async () => {
  site?.close();
  await program.remove();
});

/** A site whose answers a test may change. */
async function ownSite(): Promise<Site> {
  const own = await new Site(program.url).start();
  giveRules(own);
  giveTold(own);
  return own;
}

const focused = (page: Page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? (document.activeElement as HTMLInputElement).labels?.[0]?.innerText ?? document.activeElement?.textContent);
const sections = (page: Page) => page.getByRole('navigation', { name: 'Sections' });

const VIEWS: [name: string, address: string, text: string][] = [
  ['history', '#/alerts/history', 'Events are kept since'],
  ['silences', '#/alerts/silences', 'a new fan comes tomorrow'],
  ['silences-new', `#/alerts/silences?${new URLSearchParams({ matchers: 'alertname="HighLoad"' })}`, 'Add the silence'],
  ['receivers', '#/alerts/receivers', 'connection refused'],
];
for (const [name, address, text] of VIEWS) {
  for (const [width, scheme] of [[360, 'light'], [1280, 'dark']] as const) {
    test(`${name}, ${width} px, ${scheme}`, async () => {
      const { page, errors } = await open(site.url + address, { width, scheme });
      await page.getByText(text).first().waitFor();
      await sections(page).getByRole('link', { name: 'Receivers' }).waitFor();
      await page.waitForLoadState('networkidle');
      await picture(page, `${name}-${width}`);
      await assertLooks(page, `${name}-${width}`);
      assert.deepEqual(errors, []);
      assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
      await assertFits(page);
      await assertAccessible(page);
      await page.context().close();
    });
  }
}

test('events have their values, and why they ended', async () => {
  const { page, errors } = await open(`${site.url}#/alerts/history`);
  const table = page.getByRole('region', { name: 'Events, the newest first' });
  await table.getByRole('row', { name: /firing HighLoad .*edge-7.* 1\.31$/ }).waitFor();
  await table.getByRole('row', { name: /resolved after 15 min DiskSpaceLow .* 0\.081$/ }).waitFor();
  await table.getByRole('row', { name: /resolved after 2 h its rule was removed Removed .* NaN$/ }).waitFor();
  await table.getByRole('row', { name: /resolved after 30 min when it ended was not seen: .* Hostile .* \+Inf$/ }).waitFor();
  assert.equal(await table.getByRole('row').count(), 5);
  assert.equal(await page.title(), 'History of alerts – tidepool');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('events are filtered and paged by the node, by keys alone', async () => {
  const own = await ownSite();
  const asked: URLSearchParams[] = [];
  own.answers.set(HISTORY, ({ params }) => {
    asked.push(params);
    if (params.get('next_token') === null) return fixture('history');
    return fixture('history', ({ data }) => {
      data.events = [{ ...data.events[0], number: 3, labels: { alertname: 'Older' } }];
      delete data.nextToken;
    });
  });
  const { page, errors } = await open(`${own.url}#/alerts/history`);
  await page.getByText('HighLoad').waitFor();
  assert.equal(await page.getByRole('button', { name: 'Newer' }).isDisabled(), true);
  assert.equal(asked[0]!.get('end'), null);
  const beginning = Number(asked[0]!.get('start'));
  assert.ok(Math.abs(Date.now() / 1000 - beginning - 7 * 86_400) < 120, `${beginning}`);
  await tabTo(page, 'Older ›');
  await page.keyboard.press('Enter');
  await page.getByText('Older', { exact: true }).waitFor();
  await page.getByText('Page 2').waitFor();
  assert.equal(await page.getByText('HighLoad').count(), 0);
  assert.deepEqual([asked.at(-1)!.get('next_token'), asked.at(-1)!.get('start')], ['1204', asked[0]!.get('start')]);
  assert.equal(await page.getByRole('button', { name: 'Older ›' }).isDisabled(), true);
  await page.getByRole('button', { name: 'Newer' }).click();
  await page.getByText('HighLoad').waitFor();

  const field = page.getByRole('textbox', { name: 'Matchers, as severity="page"' });
  await field.focus();
  await page.keyboard.type('severity=page');
  const filtered = page.waitForResponse((response) => response.url().includes('match%5B%5D'));
  await page.keyboard.press('Enter');
  await filtered;
  assert.match(page.url(), /match=severity/);
  assert.equal(asked.at(-1)!.get('match[]'), '{severity="page"}');
  await page.getByRole('button', { name: 'Shorter range' }).click();
  await page.waitForURL(/range=2d/);
  await page.reload();
  await page.getByText('HighLoad').waitFor();
  assert.equal(await field.inputValue(), 'severity=page');

  // A mistake is not taken for no filter.
  await field.fill('severity');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('Nothing is shown: =, !=, =~ or !~ behind severity is missing at the end.').waitFor();
  assert.equal(await field.getAttribute('aria-invalid'), 'true');
  assert.equal(await page.locator('tbody tr').count(), 0);
  await assertAccessible(page);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('events that are not known are not none', async () => {
  const own = await ownSite();
  own.answers.set(HISTORY, () => FAILED);
  const { page } = await open(`${own.url}#/alerts/history`);
  await page.getByRole('alert').getByText('Events: the disk is away (internal)').waitFor();
  assert.equal(await page.getByText('No event').count(), 0);
  own.answers.set(HISTORY, () => '{"status":"success","data":{"events":[]}}');
  await page.reload();
  await page.getByText('The node has kept no event yet.').waitFor();
  await page.getByText('Whether alerts were firing is not known.').waitFor();
  await page.context().close();
  own.close();
});

test('an alert is silenced with its labels, and mistakes of the form and of the node are told', async () => {
  const own = await ownSite();
  const posted: any[] = [];
  let added = '';
  own.answers.set(SILENCES, ({ method, body }: Asked) => {
    if (method === 'GET') {
      const listed = JSON.parse(fixture('silences')) as object[];
      return JSON.stringify(added === '' ? listed : [...listed, JSON.parse(added)]);
    }
    posted.push(JSON.parse(body));
    if (posted.length === 1) return { status: 400, text: '"there are too many silences"' };
    added = JSON.stringify({ ...posted[1], id: 'added', status: { state: 'active' }, startsAt: new Date().toISOString() });
    return '{"silenceID":"added"}';
  });
  const { page, errors } = await open(`${own.url}#/alerts`, { expected: ['400 (Bad Request)'] });
  await page.getByRole('button', { name: /^Silence alertname="HighLoad"/ }).click();
  const form = page.getByRole('form', { name: 'New silence' });
  const matchers = form.getByRole('textbox', { name: /^Matchers, as/ });
  await matchers.waitFor();
  assert.equal(await matchers.inputValue(), 'alertname="HighLoad", instance="edge-7", job="node", severity="page"');
  await tabTo(page, 'Add the silence');
  await page.keyboard.press('Enter');
  await form.getByText('A silence needs an author.').waitFor();
  await form.getByText('A silence needs a comment.').waitFor();
  assert.equal(await focused(page), 'Author');
  assert.equal(posted.length, 0);
  await picture(page, 'silences-wrong');
  await assertFits(page);
  await assertAccessible(page);
  await form.getByLabel('Author').fill('anna');
  await form.getByLabel('Comment').fill('<b>a fan</b>');
  await form.getByLabel(/^Ends after/).fill('30m');
  await form.getByText('in 30 min').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('The silence was not added: there are too many silences (bad_data)').waitFor();
  await form.getByRole('button', { name: 'Add the silence' }).click();
  await page.getByRole('status').getByText('The silence was added. It ends').waitFor();
  assert.match((await focused(page))!, /^The silence was added/);
  const active = page.getByRole('region', { name: 'Active silences' });
  await active.getByText('<b>a fan</b>').waitFor();
  await active.getByText('Active (2)').waitFor();
  assert.equal(await form.count(), 0);
  assert.ok(!page.url().includes('matchers'));
  const { endsAt, ...sent } = posted[1];
  assert.deepEqual(sent, {
    matchers: Object.entries({ alertname: 'HighLoad', instance: 'edge-7', job: 'node', severity: 'page' }).map(([name, value]) => ({ name, value, isRegex: false, isEqual: true })),
    startsAt: '0001-01-01T00:00:00Z',
    createdBy: 'anna',
    comment: '<b>a fan</b>',
  });
  const minutes = (Date.parse(endsAt) - Date.now()) / 60_000;
  assert.ok(minutes > 25 && minutes < 31, `${minutes}`);
  // The author is known the next time.
  await page.getByRole('button', { name: 'New silence' }).click();
  assert.equal(await form.getByLabel('Author').inputValue(), 'anna');
  await form.getByRole('button', { name: 'Cancel' }).click();
  assert.equal(await focused(page), 'New silence');
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('a silence is expired by keys alone, after a question', async () => {
  const own = await ownSite();
  let isExpired = false;
  own.answers.set(SILENCES, () => fixture('silences', (all) => (all[0].status.state = isExpired ? 'expired' : 'active')));
  own.answers.set(ACTIVE, ({ method }) => {
    isExpired = method === 'DELETE';
    return '';
  });
  const { page, errors } = await open(`${own.url}#/alerts/silences`);
  await page.getByText('a new fan comes tomorrow').waitFor();
  await page.getByText('Pending (1)').waitFor();
  await tabTo(page, EXPIRE);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog', { name: 'Expire this silence?' }).waitFor();
  await assertAccessible(page);
  assert.equal(await focused(page), 'Keep it');
  await page.keyboard.press('Escape');
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  assert.equal(await focused(page), EXPIRE);
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').waitFor();
  await tabTo(page, 'Expire it');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('The silence was expired.').waitFor();
  assert.equal(await focused(page), 'The silence was expired.');
  await page.getByText('No silence is active.').waitFor();
  assert.equal(await page.getByText('<img src=x').isVisible(), false);
  await page.getByText('Expired (2)').click();
  await page.getByText('<img src=x').waitFor();
  assert.deepEqual(own.asked.filter((asked) => asked.startsWith('DELETE')), [`DELETE /${ACTIVE}`]);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('what is not expired is told', async () => {
  const own = await ownSite();
  own.answers.set(ACTIVE, () => ({ status: 404, text: '' }));
  const { page } = await open(`${own.url}#/alerts/silences`);
  await page.getByRole('button', { name: EXPIRE }).click();
  await page.getByRole('button', { name: 'Expire it' }).click();
  await page.getByRole('alert').getByText('The silence was not expired: the node has no such silence any more').waitFor();
  own.answers.set(SILENCES, () => FAILED);
  await page.reload();
  await page.getByRole('alert').getByText('Silences: the disk is away (internal)').waitFor();
  assert.equal(await page.getByText('No silence is active').count(), 0);
  await page.context().close();
  own.close();
});

test('a change asks for a token of administrators, which is not sent to read', async () => {
  const own = await ownSite();
  const readWith: (string | undefined)[] = [];
  own.answers.set(SILENCES, ({ authorization }) => {
    readWith.push(authorization);
    return fixture('silences');
  });
  own.answers.set(ACTIVE, ({ authorization }) =>
    authorization === 'Bearer right' ? '' : { status: 401, text: 'credentials are missing or wrong\n', headers: { 'www-authenticate': 'Bearer realm="tidepool"' } },
  );
  const { page, errors } = await open(`${own.url}#/alerts/silences`, { expected: ['401 (Unauthorized)'] });
  const expire = async (): Promise<void> => {
    await page.getByRole('button', { name: EXPIRE }).click();
    await page.getByRole('button', { name: 'Expire it' }).click();
  };
  const login = page.getByRole('dialog', { name: 'This change needs a token of administrators' });
  await expire();
  await login.getByText('--admin-credentials-file').waitFor();
  await assertAccessible(page);
  await login.getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('alert').getByText('the node asks for a token of its administrators').waitFor();
  // A person who wants the change may think better of it.
  await expire();
  await login.getByLabel('Token').fill('wrong');
  await page.keyboard.press('Enter');
  await login.getByText('The token was refused').waitFor();
  await login.getByLabel('Token').fill('right');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('The silence was expired.').waitFor();
  await page.waitForLoadState('networkidle');
  assert.deepEqual([...new Set(readWith)], [undefined]);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('receivers say what waits, since when and why, and what is not known', async () => {
  const own = await ownSite();
  const { page, errors } = await open(`${own.url}#/alerts/receivers`, { expected: ['500 (Internal Server Error)'] });
  const verdict = page.getByRole('region', { name: 'State of the receivers' });
  await verdict.getByRole('heading', { name: /^3 notifications to phone wait since 12 min.*: connection refused; 2 notifications to siren were dropped\.$/ }).waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict bad');
  const list = page.getByRole('region', { name: 'Receivers', exact: true });
  const texts = await list.locator('.rule').allTextContents();
  assert.equal(texts.length, 4);
  assert.match(texts[0]!, /^fails phonewebhookUndelivered3The oldest of them\d{4}-.* 12 min.* agoFails since.*Last errorconnection refusedLast success.*Sent1\u202f204Failed17Dropped0Silenced6$/);
  assert.match(texts[1]!, /^dropped sirencommandUndeliverednoneLast success.*Dropped2Silenced0$/);
  assert.match(texts[2]!, /^delivers watchdogheartbeat/);
  assert.match(texts[3]!, /^untried http:\/\/centre:9093\/alertmanager.*none yet: whether it works is not known/);
  await page.getByRole('searchbox', { name: 'Search in receivers' }).fill('heart');
  await page.waitForFunction(() => document.querySelectorAll('.rule').length === 1);
  assert.deepEqual(errors, []);
  own.answers.set(RECEIVERS, () => FAILED);
  await page.reload();
  await verdict.getByRole('heading', { name: 'Whether notifications are delivered is unknown.' }).waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict unknown');
  await page.context().close();
  own.close();
});

test('an alert that is silenced says so, and one that may be', async () => {
  const own = await ownSite();
  const { page, errors } = await open(`${own.url}#/alerts`, { expected: ['500 (Internal Server Error)'] });
  const alerts = (rule: string) => page.getByRole('list', { name: `Alerts of ${rule}` });
  await alerts('HighLoad').getByText('silenced', { exact: true }).waitFor();
  await alerts('HighLoad').getByText('anna: a new fan comes tomorrow').waitFor();
  assert.equal(await alerts('Gap').getByText('silenced').count(), 0);
  assert.equal(await alerts('DiskSpaceLow').getByText('silenced').count(), 0);
  // One that is only pending is not there to be silenced.
  assert.equal(await page.getByRole('button', { name: /^Silence / }).count(), 2);
  await assertAccessible(page);
  own.answers.set(SILENCES, () => fixture('silences', (all) => (all[0].matchers[1].value = '[[:alpha:]].*')));
  await page.reload();
  await alerts('HighLoad').getByText('silenced or not: unknown').waitFor();
  own.answers.set(SILENCES, () => FAILED);
  await page.reload();
  await page.getByRole('status').getByText('Which alerts are silenced is unknown: the disk is away').waitFor();
  assert.equal(await alerts('HighLoad').getByText('silenced').count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('Home says what waits, and what is not known', async () => {
  const own = await ownSite();
  const { page, errors } = await open(own.url, { expected: ['500 (Internal Server Error)'] });
  const verdict = page.getByRole('region', { name: 'Alerts' });
  await verdict.getByText(/2 alerts are firing: Gap, HighLoad; .*; 3 notifications to phone wait since 12 min.*: connection refused; 2 notifications to siren were dropped\./).waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict bad');
  await page.getByText('Data is safe on this node').waitFor();
  await picture(page, 'told-home');
  await assertFits(page);
  await assertAccessible(page);
  // What waits is bad where no alert fires any more.
  giveQuietRule(own);
  await page.reload();
  await verdict.getByText(/No alert is firing; 1 alerting rule is evaluated; 3 notifications to phone wait/).waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict bad');
  own.answers.set(RECEIVERS, () => FAILED);
  await page.reload();
  await verdict.getByText('1 alerting rule is evaluated; whether notifications are delivered is unknown.').waitFor();
  await verdict.getByText('the disk is away').waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict unknown');
  own.answers.set(RECEIVERS, () => '{"status":"success","data":{"receivers":[]}}');
  await page.reload();
  await verdict.getByText('No alert is firing; 1 alerting rule is evaluated.').waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict good');
  assert.equal(await verdict.getByRole('link', { name: 'Receivers' }).count(), 0);
  giveTold(own);
  await page.reload();
  await verdict.getByRole('link', { name: 'Receivers' }).click();
  await page.getByRole('region', { name: 'State of the receivers' }).waitFor();
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});

test('an older node shows nothing of it', async () => {
  const own = await ownSite();
  giveQuietRule(own);
  giveNothingTold(own);
  const { page, errors } = await open(own.url, { expected: ['404 (Not Found)'] });
  const verdict = page.getByRole('region', { name: 'Alerts' });
  await verdict.getByText('No alert is firing; 1 alerting rule is evaluated.').waitFor();
  assert.equal(await verdict.getAttribute('class'), 'verdict good');
  giveRules(own);
  await page.goto(`${own.url}#/alerts`);
  await page.getByText('Slowest groups').waitFor();
  await page.waitForLoadState('networkidle');
  assert.deepEqual(await sections(page).getByRole('link').allTextContents(), ['Rules', 'Backtest']);
  assert.equal(await page.getByRole('button', { name: /^Silence / }).count(), 0);
  assert.equal(await page.getByText('silenced').count(), 0);
  assert.deepEqual(errors, []);
  await page.context().close();
  own.close();
});
