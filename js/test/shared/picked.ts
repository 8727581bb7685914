/** Directories as a browser gives them: files by path, read synchronously through slices. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { after } from 'node:test';
import type { Picked } from '../../src/viewer/find.js';

/** The files of a directory, as an input with `webkitdirectory` names them. */
export function pick(dir: string, name = 'data'): Picked[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => {
      const path = join(entry.parentPath, entry.name);
      return { path: name + path.slice(dir.length), file: new Blob([readFileSync(path)]) };
    });
}

/** Waits in this thread while another one reads: Node has no `FileReaderSync`. */
export class SyncReader {
  readonly #signal = new Int32Array(new SharedArrayBuffer(4));
  readonly #channel = new MessageChannel();
  readonly #worker: Worker;
  /** The largest part that was read. */
  bytesMax = 0;

  constructor() {
    const code = `
      const { workerData: { port, signal } } = require('node:worker_threads');
      port.on('message', async (part) => {
        const bytes = new Uint8Array(await part.arrayBuffer());
        port.postMessage(bytes);
        Atomics.store(signal, 0, 1);
        Atomics.notify(signal, 0);
      });`;
    const port = this.#channel.port2;
    this.#worker = new Worker(code, { eval: true, workerData: { port, signal: this.#signal }, transferList: [port] });
    this.#worker.unref();
    after(() => this.#worker.terminate());
  }

  readonly read = (part: Blob): Uint8Array => {
    this.bytesMax = Math.max(this.bytesMax, part.size);
    Atomics.store(this.#signal, 0, 0);
    this.#channel.port1.postMessage(part);
    Atomics.wait(this.#signal, 0, 0);
    return (receiveMessageOnPort(this.#channel.port1) as { message: Uint8Array }).message;
  };
}
