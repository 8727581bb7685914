/** The page's side of a store with PromQL. */

import type { Channel } from '../../worker/client.js';
import { fromBatch, WorkerStore } from '../../worker/client.js';
import type { WorkerOpenOptions } from '../../worker/protocol.js';
import { QueryAnswer } from '../answer.js';
import type { QueryOptions } from '../model.js';

/** A {@link WorkerStore} that answers queries in PromQL. */
export class PromqlWorkerStore extends WorkerStore {
  #queries = 0;

  /** Opens a store at the other end of a channel; `end` ends whatever is there. */
  static override open(
    channel: Channel,
    end: () => void,
    options: WorkerOpenOptions,
  ): Promise<PromqlWorkerStore> {
    return new PromqlWorkerStore(channel, end).begin(options);
  }

  /**
   * As `query` of a store in the page. A signal rejects at once, but the worker is busy until the
   * piece that it evaluates is complete.
   */
  query(expression: string, { signal, ...options }: QueryOptions = {}): QueryAnswer {
    const begin = () => {
      this.#queries += 1;
      const query = this.#queries;
      const begun = this.call('query', query, expression, options);
      // Its error comes with the first piece.
      begun.catch(() => {});
      return {
        next: async () => {
          await begun;
          const { batch, notes } = await this.call('nextOfQuery', query);
          return { series: fromBatch(batch), notes };
        },
        // If the store was closed, it has ended.
        end: () => void this.call('endQuery', query).catch(() => {}),
      };
    };
    return new QueryAnswer(begin, signal);
  }

  /** As `formatQuery` of a store in the page. */
  formatQuery(expression: string): Promise<string> {
    return this.call('formatQuery', expression);
  }

  /** As `parseQuery` of a store in the page. */
  parseQuery(expression: string): Promise<unknown> {
    return this.call('parseQuery', expression);
  }
}
