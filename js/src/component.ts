/**
 * The generated code's only user: makes instances of the component, and turns what they throw
 * into our errors.
 */

import * as errors from './errors.js';
import { instantiate, type ImportObject } from './generated/engine.js';
import type * as StoreExports from './generated/interfaces/tidepool-tsdb-store.js';
import type { Error as ErrorValue } from './generated/interfaces/tidepool-tsdb-types.js';
import { storageImports } from './imports/bind.js';
import type { Storage } from './imports/storage.js';
import { Output, wasiImports } from './imports/wasi.js';

export type { StoreExports };

/** One instance of the component. Once it has ended it refuses every call. */
export class Instance {
  /** Gone when the instance has ended, so that its memory can be freed. */
  #store: typeof StoreExports | undefined;
  readonly #output: Output;
  #stopped: errors.EngineStoppedError | undefined;
  #isRunning = false;

  private constructor(store: typeof StoreExports, output: Output) {
    this.#store = store;
    this.#output = output;
  }

  /** Makes an instance on a storage. Compiled code is shared by all of them. */
  static async create(storage: Storage): Promise<Instance> {
    const output = new Output();
    // The generated code looks imports up without their versions, whatever its types say.
    const imports: unknown = { ...storageImports(storage), ...wasiImports(output) };
    const { store } = await instantiate(compiled, imports as ImportObject);
    return new Instance(store, output);
  }

  /** Whether it was ended, or has crashed. */
  get hasEnded(): boolean {
    return this.#store === undefined;
  }

  /** Ends it. */
  end(): void {
    this.#store = undefined;
  }

  /**
   * Makes one call of the engine, on the store or on something that it gave. An exception that is
   * not one of the contract's errors has passed through the engine's frames and left its memory
   * in the middle of something, so that the instance ends there.
   */
  call<T>(call: (store: typeof StoreExports) => T): T {
    if (this.#store === undefined) throw this.#stopped ?? new errors.NotOpenError();
    // Generated code would let the call in, against the rules of components.
    if (this.#isRunning) throw new errors.InvalidError('a storage called the store that it serves');
    this.#isRunning = true;
    try {
      return call(this.#store);
    } catch (thrown) {
      if (isRefusal(thrown)) throw toError(thrown.payload);
      this.#stopped = new errors.EngineStoppedError(this.#output.text, thrown);
      this.end();
      throw this.#stopped;
    } finally {
      this.#isRunning = false;
    }
  }
}

const modules = new Map<string, Promise<WebAssembly.Module>>();

/** Compiles a file of the component, once. */
function compiled(name: string): Promise<WebAssembly.Module> {
  const known = modules.get(name) ?? compile(new URL(`./generated/${name}`, import.meta.url));
  modules.set(name, known);
  return known;
}

async function compile(url: URL): Promise<WebAssembly.Module> {
  if (url.protocol !== 'file:') return WebAssembly.compileStreaming(fetch(url));
  const { readFile } = await import('node:fs/promises');
  return WebAssembly.compile(await readFile(url));
}

/** How generated code throws the error of a result. */
function isRefusal(thrown: unknown): thrown is { payload: ErrorValue } {
  return thrown instanceof Error && Object.hasOwn(thrown, 'payload');
}

function toError(value: ErrorValue): errors.TidepoolError {
  switch (value.tag) {
    case 'not-open':
      return new errors.NotOpenError();
    case 'wrong-role':
      return new errors.WrongRoleError(value.val);
    case 'invalid':
      return new errors.InvalidError(value.val);
    case 'malformed':
      return new errors.MalformedError({ ...value.val, offset: Number(value.val.offset) });
    case 'corrupt':
      return new errors.CorruptError({ ...value.val, offset: Number(value.val.offset) });
    case 'limit-exceeded':
      return new errors.LimitExceededError(value.val.what, Number(value.val.max));
    case 'short-of-memory':
      return new errors.ShortOfMemoryError(Number(value.val));
    case 'busy':
      return new errors.BusyError();
    case 'storage':
      return new errors.StorageError(value.val.tag, value.val.val);
  }
}
