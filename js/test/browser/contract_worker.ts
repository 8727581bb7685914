/** The checks of `tests/contract` on the browser's files; says what was broken. */

import { OpfsFiles } from '../../src/opfs/index.js';
import { brokenPromises } from '../shared/contract.js';

function compiled(file: string): Promise<WebAssembly.Module> {
  return WebAssembly.compileStreaming(fetch(new URL(`../generated/${file}`, import.meta.url)));
}

async function check(): Promise<string[]> {
  // The checks make more files at once than a store ever does.
  const storage = () => new OpfsFiles('contract', { filesAtOnce: 64 });
  const written = await brokenPromises('write', storage(), compiled);
  return [...written, ...(await brokenPromises('readBack', storage(), compiled))];
}

check().then(postMessage, (error) => postMessage([String(error)]));
