/** Files that a Worker has open: the same answers as over HTTP, by messages. */

import type { FromViewer, ToViewer, ViewerAnswer, ViewerSummary } from '../../../src/viewer/protocol';
import { ApiError, type ApiAnswer, type Source } from './source';

/** The page's end of a worker. */
export interface Port {
  postMessage(message: ToViewer): void;
  addEventListener(type: 'message', listener: (event: { data: FromViewer }) => void): void;
}

interface Waiting {
  resolve(answer: ApiAnswer): void;
  reject(error: unknown): void;
}

/** A worker that opens what a person picks. */
export class ViewerWorker {
  readonly #port: Port;
  readonly #waiting = new Map<number, Waiting>();
  #requests = 0;
  #opening: { resolve(summary: ViewerSummary): void; reject(error: Error): void } | undefined;

  /** @param onDamage called with all that is damaged, when more of it is found */
  constructor(port: Port, onDamage: (damage: readonly string[]) => void) {
    this.#port = port;
    port.addEventListener('message', ({ data }) => {
      if ('opened' in data) this.#opening?.resolve(data.opened);
      else if ('failed' in data) this.#opening?.reject(new Error(data.failed));
      else if ('damage' in data) onDamage(data.damage);
      else this.#settle(data);
    });
  }

  /** Opens files in place of those that are open. */
  open(picked: Extract<ToViewer, { open: unknown }>['open']): Promise<ViewerSummary> {
    return new Promise((resolve, reject) => {
      this.#opening = { resolve, reject };
      this.#port.postMessage({ open: picked });
    });
  }

  /** Answers one request. */
  request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<ApiAnswer> {
    if (signal.aborted) return Promise.reject(aborted());
    const id = (this.#requests += 1);
    return new Promise((resolve, reject) => {
      const cancel = (): void => {
        this.#waiting.delete(id);
        this.#port.postMessage({ cancel: id });
        reject(aborted());
      };
      signal.addEventListener('abort', cancel, { once: true });
      const settled = <T>(settle: (value: T) => void) => (value: T) => {
        signal.removeEventListener('abort', cancel);
        settle(value);
      };
      this.#waiting.set(id, { resolve: settled(resolve), reject: settled(reject) });
      this.#port.postMessage({ id, path, params: params.toString() });
    });
  }

  #settle(message: Extract<FromViewer, { id: number }>): void {
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if ('answer' in message) waiting?.resolve(answerOf(message.answer));
    else waiting?.reject(new ApiError(message.failure.errorType, message.failure.error));
  }
}

/** The files that a worker has open. */
export class WorkerSource implements Source {
  readonly kind = 'directory';
  readonly title: string;
  readonly endMs?: number;
  readonly #worker: ViewerWorker;

  constructor(worker: ViewerWorker, { endMs, name }: ViewerSummary) {
    this.#worker = worker;
    this.title = name === '' ? 'picked files' : name;
    if (endMs !== undefined) this.endMs = endMs;
  }

  request(path: string, params: URLSearchParams, signal: AbortSignal): Promise<ApiAnswer> {
    return this.#worker.request(path, params, signal);
  }
}

function answerOf({ data, warnings = [], infos = [], total }: ViewerAnswer): ApiAnswer {
  const answer: ApiAnswer = { data: JSON.parse(data), warnings: [...warnings], infos: [...infos] };
  if (total !== undefined) answer.total = total;
  return answer;
}

function aborted(): DOMException {
  return new DOMException('the request was ended', 'AbortError');
}
