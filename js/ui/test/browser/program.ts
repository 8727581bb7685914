/** The real program, with data that the tests know. */

import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** Path of the program. */
export const executable = process.env['TIDEPOOL_BIN'] ?? '';
if (!existsSync(executable)) throw new Error('there is no program: set TIDEPOOL_BIN to the path of tidepool');

/** A running tidepool with a data directory of its own. */
export class Program {
  readonly #dir = mkdtempSync(join(tmpdir(), 'tidepool-ui-'));
  readonly #flags: string[];
  #process: ChildProcess | undefined;
  #url = '';

  /** @param files files by name, for flags that name them as `{name}` */
  constructor(flags: string[] = [], files: Record<string, string> = {}) {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.#dir, name), text);
    this.#flags = flags.map((flag) => flag.replace(/\{(.+)\}/, (_, name: string) => join(this.#dir, name)));
  }

  /** Where it listens. */
  get url(): string {
    return this.#url;
  }

  /** Its data directory. */
  get dataDir(): string {
    return join(this.#dir, 'data');
  }

  /** Starts it, and waits until it is ready. */
  async start(): Promise<this> {
    const flags = [`--data-dir=${this.dataDir}`, '--listen=127.0.0.1:0', '--log-format=json', '--no-default-rules', ...this.#flags];
    const child = spawn(executable, flags, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#process = child;
    this.#url = '';
    let isReplayed = false;
    for await (const line of createInterface({ input: child.stderr! })) {
      const { message, address } = (JSON.parse(line) as { fields: Record<string, string> }).fields;
      if (message === 'listening') this.#url = `http://${address}/`;
      isReplayed ||= message?.startsWith('log replayed') === true;
      if (isReplayed && this.#url !== '') break;
    }
    if (!isReplayed) throw new Error('tidepool did not start');
    // What it logs from now on is not read.
    child.stderr!.resume();
    return this;
  }

  /** Makes blocks of lines of the text format, before it is started. */
  importBlocks(lines: readonly string[]): void {
    const file = join(this.#dir, 'blocks.txt');
    writeFileSync(file, `${lines.join('\n')}\n`);
    this.run(['tsdb', 'import', '--format=prometheus', file, this.dataDir]);
  }

  /** What a command of the program prints. */
  run(args: readonly string[]): Buffer {
    return execFileSync(executable, args, { maxBuffer: 16 * 1024 * 1024 });
  }

  /** Names of its blocks, oldest first. */
  blocks(): string[] {
    return readdirSync(this.dataDir).filter((name) => /^[0-9A-Z]{26}$/.test(name)).sort();
  }

  /** Stops it and keeps its data. */
  async stop(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    this.#process = undefined;
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill();
    await ended;
  }

  /** Stops it and removes its data. */
  async remove(): Promise<void> {
    await this.stop();
    rmSync(this.#dir, { recursive: true, force: true });
  }

  /** Imports lines of the text format. */
  async import(lines: readonly string[]): Promise<void> {
    for (let at = 0; at < lines.length; at += 10_000) {
      const body = `${lines.slice(at, at + 10_000).join('\n')}\n`;
      const response = await fetch(`${this.#url}api/v1/import/prometheus`, { method: 'POST', body });
      if (!response.ok) throw new Error(`import: ${response.status} ${await response.text()}`);
    }
  }

  /** Sends the body of a remote write. */
  async write(body: Uint8Array): Promise<void> {
    const headers = { 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy', 'x-prometheus-remote-write-version': '0.1.0' };
    const response = await fetch(`${this.#url}api/v1/write`, { method: 'POST', headers, body: Buffer.from(body) });
    if (!response.ok) throw new Error(`write: ${response.status} ${await response.text()}`);
  }

  /** The field `data` of an answer. */
  async api(path: string, params: Record<string, string> = {}): Promise<any> {
    const response = await fetch(`${this.#url}api/v1/${path}?${new URLSearchParams(params)}`);
    return ((await response.json()) as { data: unknown }).data;
  }
}
