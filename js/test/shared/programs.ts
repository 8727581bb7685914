/** Other programs that work on data directories: starting them, writing to them, ending them. */

import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { snappyPack } from '../../src/files/snappy.js';
import { float, label, message, varint } from './protobuf.js';

const dirs: string[] = [];
after(() => dirs.forEach((dir) => rmSync(dir, { recursive: true })));

/** A directory that is removed at the end. */
export function freshDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'tidepool-'));
  dirs.push(dir);
  return dir;
}

/** Runs a program to its end, and returns what it printed. */
export function run(program: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

/**
 * Why a test that needs a foreign program is skipped; false if the program is on the path.
 *
 * @throws where nothing may be skipped.
 */
export function skipWithout(program: string): string | false {
  if (spawnSync(program, ['--version']).error === undefined) return false;
  const reason = `${program} is not on the path`;
  if (process.env['TIDEPOOL_REQUIRE_PEERS'] !== undefined) throw new Error(reason);
  return reason;
}

/** The samples in what a dump printed. */
export const lines = (output: string) => output.split('\n').filter((line) => line.startsWith('{'));

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, 'close');
  return port;
}

/** A program that serves. */
export interface Server {
  readonly child: ChildProcess;
  readonly url: string;
}

/** Starts a program on a port that is free, and waits until it serves. */
export async function serve(program: string, args: (address: string) => string[]): Promise<Server> {
  const address = `127.0.0.1:${await freePort()}`;
  const child = spawn(program, args(address), { stdio: 'ignore' });
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`http://${address}/-/ready`).catch(() => undefined);
    if (answer?.ok) return { child, url: `http://${address}` };
    assert.ok(tries < 300 && child.exitCode === null, `${program} did not start`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** Ends a program. */
export async function stop({ child }: Server, signal: NodeJS.Signals): Promise<void> {
  child.kill(signal);
  await once(child, 'exit');
}

/** A remote-write request with one series of samples. */
export function request(job: string, samples: readonly (readonly [number, number])[]): Uint8Array {
  const sample = ([timeMs, value]: readonly [number, number]) =>
    message(0x12, [0x09, ...float(value), 0x10, ...varint(BigInt(timeMs))]);
  const series = [...label('__name__', 'host_samples'), ...label('job', job)];
  return Uint8Array.from(message(0x0a, series, samples.flatMap(sample)));
}

/** Sends a request, which must be accepted. */
export async function send(url: string, body: Uint8Array): Promise<void> {
  const headers = {
    'content-type': 'application/x-protobuf',
    'content-encoding': 'snappy',
    'x-prometheus-remote-write-version': '0.1.0',
  };
  const sent = { method: 'POST', headers, body: Buffer.from(snappyPack(body)) };
  const answer = await fetch(`${url}/api/v1/write`, sent);
  assert.equal(answer.status, 204, await answer.text());
}
