// Serves the shop and the engine's files, without any special header. `npm start` runs it alone.

import { createServer } from 'node:http';
import { readFile } from 'node:fs/promises';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const app = fileURLToPath(new URL('app', import.meta.url));
const engine = fileURLToPath(new URL('node_modules/@tidepool/engine/dist/src', import.meta.url));

const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.wasm': 'application/wasm' };

/** Begins to serve, on any port if none is given. */
export async function serve(port = 0) {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, 'http://localhost').pathname);
    const file = path.startsWith('/engine/') ? join(engine, path.slice(7)) : join(app, path);
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
  console.log(`the shop is at ${url}`);
}
