/** The `tidepool` program that tests start: the one that `TIDEPOOL_BIN` names, else cargo's. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const target = process.env['CARGO_TARGET_DIR'] ?? join(root, 'target');

/** A file that is newer than a time; a folder stands for all that is in it. */
function newer(path: string, timeMs: number): string | undefined {
  if (!existsSync(path)) return undefined;
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs > timeMs ? path : undefined;
  for (const name of readdirSync(path)) {
    // Documentation in a folder of sources is not built.
    const inside = name.endsWith('.md') ? undefined : newer(join(path, name), timeMs);
    if (inside !== undefined) return inside;
  }
  return undefined;
}

/** Cargo's program; refused if its sources changed since it was built. */
function built(): string {
  const path = join(target, 'release', 'tidepool');
  if (!existsSync(path)) throw new Error(`${path} is missing; run: cargo build --release`);
  // What it was built of, in the form of a Makefile's rule.
  const [, sources] = readFileSync(`${path}.d`, 'utf8').trim().split(/: (.*)/s);
  for (const source of (sources ?? '').split(/(?<!\\) /)) {
    const changed = newer(source.replaceAll('\\ ', ' '), statSync(path).mtimeMs);
    if (changed !== undefined) throw new Error(`${changed} is newer than ${path}; run: cargo build --release`);
  }
  return path;
}

/** Its path. */
export const tidepool = process.env['TIDEPOOL_BIN'] ?? built();
