/**
 * The part of WASI that Rust's standard library drags in, answered with as little as it takes:
 * nothing in the environment, no input, no terminals. What the engine writes, which is a panic's
 * message before it ends, is kept for the error that the caller gets.
 */

import { dispose } from './dispose.js';

/** Most bytes of output that are kept. */
const OUTPUT_BYTES_MAX = 64 * 1024;

/** Keeps what is written. */
export class Output {
  #text = '';
  readonly #decoder = new TextDecoder();

  write(bytes: Uint8Array): void {
    const room = OUTPUT_BYTES_MAX - this.#text.length;
    this.#text += this.#decoder.decode(bytes, { stream: true }).slice(0, Math.max(0, room));
  }

  get text(): string {
    return this.#text;
  }
}

/** Answers the WASI imports, for one instance. */
export function wasiImports(output: Output): Record<string, object> {
  class Pollable {
    block(): void {}
    [dispose](): void {}
  }
  class InputStream {
    [dispose](): void {}
  }
  class OutputStream {
    checkWrite(): bigint {
      return BigInt(OUTPUT_BYTES_MAX);
    }
    write(bytes: Uint8Array): void {
      output.write(bytes);
    }
    blockingFlush(): void {}
    subscribe(): Pollable {
      return new Pollable();
    }
    [dispose](): void {}
  }
  class StreamError {
    [dispose](): void {}
  }
  class Terminal {
    [dispose](): void {}
  }
  return {
    'wasi:cli/environment': { getEnvironment: () => [] },
    'wasi:cli/exit': {
      exit(): never {
        throw new Error('the engine asked to exit');
      },
    },
    'wasi:cli/stdin': { getStdin: () => new InputStream() },
    'wasi:cli/stdout': { getStdout: () => new OutputStream() },
    'wasi:cli/stderr': { getStderr: () => new OutputStream() },
    'wasi:cli/terminal-input': { TerminalInput: Terminal },
    'wasi:cli/terminal-output': { TerminalOutput: Terminal },
    'wasi:cli/terminal-stdin': { getTerminalStdin: () => undefined },
    'wasi:cli/terminal-stdout': { getTerminalStdout: () => undefined },
    'wasi:cli/terminal-stderr': { getTerminalStderr: () => undefined },
    'wasi:io/error': { Error: StreamError },
    'wasi:io/poll': { Pollable },
    'wasi:io/streams': { InputStream, OutputStream },
    // Seeds the standard library's hash maps.
    'wasi:random/insecure-seed': {
      insecureSeed: () => crypto.getRandomValues(new BigUint64Array(2)),
    },
  };
}
