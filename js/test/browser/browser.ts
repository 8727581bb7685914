/** What the tests in a browser share: Debian's Chromium, and a server for the package's files. */

import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after } from 'node:test';
import { chromium, type BrowserContext, type Page } from 'playwright-core';

const dist = fileURLToPath(new URL('../../', import.meta.url));

const TYPES: Record<string, string> = {
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
  '.map': 'application/json',
};

const EXECUTABLES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
const executablePath = process.env['CHROMIUM'] ?? EXECUTABLES.find(existsSync);
if (executablePath === undefined) {
  throw new Error('there is no Chromium: apt-get install chromium, or set CHROMIUM to its path');
}

/** Serves the compiled package, and an empty page, without any special header. */
async function serveFiles(): Promise<string> {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url ?? '/', 'http://localhost').pathname);
    if (path === '/') {
      response.setHeader('content-type', 'text/html');
      response.end('<!doctype html><title>tidepool</title>');
      return;
    }
    const content = await readFile(join(dist, path)).catch(() => undefined);
    response.statusCode = content === undefined ? 404 : 200;
    response.setHeader('content-type', TYPES[extname(path)] ?? 'text/plain');
    response.end(content);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A test or benchmark that is done does not wait for it.
  server.unref();
  return `http://127.0.0.1:${(server.address() as { port: number }).port}/`;
}

export const url = await serveFiles();

/** A browser with a profile of its own, which a test may kill and start again. */
export class Profile {
  readonly #dir = mkdtempSync(join(tmpdir(), 'tidepool-chromium-'));
  readonly #args: string[];
  #context: BrowserContext | undefined;

  /** With further arguments of the browser's command line. */
  constructor(...args: string[]) {
    this.#args = args;
    after(async () => {
      await this.#context?.close();
      rmSync(this.#dir, { recursive: true, force: true });
    });
  }

  /** A new tab at the empty page. */
  async tab(): Promise<Page> {
    this.#context ??= await chromium.launchPersistentContext(this.#dir, {
      executablePath: executablePath!,
      args: ['--no-sandbox', ...this.#args],
    });
    const page = await this.#context.newPage();
    await page.goto(url);
    return page;
  }

  /** Ends the browser as a whole. */
  async close(): Promise<void> {
    await this.#context?.close();
    this.#context = undefined;
  }
}
