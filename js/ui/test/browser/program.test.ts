/**
 * The page as the program itself serves it, under a host name over plain HTTP: an insecure context,
 * as on a LAN.
 */

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { expectedOn, fullLines, fullProgram, PAGES } from './addresses';
import { assertFits, HOST, open, savedReport } from './browser';
import { HEADERS } from './serve';

const program = fullProgram([`--allowed-host=${HOST}`]);
let url: string;

before(async () => {
  await program.start();
  await program.import(fullLines());
  const address = new URL(program.url);
  address.hostname = HOST;
  url = address.href;
});
after(() => program.remove());

test('the program carries this page, and sends the headers that other tests send', async () => {
  const response = await fetch(program.url, { headers: { accept: 'text/html' } });
  assert.equal(response.status, 200);
  const built = readFileSync(fileURLToPath(new URL('../../../dist/index.html', import.meta.url)), 'utf8');
  assert.equal(await response.text(), built, 'the program was built of other sources, or with TIDEPOOL_UI_DIR');
  for (const [name, value] of Object.entries(HEADERS)) assert.equal(response.headers.get(name), value, name);
});

for (const [name, address, text] of PAGES) {
  test(`${name}, from the program`, async () => {
    const { page, errors } = await open(url + address, { expected: expectedOn(name) });
    assert.equal(await page.evaluate(() => isSecureContext), false);
    await page.getByText(text).first().waitFor();
    await page.waitForFunction(() => document.querySelector('.loading') === null);
    await page.waitForLoadState('networkidle');
    assert.deepEqual(errors, []);
    await assertFits(page);
    await page.context().close();
  });
}

test('a link of an alert leads to its query', async () => {
  const { page, errors } = await open(`${url}graph?g0.expr=node_load1&g0.tab=1`);
  await page.getByText('samples read').waitFor();
  assert.equal(await page.getByRole('textbox', { name: 'Expression of panel 1' }).inputValue(), 'node_load1');
  assert.deepEqual(errors, []);
  await page.context().close();
});

test('a text is copied and a report is saved without a secure context', async () => {
  const { page, errors } = await open(`${url}?g0.expr=node_load1&g0.tab=graph`);
  await page.getByText('a point each').waitFor();
  await page.getByRole('button', { name: 'Copy the link' }).click();
  await page.getByText(/Copied\.|Selected: copy it/).waitFor();
  const file = await savedReport(page, () => page.getByRole('button', { name: 'Save as a report' }).click());
  const report = await open(`file://${file}`);
  await report.page.getByRole('region', { name: 'Expression' }).getByText('node_load1').waitFor();
  await report.page.getByText(new URL(url).host).waitFor();
  await report.page.locator('.u-over').waitFor();
  assert.deepEqual([...errors, ...report.errors], []);
  await report.page.context().close();
  await page.context().close();
});
