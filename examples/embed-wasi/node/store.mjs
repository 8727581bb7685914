// One store in one directory. An instance has its directory for life, and a module is one instance:
// a program that needs several stores starts a worker for each.

import { _setPreopens, types } from '@bytecodealliance/preview2-shim/filesystem';

const HOUR_MS = 3_600_000n;

// The shim refuses a flag that Rust's standard library sets on every file that is opened for
// writing, although only directories have a use for it.
const { openAt } = types.Descriptor.prototype;
types.Descriptor.prototype.openAt = function (pathFlags, path, openFlags, flags) {
  return openAt.call(this, pathFlags, path, openFlags, { ...flags, mutateDirectory: false });
};

/**
 * Opens the store in a directory that exists; returns the component's interfaces. The component in
 * `generated-promql` has `query`, too.
 */
export async function open(directory, folder = 'generated') {
  _setPreopens({ '/data': directory });
  const component = await import(`./${folder}/standalone.js`);
  const { store } = component;
  store.open({
    role: 'all',
    blockDurationMs: 2n * HOUR_MS,
    futureLimitMs: HOUR_MS / 6n,
    outOfOrderWindowMs: 2n * HOUR_MS,
    seriesMax: 0n,
    exemplarsMax: 0n,
    memoryBytesMax: 0n,
    labelLimits: { labelsMax: 128, nameBytesMax: 1024, valueBytesMax: 4096 },
    blockDurationMaxMs: 0n,
    retentionMs: 0n,
    retentionBytes: 0n,
    hashSeed: crypto.getRandomValues(new BigUint64Array(1))[0],
  });
  while (!store.replay(1 << 20).done);
  return component;
}
