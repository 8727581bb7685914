/** Debian's Chromium, and what a page may not do in it. */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after } from 'node:test';
import { chromium, type Browser, type Page } from 'playwright-core';

const EXECUTABLES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env['CHROMIUM'] ?? EXECUTABLES.find(existsSync);
if (executablePath === undefined) throw new Error('there is no Chromium: apt-get install chromium, or set CHROMIUM to its path');

// The browser sees no others (fonts.conf).
const FONTS = '/usr/share/fonts/truetype/dejavu';
if (!existsSync(join(FONTS, 'DejaVuSans.ttf'))) throw new Error(`there are no fonts in ${FONTS}: apt-get install fonts-dejavu-core`);
const fontsFile = fileURLToPath(new URL('../../../test/browser/fonts.conf', import.meta.url));

/** A name that is resolved to this machine, and that browsers do not take for a secure origin. */
export const HOST = 'node.test';

/** What takes longer has failed: much, for machines that do other things besides. */
const TIMEOUT_MS = 60_000;

/** Keys until something is found that must be near. */
const KEYS_MAX = 60;

/** Pictures of the pages, to be looked at. */
const screens = fileURLToPath(new URL('../../screens/', import.meta.url));
const axeSource = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** By their further arguments. */
const browsers = new Map<string, Promise<Browser>>();
after(closeBrowser);

/** Ends it. */
export async function closeBrowser(): Promise<void> {
  for (const browser of browsers.values()) await (await browser).close();
  browsers.clear();
}

/** A tab, with what went wrong in it. */
export interface Tab {
  page: Page;
  /**
   * Errors of the console, of scripts and of the content security policy, and requests to other
   * hosts.
   */
  errors: string[];
}

export interface TabOptions {
  width?: number;
  scheme?: 'light' | 'dark';
  /** Whether the test moves the page's time. */
  hasClock?: boolean;
  /** Further arguments of the browser. */
  args?: readonly string[];
  /** Texts in errors that are expected. */
  expected?: string[];
}

/** Opens an address in a profile of its own. */
export async function open(url: string, { width = 1280, scheme = 'light', hasClock = false, args = [], expected = [] }: TabOptions = {}): Promise<Tab> {
  const browser = browsers.get(args.join(' ')) ?? launch(args);
  browsers.set(args.join(' '), browser);
  const context = await (await browser).newContext({ viewport: { width, height: width < 600 ? 740 : 900 }, colorScheme: scheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  page.setDefaultTimeout(TIMEOUT_MS);
  const errors: string[] = [];
  const report = (text: string): void => {
    if (!expected.some((known) => text.includes(known))) errors.push(text);
  };
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') report(`${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => report(String(error)));
  page.on('request', (request) => {
    const isOwn = url.startsWith('file:') ? request.url().split(/[?#]/)[0] === url.split(/[?#]/)[0] : request.url().startsWith(new URL(url).origin);
    if (!isOwn && !/^(data|blob):/.test(request.url())) report(`request to ${request.url()}`);
  });
  if (hasClock) await page.clock.install();
  await page.goto(url);
  return { page, errors };
}

function launch(args: readonly string[]): Promise<Browser> {
  return chromium.launch({
    executablePath: executablePath!,
    args: ['--no-sandbox', `--host-resolver-rules=MAP ${HOST} 127.0.0.1`, ...args],
    env: { ...process.env, FONTCONFIG_FILE: fontsFile },
  });
}

/** Nothing stands beyond the right edge of the window. */
export async function assertFits(page: Page): Promise<void> {
  const beyond = await page.evaluate(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    const all = [...document.querySelectorAll('main *')].filter((element) => element.getBoundingClientRect().right > width + 1);
    return all.slice(0, 5).map((element) => `${element.tagName}.${element.className} ${element.textContent?.slice(0, 40)}`);
  });
  assert.deepEqual(beyond, []);
}

/** axe-core finds nothing serious. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axeSource);
  const found = await page.evaluate(async () => {
    const axe = (window as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } }).axe;
    interface Violation {
      id: string;
      impact: string;
      nodes: { html: string; failureSummary: string }[];
    }
    const { violations } = await axe.run();
    return violations
      .filter(({ impact }) => impact === 'serious' || impact === 'critical')
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} (${node.failureSummary.split('\n')[1]?.trim()})`).join(' | ')}`);
  });
  assert.deepEqual(found, []);
}

/** Presses Tab until the focus is on something with this text or label, which must show that. */
export async function tabTo(page: Page, name: string): Promise<void> {
  const seen: string[] = [];
  for (let i = 0; i < KEYS_MAX; i += 1) {
    await page.keyboard.press('Tab');
    const { text, outline } = await page.evaluate(() => {
      const element = document.activeElement as HTMLElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(element);
      const label = element.getAttribute('aria-label') ?? (element as HTMLInputElement).labels?.[0]?.innerText;
      return { text: (label ?? element.innerText ?? '').trim(), outline: outlineStyle === 'none' ? 0 : parseFloat(outlineWidth) };
    });
    seen.push(text);
    if (text !== name) continue;
    assert.ok(outline > 0, `the focus on ${name} is not seen`);
    return;
  }
  assert.fail(`Tab does not lead to ${name}: ${seen.join(', ')}`);
}

/** Does what saves a report. Its file. */
export async function savedReport(page: Page, save: () => Promise<void>): Promise<string> {
  const begun = page.waitForEvent('download');
  await save();
  const download = await begun;
  const name = download.suggestedFilename();
  assert.match(name, /^tidepool-report-\d{14}\.html$/);
  // A browser takes a file for a page by its name.
  const file = join(mkdtempSync(join(tmpdir(), 'tidepool-report-')), name);
  await download.saveAs(file);
  after(() => rmSync(dirname(file), { recursive: true, force: true }));
  return file;
}

/** Takes a picture of the whole page. */
export async function picture(page: Page, name: string): Promise<void> {
  mkdirSync(screens, { recursive: true });
  await page.screenshot({ path: join(screens, `${name}.png`), fullPage: true });
}
