/** Node's part of `tests/embedders`: prints its figures. Argument: `memory` or `directory`. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { NodeFiles } from '../../src/node/index.js';
import { measure } from './embedder.js';

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

if (process.argv[2] === 'directory') {
  const root = mkdtempSync(join(tmpdir(), 'tidepool-'));
  let count = 0;
  const fresh = () => new NodeFiles(join(root, `${(count += 1)}`));
  console.log(JSON.stringify(await measure(cpuSeconds, fresh)));
  rmSync(root, { recursive: true });
} else {
  console.log(JSON.stringify(await measure(cpuSeconds)));
}
