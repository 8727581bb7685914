/** Debian's Firefox ESR, driven by WebDriver BiDi: each page of a node, a query, the viewer. */

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import puppeteer, { type Browser, type Page } from 'puppeteer-core';
import { expectedOn, fullLines, fullProgram, PAGES } from '../browser/addresses';
import { Site } from '../browser/serve';

const EXECUTABLES = ['/usr/bin/firefox-esr', '/usr/bin/firefox'];
const executablePath = process.env['FIREFOX'] ?? EXECUTABLES.find(existsSync);
if (executablePath === undefined) throw new Error('there is no Firefox: apt-get install firefox-esr, or set FIREFOX to its path');

/** What takes longer has failed: much, for machines that do other things besides. */
const TIMEOUT_MS = 60_000;

const program = fullProgram();
const work = mkdtempSync(join(tmpdir(), 'tidepool-firefox-'));
let site: Site;
let browser: Browser;

before(async () => {
  await program.start();
  await program.import(fullLines());
  site = await new Site(program.url).start();
  browser = await puppeteer.launch({ browser: 'firefox', executablePath, headless: true });
});
after(async () => {
  await browser?.close();
  site?.close();
  await program.remove();
  rmSync(work, { recursive: true, force: true });
});

/** Opens an address in a tab of its own, with the errors of its console and scripts. */
async function open(url: string, width = 1280): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const errors: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warn') errors.push(message.text());
  });
  page.on('pageerror', (error) => errors.push(String(error)));
  await page.setViewport({ width, height: width < 600 ? 740 : 900 });
  await page.goto(url);
  return { page, errors };
}

const shows = (page: Page, text: string) => page.waitForFunction((text) => document.body.innerText.includes(text) && document.querySelector('.loading') === null, {}, text);

for (const [name, address, text] of PAGES) {
  test(`${name} in Firefox`, async () => {
    const { page, errors } = await open(site.url + address, 360);
    for (const width of [360, 1280]) {
      await page.setViewport({ width, height: 900 });
      await page.waitForFunction((width) => innerWidth === width, {}, width);
      await shows(page, text);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), `${width} px`);
    }
    assert.deepEqual(errors.filter((error) => !expectedOn(name).some((known) => error.includes(known))), []);
    assert.equal(await page.evaluate(() => (window as unknown as { harmed?: number }).harmed), undefined);
    await page.close();
  });
}

test('a query by keyboard in Firefox', async () => {
  const { page, errors } = await open(`${site.url}#/query`);
  await page.waitForSelector('.editor textarea');
  await page.keyboard.press('/');
  await page.keyboard.type('count(node_cpu_seconds_total)');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Enter');
  await shows(page, 'a point each');
  await page.waitForSelector('.u-over');
  await page.evaluate(() => document.querySelector<HTMLElement>('[role=tab]')!.click());
  await shows(page, 'samples read');
  assert.equal(await page.$eval('td.number', (cell) => cell.textContent), '8');
  assert.deepEqual(errors, []);
  await page.close();
});

test('the viewer of the program opens a directory in Firefox', async () => {
  const viewer = join(work, 'viewer.html');
  writeFileSync(viewer, program.run(['viewer']));
  const data = program.dataDir;
  const block = program.blocks()[0]!;
  const names = ['meta.json', 'index', 'chunks/000001'];
  const files = names.map((name) => [`data/${block}/${name}`, readFileSync(join(data, block, name)).toString('base64')]);
  const { page, errors } = await open(`file://${viewer}?g0.expr=count(old_samples)&g0.tab=table`);
  await page.waitForSelector('input[webkitdirectory]');
  // No driver can pick a directory in Firefox, so a script gives what the input would have.
  await page.evaluate((files) => {
    const transfer = new DataTransfer();
    for (const [path, content] of files) {
      const file = new File([Uint8Array.from(atob(content!), (c) => c.charCodeAt(0))], path!.split('/').at(-1)!);
      transfer.items.add(file);
    }
    const input = document.querySelector<HTMLInputElement>('input[webkitdirectory]')!;
    input.files = transfer.files;
    // What a picked directory has, and a file of a script has not.
    [...input.files].forEach((file, i) => Object.defineProperty(file, 'webkitRelativePath', { value: files[i]![0] }));
    input.dispatchEvent(new Event('change', { bubbles: true }));
  }, files);
  await shows(page, 'data: ');
  await shows(page, 'samples read');
  assert.equal(await page.$eval('main td.number', (cell) => cell.textContent), '10');

  const archive = join(work, 'data.tar.gz');
  execFileSync('tar', ['-C', join(data, '..'), '-czf', archive, `data/${block}`]);
  const input = await page.$('input[type=file]:not([webkitdirectory])');
  await (input as unknown as { uploadFile(path: string): Promise<void> }).uploadFile(archive);
  await shows(page, 'samples read');
  assert.equal(await page.$eval('main td.number', (cell) => cell.textContent), '10');
  assert.deepEqual(errors, []);
  await page.close();
});
