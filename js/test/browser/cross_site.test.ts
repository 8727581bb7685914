/**
 * What a page in a real browser can do to a `tidepool` that anybody may ask: nothing that changes
 * something, unless the page is its own. Needs `cargo build --release`.
 */

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { freshDir, lines, request, run, send, serve, stop, type Server } from '../shared/programs.js';
import { tidepool } from '../shared/tidepool.js';
import { Profile, url } from './browser.js';


// A stranger's name server may say anything. To names other than localhost and addresses no
// browser tells over plain HTTP where a request comes from.
const profile = new Profile('--host-resolver-rules=MAP *.example 127.0.0.1');
const dir = freshDir();
let server: Server;
let port: string;

before(async () => {
  server = await serve(tidepool, (address) => [
    `--data-dir=${join(dir, 'data')}`,
    `--listen=${address}`,
    '--enable-admin-api',
    '--enable-lifecycle',
    '--allowed-host=node.example',
    // What is stored is what the test and its pages sent.
    '--no-host-metrics',
    '--no-own-metrics',
  ]);
  ({ port } = new URL(server.url));
  await send(server.url, request('kept', [[Date.now(), 1]]));
});
after(() => stop(server, 'SIGTERM'));

/** What is stored, without times. */
const stored = () =>
  lines(run(tidepool, 'tsdb', 'dump', join(dir, 'data'))).map((line) => line.split(' ', 2)[0]);

const refused = async () => {
  const page = await (await fetch(`${server.url}/metrics`)).text();
  const line = /^tidepool_http_requests_refused_total\{reason="foreign"\} (\d+)$/m;
  return Number(line.exec(page)?.[1]);
};

const PATHS = [
  '/api/v1/admin/tsdb/delete_series?match[]={__name__!=""}',
  '/api/v1/admin/tsdb/snapshot',
  '/api/v1/import/prometheus',
  '/-/reload',
];

/** All ways by which a script can post without being asked back; how many requests that makes. */
function attack(page: Page, node: string): Promise<number> {
  const urls = PATHS.map((path) => node + path);
  return page.evaluate(async (urls) => {
    for (const url of urls) {
      await fetch(url, { method: 'POST', mode: 'no-cors', body: 'pushed 1\n' });
      // The answer is kept from the page; the request goes out.
      const read = await fetch(url, { method: 'POST', body: 'pushed 1\n' }).catch(() => undefined);
      if (read !== undefined) throw new Error(`${url} was read`);
      // This goes out only if the server invites it.
      const headers = { 'content-type': 'application/x-protobuf' };
      const asked = await fetch(url, { method: 'POST', headers }).catch(() => undefined);
      if (asked !== undefined) throw new Error(`${url} may be asked`);
    }
    return 2 * urls.length;
  }, urls);
}

/** A form that a page sends by itself; the status of what it leads to. */
async function submit(page: Page, url: string): Promise<number | undefined> {
  const answer = page.waitForNavigation();
  await page.evaluate((url) => {
    const form = document.body.appendChild(document.createElement('form'));
    Object.assign(form, { action: url, method: 'POST' });
    form.submit();
  }, url);
  return (await answer)?.status();
}

test('pages of other origins change nothing', async () => {
  const page = await profile.tab();
  const other = new URL(url).port;
  const kept = stored();
  assert.equal(kept.length, 1);
  for (const origin of ['127.0.0.1', 'localhost', 'evil.example', 'other.node.example']) {
    for (const node of ['127.0.0.1', 'localhost', 'node.example']) {
      await page.goto(`http://${origin}:${other}/`);
      const before = await refused();
      const sent = await attack(page, `http://${node}:${port}`);
      assert.ok((await refused()) >= before + sent, `${origin} to ${node}: all were refused`);
      for (const path of PATHS) {
        await page.goto(`http://${origin}:${other}/`);
        assert.equal(await submit(page, `http://${node}:${port}${path}`), 403, path);
      }
      assert.deepEqual(stored(), kept, `${origin} to ${node}`);
    }
  }
  assert.equal(existsSync(join(dir, 'data', 'snapshots')), false);
  await page.close();
});

/** From an empty page of that name, as one whose name was pointed elsewhere after it was loaded. */
const ask = (page: Page, method: string, path: string) =>
  page.evaluate(
    async ([method, path]) => {
      const body = method === 'POST' ? { body: 'pushed 1\n' } : {};
      return (await fetch(path!, { method: method!, ...body })).status;
    },
    [method, path],
  );

test('a page whose name is pointed at the server is no page of its own', async () => {
  const page = await profile.tab();
  await page.goto(`http://evil.example:${port}/-/healthy`);
  const [del, snapshot, load, reload] = PATHS as [string, string, string, string];
  const expected: [string, string, number][] = [
    ['GET', '/api/v1/labels', 403],
    ['GET', '/metrics', 403],
    ['POST', del, 403],
    ['POST', snapshot, 403],
    ['POST', load, 503],
    ['POST', reload, 403],
  ];
  for (const [method, path, status] of expected) {
    assert.equal(await ask(page, method, path), status, path);
  }
  assert.equal(stored().length, 1);
  await page.close();
});

test('its own pages may do all of it', async () => {
  const page = await profile.tab();
  for (const host of ['127.0.0.1', 'localhost', 'node.example']) {
    await page.goto(`http://${host}:${port}/-/healthy`);
    assert.equal(await ask(page, 'GET', '/api/v1/labels'), 200, host);
    assert.equal(await ask(page, 'POST', PATHS[1]!), 200, host);
    assert.equal(await ask(page, 'POST', PATHS[2]!), 204, host);
    assert.equal(await ask(page, 'POST', PATHS[3]!), 200, host);
  }
  assert.ok(stored().includes('{__name__="pushed"}'), String(stored()));
  await page.close();
});
