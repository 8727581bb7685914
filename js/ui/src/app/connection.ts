/** Whether the source answers. While it does not, and the tab is visible, it is asked again. */

import { ApiError, isAbort, type ApiAnswer, type PlainRequest, type Source } from '../source/source';

/** Time between two tries, in milliseconds. */
const TRY_EVERY_MS = 3000;
/** A request that every source answers cheaply. */
const PROBE = 'api/v1/status/buildinfo';

/** A source that watches its own answers. */
export class Connection implements Source {
  readonly kind: Source['kind'];
  readonly title: string;
  readonly endMs?: number;
  readonly metrics?: (signal: AbortSignal) => Promise<string>;
  readonly alertmanager?: (path: string, asked: PlainRequest, signal: AbortSignal) => Promise<unknown>;
  readonly #source: Source;
  readonly #listeners = new Set<() => void>();
  #isStarted = false;
  #isLost = false;
  #answeredMs: number | undefined;
  #epoch = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(source: Source) {
    this.#source = source;
    this.kind = source.kind;
    this.title = source.title;
    if (source.endMs !== undefined) this.endMs = source.endMs;
    if (source.metrics !== undefined) this.metrics = (signal) => this.#watched(source.metrics!(signal));
    if (source.alertmanager !== undefined) this.alertmanager = (path, asked, signal) => this.#watched(source.alertmanager!(path, asked, signal));
  }

  /**
   * Follows whether the tab is visible, which decides whether it asks again. Gives what ends that.
   */
  start(): () => void {
    const follow = (): void => this.#plan();
    document.addEventListener('visibilitychange', follow);
    this.#isStarted = true;
    return () => {
      document.removeEventListener('visibilitychange', follow);
      this.#isStarted = false;
      this.#plan();
    };
  }

  /** Whether the last request had no answer. */
  get isLost(): boolean {
    return this.#isLost;
  }

  /** When the last answer came. */
  get answeredMs(): number | undefined {
    return this.#answeredMs;
  }

  /** How often the source came back: what is shown from before is to be asked for again. */
  get epoch(): number {
    return this.#epoch;
  }

  request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<ApiAnswer> {
    return this.#watched(this.#source.request(path, params, signal));
  }

  /** Calls the listener when the source is lost and when it comes back. Gives what ends that. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Asks now. */
  retry(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    void this.request(PROBE, new URLSearchParams(), new AbortController().signal)
      .catch(() => {})
      .finally(() => this.#plan());
  }

  async #watched<T>(answer: Promise<T>): Promise<T> {
    try {
      const value = await answer;
      this.#set(false);
      return value;
    } catch (error) {
      if (!isAbort(error)) this.#set(error instanceof ApiError && error.errorType === 'unreachable');
      throw error;
    }
  }

  #set(isLost: boolean): void {
    if (!isLost) this.#answeredMs = Date.now();
    if (isLost === this.#isLost) return;
    this.#isLost = isLost;
    if (!isLost) this.#epoch += 1;
    this.#plan();
    for (const listener of this.#listeners) listener();
  }

  #plan(): void {
    if (!this.#isLost || !this.#isStarted || document.hidden) {
      clearTimeout(this.#timer);
      this.#timer = undefined;
    } else {
      this.#timer ??= setTimeout(() => this.retry(), TRY_EVERY_MS);
    }
  }
}
