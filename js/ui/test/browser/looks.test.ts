/** Pages that are broken on purpose look otherwise; other edges of letters do not. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Page } from 'playwright-core';
import { PAGES } from './addresses';
import type { TabOptions } from './browser';
import { FullNode } from './full';
import { differencesOf, keptLook, lastingDifferences, lookOf } from './looks';

const node = await FullNode.make();

/** Changes something of a page; there, nothing has access to what stands around it. */
const HARMS: Record<string, () => void> = {
  'without its style sheet': () => {
    for (const sheet of document.styleSheets) sheet.disabled = true;
  },
  'with a chart that is not drawn': () => {
    document.querySelector<HTMLElement>('.u-wrap canvas')!.style.visibility = 'hidden';
  },
  'without a chart': () => document.querySelector('.u-wrap')!.remove(),
  'with a chart that lies over what is above it': () => {
    document.querySelector<HTMLElement>('.u-wrap')!.style.transform = 'translateY(-160px)';
  },
  'without its text': () => {
    document.body.style.color = 'transparent';
    for (const element of document.querySelectorAll<HTMLElement>('main *')) element.style.color = 'transparent';
  },
  'in the colours of the other scheme': () => {
    const root = document.documentElement;
    const isDark = matchMedia('(prefers-color-scheme: dark)').matches;
    root.style.filter = 'invert(1)';
    root.style.background = isDark ? 'white' : 'black';
  },
};

for (const [name, width, scheme] of [['home', 1280, 'dark'], ['query-graph', 360, 'light']] as const) {
  const [, address, text] = PAGES.find(([page]) => page === name)!;
  const opened = async (options: TabOptions = {}): Promise<Page> => {
    return (await node.open(address, text, { width, scheme, ...options })).page;
  };
  const known = keptLook(`${name}-${width}`);

  test(`${name}, ${width} px: other edges of letters are no difference`, async () => {
    const page = await opened({ args: ['--font-render-hinting=none', '--disable-lcd-text'] });
    assert.deepEqual(await lastingDifferences(page, known), []);
    await page.context().close();
  });

  test(`${name}, ${width} px: what is broken is seen`, async () => {
    for (const [harm, inflict] of Object.entries(HARMS)) {
      const page = await opened();
      assert.deepEqual(await lastingDifferences(page, known), []);
      await page.evaluate(inflict);
      const differences = differencesOf(await lookOf(page), known);
      console.log(`${harm}: ${differences.join('; ')}`);
      assert.ok(differences.length > 0, harm);
      await page.context().close();
    }
  });
}
