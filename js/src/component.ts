/**
 * Makes instances of a component that was transpiled, and turns what they throw into our errors.
 */

import * as errors from './errors.js';
import type * as StoreExports from './generated/interfaces/tidepool-tsdb-store.js';
import type { Error as ErrorValue } from './generated/interfaces/tidepool-tsdb-types.js';
import { storageImports } from './imports/bind.js';
import type { Storage } from './imports/storage.js';
import { Output, wasiImports } from './imports/wasi.js';

export type { StoreExports };

/** What every component exports. */
export interface Exports {
  readonly store: typeof StoreExports;
}

/** A component in generated code. */
export interface Build<All extends Exports> {
  /** Makes an instance. `compile` returns the module of a file. */
  instantiate(
    compile: (name: string) => Promise<WebAssembly.Module>,
    imports: object,
  ): Promise<All>;
  /** Address of a file of the component. */
  file(name: string): URL;
  /** Compiles a file of a component that is not at an address. */
  compile?(name: string): Promise<WebAssembly.Module>;
}

/** One instance of the component. Once it has ended it refuses every call. */
export class Instance<All extends Exports = Exports> {
  /** Gone when the instance has ended, so that its memory can be freed. */
  #exports: All | undefined;
  readonly #output: Output;
  #stopped: errors.EngineStoppedError | undefined;
  #isRunning = false;

  private constructor(exports: All, output: Output) {
    this.#exports = exports;
    this.#output = output;
  }

  /** Makes an instance on a storage. Compiled code is shared by all of them. */
  static async create<All extends Exports>(
    build: Build<All>,
    storage: Storage,
  ): Promise<Instance<All>> {
    const output = new Output();
    const imports = { ...storageImports(storage), ...wasiImports(output) };
    const compile = (name: string) => build.compile?.(name) ?? compiled(build.file(name));
    const exports = await build.instantiate(compile, imports);
    return new Instance(exports, output);
  }

  /** Whether it was ended, or has crashed. */
  get hasEnded(): boolean {
    return this.#exports === undefined;
  }

  /** Ends it. */
  end(): void {
    this.#exports = undefined;
  }

  /** Makes one call of the engine, on the store or on something that it gave. */
  call<T>(call: (store: typeof StoreExports) => T): T {
    return this.callAny(({ store }) => call(store), (value) => toError(value as ErrorValue));
  }

  /**
   * Makes one call on any of the exports; `toError` makes an exception of the error of a result. An
   * exception that is not one of the contract's errors has passed through the engine's frames and
   * left its memory in the middle of something, so that the instance ends there.
   */
  callAny<T>(call: (exports: All) => T, toError: (value: unknown) => Error): T {
    if (this.#exports === undefined) throw this.#stopped ?? new errors.NotOpenError();
    // Generated code would let the call in, against the rules of components.
    if (this.#isRunning) throw new errors.InvalidError('a storage called the store that it serves');
    this.#isRunning = true;
    try {
      return call(this.#exports);
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

/** Compiles a file of a component, once. */
function compiled(url: URL): Promise<WebAssembly.Module> {
  const known = modules.get(url.href) ?? compile(url);
  modules.set(url.href, known);
  return known;
}

async function compile(url: URL): Promise<WebAssembly.Module> {
  if (url.protocol !== 'file:') return WebAssembly.compileStreaming(fetch(url));
  const { readFile } = await import('node:fs/promises');
  return WebAssembly.compile(await readFile(url));
}

/** How generated code throws the error of a result. */
function isRefusal(thrown: unknown): thrown is { payload: unknown } {
  return thrown instanceof Error && Object.hasOwn(thrown, 'payload');
}

/** The exception for an error of the store. */
export function toError(value: ErrorValue): errors.TidepoolError {
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
    case 'series-dropped':
      return new errors.SeriesDroppedError();
    case 'head-lost':
      return new errors.HeadLostError(
        value.val.tag,
        value.val.tag === 'crashed' ? value.val.val : undefined,
      );
    case 'storage':
      return new errors.StorageError(value.val.tag, value.val.val);
  }
}
