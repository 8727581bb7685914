/** The viewer is one file of a bounded size, and its policy allows nothing but itself. */

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

/** Bytes of the file: page, worker, and the component with PromQL. */
const BYTES_MAX = 1.75 * 1024 * 1024;

const viewer = readFileSync(fileURLToPath(new URL('../../../dist-viewer/viewer.html', import.meta.url)), 'utf8');

// `tests/run` without --all builds the component fast, not small.
const notBuiltSmall = process.env.CARGO_PROFILE_COMPONENT_SMALL_LTO === 'off';

test('the viewer fits its budget', { skip: notBuiltSmall && 'tests/run --all builds the component for size' }, () => {
  const bytes = Buffer.byteLength(viewer);
  console.log(`${bytes} bytes`);
  assert.ok(bytes <= BYTES_MAX, `${bytes} bytes are more than ${BYTES_MAX}`);
});

test('the policy allows the one script and the one style sheet, and no request', () => {
  const policy = /http-equiv="Content-Security-Policy" content="([^"]*)"/.exec(viewer)![1]!;
  const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
  const scripts = [...viewer.matchAll(/<script data-hash="[^"]*">([\s\S]*?)<\/script>/g)];
  const styles = [...viewer.matchAll(/<style data-hash="[^"]*">([\s\S]*?)<\/style>/g)];
  assert.deepEqual([scripts.length, styles.length], [1, 1]);
  assert.equal(
    policy,
    `default-src 'none'; script-src ${hash(scripts[0]![1]!)} 'wasm-unsafe-eval'; style-src ${hash(styles[0]![1]!)}; ` +
      "img-src data:; worker-src blob:; connect-src 'none'; base-uri 'none'; form-action 'none'",
  );
});

test('the document loads nothing', () => {
  const markup = viewer.replace(/<(script|style)[^>]*>[\s\S]*?<\/\1>/g, '');
  for (const [, address] of markup.matchAll(/(?:src|href)="([^"]*)"/g)) assert.match(address!, /^data:image\/svg\+xml,/);
  assert.ok(!/\son\w+=|\sstyle=/.test(markup));
});
