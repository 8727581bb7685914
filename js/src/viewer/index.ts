/**
 * `@tidepool/engine/viewer`: Prometheus' HTTP API over a data directory that a person picked. For
 * dedicated workers, since only they read files synchronously.
 */

import type { Unzstd } from '../files/reader.js';
import { build } from '../promql/build.js';
import { answer } from './api.js';
import type { Picked } from './find.js';
import type { ViewerSummary } from './protocol.js';
import { Viewer } from './viewer.js';
import { fileReaderSync, type ReadPart } from './windows.js';

export type { Unzstd } from '../files/reader.js';
export { failureOf, type ApiFailure } from './api.js';
export type { Picked } from './find.js';
export type { ViewerSummary } from './protocol.js';
export type { ReadPart } from './windows.js';

/** How files are opened. */
export interface OpenFilesOptions {
  /** Reads a part of a file, synchronously; without it as a worker of a browser does. */
  readonly read?: ReadPart;
  /**
   * Unpacks records of logs that are compressed with Zstandard; without it they count as damaged.
   */
  readonly unzstd?: Unzstd;
}

/** An answer: fields of the envelope of Prometheus' API. */
export interface FilesAnswer {
  readonly data: unknown;
  readonly warnings: readonly string[];
  readonly infos: readonly string[];
  /** Entries of the whole list, where `data` is a part of one. */
  readonly total?: number;
}

/** Files that are open. Nothing is written. */
export class OpenFiles {
  readonly #viewer: Viewer;
  readonly #endMs: number;

  /** @internal */
  constructor(
    viewer: Viewer,
    /** What is open. */
    readonly summary: ViewerSummary,
  ) {
    this.#viewer = viewer;
    this.#endMs = summary.endMs ?? Date.now();
  }

  /**
   * What is damaged and left out so far, one sentence each: more may be found as files are read.
   */
  get damage(): readonly string[] {
    return this.#viewer.damage;
  }

  /**
   * Answers a request. A query without a time is evaluated at the newest sample. {@link failureOf}
   * makes the API's `errorType` and `error` of what it throws.
   *
   * @param path such as `api/v1/query_range`
   */
  async request(path: string, params: URLSearchParams, signal: AbortSignal = new AbortController().signal): Promise<FilesAnswer> {
    const { data, warnings = [], infos = [], total } = await answer(this.#viewer, path, params, this.#endMs, signal);
    return { data: JSON.parse(data), warnings, infos, ...(total !== undefined && { total }) };
  }

  /** Frees the memory. */
  close(): Promise<void> {
    return this.#viewer.close();
  }
}

/**
 * Opens a data directory, a snapshot, a block, or an archive of one. Throws an `Error` with the
 * reason if nothing in it can be shown.
 */
export async function openFiles(picked: readonly Picked[], options: OpenFilesOptions = {}): Promise<OpenFiles> {
  const { read = fileReaderSync(), unzstd } = options;
  const viewer = await Viewer.open(picked, { build, read, ...(unzstd && { unzstd }) });
  return new OpenFiles(viewer, await viewer.summary());
}
