/** The browser's synchronous handles, in memory, with a quota. */

import type { HandleSource, SyncHandle } from '../../src/opfs/handles.js';

/** What the handles may still do. */
export interface Budget {
  /** Bytes of all files together. */
  bytesMax?: number;
  /** Calls that change something; the next one does half of its work and throws, as all after. */
  callsLeft?: number;
}

/** Files by name, which live on when their handles are closed. */
export function memoryHandles(budget: Budget = {}, files = new Map<string, Uint8Array>()) {
  const change = (call: () => void, half: () => void = () => {}) => {
    budget.callsLeft = (budget.callsLeft ?? Infinity) - 1;
    if (budget.callsLeft >= 0) return call();
    if (budget.callsLeft === -1) half();
    throw new DOMException('as the test wants it', 'InvalidStateError');
  };
  const used = () => [...files.values()].reduce((sum, bytes) => sum + bytes.length, 0);
  const resize = (name: string, length: number) => {
    const before = files.get(name)!;
    if (length > before.length && used() + length - before.length > (budget.bytesMax ?? Infinity)) {
      throw new DOMException('no room', 'QuotaExceededError');
    }
    const bytes = new Uint8Array(length);
    bytes.set(before.subarray(0, length));
    files.set(name, bytes);
  };
  const source: HandleSource & { files: Map<string, Uint8Array> } = {
    files,
    async names() {
      return [...files.keys()];
    },
    async open(name): Promise<SyncHandle> {
      if (!files.has(name)) files.set(name, new Uint8Array(0));
      return {
        getSize: () => files.get(name)!.length,
        read(out, { at }) {
          const bytes = files.get(name)!.subarray(at, at + out.length);
          out.set(bytes);
          return bytes.length;
        },
        write(bytes, { at }) {
          const write = (part: Uint8Array) => {
            if (at + part.length > files.get(name)!.length) resize(name, at + part.length);
            files.get(name)!.set(part, at);
          };
          change(
            () => write(bytes),
            () => write(bytes.subarray(0, bytes.length >> 1)),
          );
          return bytes.length;
        },
        truncate: (length) => change(() => resize(name, length)),
        flush: () => change(() => {}),
        close() {},
      };
    },
  };
  return source;
}
