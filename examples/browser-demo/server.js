// Serves the page, the engine and uPlot, without any special header. `npm start` runs it alone.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const app = fileURLToPath(new URL('app', import.meta.url));
const modules = fileURLToPath(new URL('node_modules', import.meta.url));
const PACKAGES = { '/engine/': '@tidepool/engine/dist/src', '/uplot/': 'uplot/dist' };

const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.wasm': 'application/wasm',
};

/** Begins to serve, on any port if none is given. */
export async function serve(port = 0) {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    const prefix = Object.keys(PACKAGES).find((one) => path.startsWith(one));
    const inPackage = () => join(modules, PACKAGES[prefix], path.slice(prefix.length));
    const file = prefix === undefined ? join(app, path) : inPackage();
    const name = path === '/' ? join(app, 'index.html') : file;
    const content = await readFile(name).catch(() => undefined);
    response.statusCode = content === undefined ? 404 : 200;
    response.setHeader('content-type', TYPES[extname(name)] ?? 'text/plain');
    response.end(content);
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await serve(8080);
  console.log(`the demo is at ${url}`);
}
