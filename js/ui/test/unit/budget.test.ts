/**
 * The built page is small, names nothing outside, and holds what it may not without its notices.
 */

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';

/** Bytes of all that a browser loads, compressed as a node sends it. */
const BYTES_MAX = 90 * 1024;

// The compiled test stands in build/test/unit.
const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));
const read = (name: string): string => readFileSync(join(dist, name), 'utf8');
const assets = readdirSync(join(dist, 'ui')).filter((name) => !name.endsWith('.gz'));
const named = (ending: string): string => `ui/${assets.find((name) => name.endsWith(ending))}`;

test('the page fits its budget', () => {
  const loaded = ['index.html', named('.js'), named('.css')];
  const bytes = loaded.reduce((sum, name) => sum + gzipSync(read(name), { level: 9 }).length, 0);
  console.log(`${bytes} bytes, gzip -9`);
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes are more than ${BYTES_MAX}`);
});

test('the document has no script or style in it, and relative addresses only', () => {
  const page = read('index.html');
  assert.ok(!/<style|\son\w+=|style=/.test(page));
  assert.ok(!/<script(?![^>]*\ssrc=)/.test(page));
  for (const [, address] of page.matchAll(/(?:src|href)="([^"]*)"/g)) {
    assert.match(address!, /^(ui\/app-[0-9a-f]{12}\.(js|css)|ui\/licences-[0-9a-f]{12}\.txt|data:image\/svg\+xml,.*)$/);
  }
  for (const name of assets) assert.ok(page.includes(`ui/${name}`), name);
});

test('nothing in the page makes code of texts, or markup', () => {
  const script = read(named('.js'));
  assert.ok(!/\beval\(|new Function\(|document\.write|insertAdjacentHTML/.test(script));
  // Preact and uPlot have the word, for what this page does not use.
  assert.ok(!/dangerouslySetInnerHTML:/.test(script));
});

test('the notices name all packages', () => {
  const notices = read(named('.txt'));
  for (const name of ['preact', 'uplot']) assert.match(notices, new RegExp(`^${name} \\d+\\.\\d+\\.\\d+: MIT$`, 'm'));
  assert.match(notices, /Permission is hereby granted/);
});
