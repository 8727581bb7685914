/** The checks of `tests/contract` on a storage: what of `wit/storage.wit` it does not keep. */

import { storageImports } from '../../src/imports/bind.js';
import type { Storage } from '../../src/imports/storage.js';
import { Output, wasiImports } from '../../src/imports/wasi.js';
import { instantiate, type ImportObject } from '../generated/contract.js';

/** One sentence for each promise that was broken in the first life of a storage, or in its next. */
export async function brokenPromises(
  life: 'write' | 'readBack',
  storage: Storage,
  compile: (file: string) => Promise<WebAssembly.Module>,
): Promise<string[]> {
  await storage.acquire();
  const output = new Output();
  const environment = { getEnvironment: () => [], getArguments: () => [] };
  const imports: unknown = {
    ...storageImports(storage),
    ...wasiImports(output),
    'wasi:cli/environment': environment,
  };
  const { checks } = await instantiate(compile, imports as ImportObject);
  const broken = checks[life]();
  await storage.release();
  return broken;
}
