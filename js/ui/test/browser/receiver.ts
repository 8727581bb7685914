/** A receiver of remote write, which takes everything and keeps nothing. */

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { Program } from './program';

export class Receiver {
  readonly #server: Server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
  });

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}/api/v1/write`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

/** Waits until a program says that what it has is delivered, but for what came just now. */
export async function allForwarded(program: Program): Promise<void> {
  for (;;) {
    const text = await (await fetch(`${program.url}metrics`)).text();
    const value = (name: string): number => Number(new RegExp(`^${name}{.*} (.*)$`, 'm').exec(text)?.[1] ?? NaN);
    if (value('tidepool_remote_storage_lag_seconds') < 5 && value('prometheus_remote_storage_samples_total') > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
