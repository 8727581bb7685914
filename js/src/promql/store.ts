/** A store that answers queries in PromQL. */

import type { Instance } from '../component.js';
import type { Storage } from '../imports/storage.js';
import { openWith, Store, type OpenOptions } from '../store.js';
import { QueryAnswer, type Evaluation } from './answer.js';
import { build, type ExportsWithQueries } from './build.js';
import { evaluate, format, parse } from './evaluate.js';
import type { QueryOptions } from './model.js';

/**
 * Opens a store and reads its log back. One store at a time can be open on a storage; close it
 * before the next one is opened there.
 */
export function open(options: OpenOptions): Promise<PromqlStore> {
  return openWith(build, options, (instance) => new PromqlStore(instance, options.storage));
}

/** A {@link Store} that answers queries in PromQL. */
export class PromqlStore extends Store {
  readonly #instance: Instance<ExportsWithQueries>;

  /** Use {@link open}. */
  constructor(instance: Instance<ExportsWithQueries>, storage: Storage) {
    super(instance, storage);
    this.#instance = instance;
  }

  /**
   * Evaluates an expression, at one time or over a range, as Prometheus 3.15 does. The series come
   * piece by piece, and other work has its turn in between. Samples that are appended meanwhile may
   * be in the answer or not.
   *
   * The answer is rejected with a `QueryParseError`, a `QueryExecutionError`, or a
   * `LimitExceededError` if the query needs more than its options allow.
   */
  query(expression: string, options: QueryOptions = {}): QueryAnswer {
    return new QueryAnswer(() => this.evaluate(expression, options), options.signal);
  }

  /** Begins a query, for a worker that passes its pieces on. @internal */
  evaluate(expression: string, options: QueryOptions): Evaluation {
    return evaluate(this.#instance, expression, options);
  }

  /** The expression in Prometheus' layout. Throws a `QueryParseError`. */
  formatQuery(expression: string): string {
    return format(this.#instance, expression);
  }

  /** The tree of an expression, as from Prometheus' `parse_query`. Throws a `QueryParseError`. */
  parseQuery(expression: string): unknown {
    return parse(this.#instance, expression);
  }
}
