// Receives remote write 1.0 and 2.0 from Prometheus, keeps it in ./data, and shows the newest
// value of each series:
//
//   node receiver.js [DIRECTORY [PORT]]

import { createServer } from 'node:http';
import { open, StorageError, TidepoolError, unpackSnappy } from '@tidepool/engine';
import { NodeFiles } from '@tidepool/engine/node';

const BODY_BYTES_MAX = 32 * 1024 * 1024;
const COMPACTION_PAUSE_MS = 60_000;
const HOUR_MS = 60 * 60 * 1000;

const [dir = 'data', port = '9401'] = process.argv.slice(2);
const store = await open({ storage: new NodeFiles(dir), retentionMs: 15 * 24 * HOUR_MS });

/** All of a request's body, or nothing if it is too long. */
async function read(request) {
  const parts = [];
  let bytes = 0;
  for await (const part of request) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/** Prometheus sends a request that got 5xx again, and gives one up that got 4xx. */
function status(error) {
  if (error instanceof StorageError || error.code === 'short-of-memory') return 503;
  return error instanceof TidepoolError && error.code !== 'engine-stopped' ? 400 : 500;
}

async function write(request, response) {
  const packed = await read(request);
  const body = packed && unpackSnappy(packed, BODY_BYTES_MAX);
  if (body === undefined) {
    response.writeHead(packed === undefined ? 413 : 400);
    return response.end(`the body is no Snappy block of at most ${BODY_BYTES_MAX} bytes\n`);
  }
  const isV2 = /proto=io\.prometheus\.write\.v2\.Request/.test(request.headers['content-type']);
  const outcome = store.appendRemoteWrite(isV2 ? 'v2' : 'v1', body);
  response.setHeader('x-prometheus-remote-write-samples-written', outcome.samplesWritten);
  response.setHeader('x-prometheus-remote-write-histograms-written', outcome.histogramsWritten);
  response.setHeader('x-prometheus-remote-write-exemplars-written', outcome.exemplarsWritten);
  response.statusCode = outcome.refused > 0 ? 400 : 204;
  response.end(outcome.refusals.map(({ detail }) => `${detail}\n`).join(''));
}

function newest(response) {
  const lines = [];
  for (const { labels, timestampsMs, values } of store.select({ startMs: Date.now() - HOUR_MS })) {
    const { __name__, ...others } = labels;
    const pairs = Object.entries(others).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
    if (values.length === 0) continue;
    lines.push(`${__name__}{${pairs.join(', ')}} ${values.at(-1)} ${timestampsMs.at(-1)}\n`);
  }
  response.setHeader('content-type', 'text/plain; charset=utf-8');
  response.end(lines.join(''));
}

const server = createServer(async (request, response) => {
  try {
    const what = `${request.method} ${request.url}`;
    if (what === 'POST /api/v1/write') await write(request, response);
    else if (what === 'GET /') newest(response);
    else response.writeHead(404).end('there are POST /api/v1/write and GET /\n');
  } catch (error) {
    response.writeHead(status(error)).end(`${error.message}\n`);
  }
});
server.listen(Number(port), '127.0.0.1', () => {
  console.log(`writing to ${dir}, listening on http://127.0.0.1:${server.address().port}`);
});

const timer = setInterval(() => {
  store.compact().catch((error) => console.error(`compaction failed: ${error.message}`));
}, COMPACTION_PAUSE_MS);

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    clearInterval(timer);
    server.close(() => store.close());
    server.closeIdleConnections();
  });
}
