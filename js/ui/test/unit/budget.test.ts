/**
 * The built page's first view is small, it names nothing outside, and holds what it may not without
 * its notices.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Bytes of all that a browser loads until it shows Home, compressed as a node sends it. */
const BYTES_MAX = 90 * 1024;

// The compiled test stands in build/test/unit.
const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));
const read = (name: string): string => readFileSync(join(dist, name), 'utf8');
const assets = readdirSync(join(dist, 'ui')).filter((name) => !name.endsWith('.gz')).map((name) => `ui/${name}`);
const ending = (end: string): string[] => assets.filter((name) => name.endsWith(end));
const documentText = read('index.html');
/** Bytes as they travel: nodes send the files that end in .gz. */
const sizeOf = (names: readonly string[]): number => names.reduce((sum, name) => sum + statSync(join(dist, `${name}.gz`)).size, 0);

/** The modules that a module names, or only those that it needs at once. */
function importsOf(name: string, { isAll }: { isAll: boolean }): string[] {
  const pattern = isAll ? /["`]\.\/([\w-]+\.js)["`]/g : /(?:\bfrom|\bimport)\s*"\.\/([\w-]+\.js)"/g;
  return [...read(name).matchAll(pattern)].map(([, file]) => `ui/${file}`);
}

/** These modules and all that they import. */
function closure(names: readonly string[], options: { isAll: boolean }): Set<string> {
  const found = new Set<string>();
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    found.add(name);
    waiting.push(...importsOf(name, options));
  }
  return found;
}

const entry = /<script type="module" src="([^"]*)">/.exec(documentText)![1]!;
const style = /<link rel="stylesheet" href="([^"]*)"/.exec(documentText)![1]!;
const needed = closure([entry], { isAll: false });

test('the first view fits its budget', () => {
  const bytes = sizeOf(['index.html', style, ...needed]);
  const whole = sizeOf(['index.html', ...assets]);
  console.log(`${bytes} bytes until Home, ${whole} in all, compressed`);
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes are more than ${BYTES_MAX}`);
});

test('the document names what the first view needs, so that no script waits for another', () => {
  const preloaded = [...documentText.matchAll(/<link rel="modulepreload" href="([^"]*)">/g)].map(([, name]) => name!);
  assert.deepEqual([entry, ...preloaded].sort(), [...needed].sort());
});

test('other views are parts that are loaded later, and all names lead to a file', () => {
  const all = closure([entry], { isAll: true });
  for (const name of all) assert.ok(assets.includes(name), `${name} is missing`);
  assert.ok(all.size > needed.size);
  const first = [...needed].map(read).join('');
  // Words of the other views' pages.
  for (const word of ['Add a panel', 'Pairs by series']) assert.ok(!first.includes(word), word);
  const named = [...documentText.matchAll(/(?:src|href)="(ui\/[^"]*)"/g)].map(([, name]) => name!);
  assert.deepEqual([...new Set([...named, ...all])].sort(), [...assets].sort());
});

test('the document has no script or style in it, and relative addresses only', () => {
  assert.ok(!/<style|\son\w+=|style=/.test(documentText));
  assert.ok(!/<script(?![^>]*\ssrc=)/.test(documentText));
  for (const [, address] of documentText.matchAll(/(?:src|href)="([^"]*)"/g)) {
    assert.match(address!, /^(ui\/(app|chunk)-[0-9A-Z]{8}\.(js|css)|ui\/(licences|report)-[0-9a-f]{12}\.(txt|js)|data:image\/svg\+xml,.*)$/);
  }
});

test('nothing in the page makes code of texts, or markup', () => {
  for (const name of ending('.js')) {
    const script = read(name);
    assert.ok(!/\beval\(|new Function\(|document\.write|insertAdjacentHTML/.test(script), name);
    // Preact and uPlot have the word, for what this page does not use.
    assert.ok(!/dangerouslySetInnerHTML:/.test(script), name);
  }
});

test('the notices name all packages', () => {
  const notices = read(ending('.txt')[0]!);
  for (const name of ['preact', 'uplot']) assert.match(notices, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+: MIT$`, 'm'));
  assert.match(notices, /Permission is hereby granted/);
});
