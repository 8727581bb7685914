/**
 * Serves the built page as the program does, with its headers, and passes everything else on to the
 * program. May stand behind a path prefix, and may be without the program for a while.
 */

import { existsSync, readFileSync } from 'node:fs';
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import { extname, join, normalize } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';

// The compiled test stands in build/test/browser.
const dist = fileURLToPath(new URL('../../../dist/', import.meta.url));

/** What the program sends along with the page (`host/server/src/http/ui`). */
export const HEADERS = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
};
const TYPES: Record<string, string> = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.txt': 'text/plain; charset=utf-8' };

/** Half of the disk is free in tests: that of the machine may be full of builds. */
function withRoom(figures: string): string {
  const size = /^tidepool_disk_size_bytes (\S+)$/m.exec(figures)?.[1];
  return figures.replace(/^tidepool_disk_free_bytes .*$/m, `tidepool_disk_free_bytes ${Math.round(Number(size) / 2)}`);
}

/** What is asked of an answer that is given in place of the program's. */
export interface Asked {
  method: string;
  params: URLSearchParams;
  body: string;
  authorization: string | undefined;
}

/** An answer that is no success. */
export interface Refusal {
  status: number;
  text: string;
  headers?: Record<string, string>;
}

/** The page and a program behind it. */
export class Site {
  /** Where the program listens; nothing while it is gone. */
  target: string | undefined;
  /** What was asked of the program: methods and paths. */
  readonly asked: string[] = [];
  /** Answers in JSON, or refusals, that are given in place of the program's, by path. */
  readonly answers = new Map<string, (asked: Asked) => string | Refusal>();
  readonly #prefix: string;
  readonly #server: Server;

  constructor(target: string, prefix = '/') {
    this.target = target;
    this.#prefix = prefix;
    this.#server = createServer((incoming, outgoing) => this.#answer(incoming, outgoing));
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}${this.#prefix}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #answer(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const address = incoming.url ?? '/';
    const { pathname, searchParams } = new URL(address, 'http://localhost');
    if (!pathname.startsWith(this.#prefix)) {
      outgoing.writeHead(404).end();
      return;
    }
    const path = normalize(pathname.slice(this.#prefix.length));
    if (path === '.' || path.startsWith('ui/')) {
      const name = path === '.' ? 'index.html' : path;
      const file = join(dist, `${name}.gz`);
      // Files of another version, as after an update.
      if (!existsSync(file)) outgoing.writeHead(404, HEADERS).end('404 page not found\n');
      else outgoing.writeHead(200, { ...HEADERS, 'content-type': TYPES[extname(name)] ?? '', 'content-encoding': 'gzip' }).end(readFileSync(file));
      return;
    }
    if (this.target === undefined) {
      incoming.socket.destroy();
      return;
    }
    this.asked.push(`${incoming.method} /${address.slice(this.#prefix.length)}`);
    const answer = this.answers.get(path);
    if (answer !== undefined) {
      const { method = 'GET', headers } = incoming;
      void text(incoming).then((body) => {
        const given = answer({ method, params: searchParams, body, authorization: headers.authorization });
        if (typeof given === 'string') outgoing.writeHead(200, { 'content-type': 'application/json' }).end(given);
        else outgoing.writeHead(given.status, given.headers).end(given.text);
      }, () => outgoing.destroy());
      return;
    }
    // Figures are changed below: as text, and of another length.
    const headers = path === 'metrics' ? { ...incoming.headers, 'accept-encoding': 'identity' } : incoming.headers;
    const passed = request(new URL(address.slice(this.#prefix.length), this.target), { method: incoming.method ?? 'GET', headers }, (answer) => {
      if (path === 'metrics' && answer.statusCode === 200) {
        void text(answer).then((figures) => {
          const { 'content-length': _, ...rest } = answer.headers;
          outgoing.writeHead(200, rest).end(withRoom(figures));
        }, () => outgoing.destroy());
        return;
      }
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  }
}
