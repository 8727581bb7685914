// The program as a user runs it: it is written to, read, killed, and started again.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { open } from '@tidepool/engine';
import { NodeFiles } from '@tidepool/engine/node';

const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
after(() => rmSync(dir, { recursive: true }));

async function start() {
  const program = new URL('../receiver.js', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, dir, '0'], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
  return { child, url: /http:\S+/.exec(line)[0] };
}

/** A request with one sample, packed as a single literal. */
function body(job, value, timeMs) {
  const field = (tag, bytes) => [tag, bytes.length, ...bytes];
  const label = (name, text) => field(0x0a, [...field(0x0a, [...Buffer.from(name)]), ...field(0x12, [...Buffer.from(text)])]);
  const time = [];
  for (let rest = BigInt(timeMs); ; rest >>= 7n) {
    time.push(Number(rest & 127n) | (rest < 128n ? 0 : 128));
    if (rest < 128n) break;
  }
  const float = [...new Uint8Array(Float64Array.of(value).buffer)];
  const sample = field(0x12, [0x09, ...float, 0x10, ...time]);
  const request = field(0x0a, [...label('__name__', 'up'), ...label('job', job), ...sample]);
  return Buffer.from([request.length, 60 << 2, request.length - 1, ...request]);
}

const send = (url, bytes) => fetch(`${url}/api/v1/write`, { method: 'POST', body: bytes });

test('what is written is read back, also after a kill, and by another program', async () => {
  const nowMs = Date.now();
  let { child, url } = await start();
  assert.equal((await send(url, body('a', 1.5, nowMs))).status, 204);
  assert.equal(await (await fetch(url)).text(), `up{job="a"} 1.5 ${nowMs}\n`);
  const refused = await send(url, body('a', 2.5, nowMs));
  assert.equal(refused.status, 400);
  assert.match(await refused.text(), /up.*job="a".*duplicate sample/);
  assert.equal((await send(url, Buffer.from('nonsense'))).status, 400);
  assert.equal((await fetch(`${url}/elsewhere`)).status, 404);
  child.kill('SIGKILL');
  await once(child, 'exit');

  ({ child, url } = await start());
  assert.equal((await send(url, body('b', 3, nowMs))).status, 204);
  const lines = `up{job="a"} 1.5 ${nowMs}\nup{job="b"} 3 ${nowMs}\n`;
  assert.equal(await (await fetch(url)).text(), lines);
  child.kill('SIGTERM');
  assert.deepEqual(await once(child, 'exit'), [0, null]);

  const store = await open({ storage: new NodeFiles(dir) });
  assert.deepEqual(Array.from(store.select(), ({ values }) => [...values]), [[1.5], [3]]);
  await store.close();
});
