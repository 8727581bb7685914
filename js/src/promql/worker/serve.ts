/** The worker's side of a store with PromQL. */

import { InvalidError } from '../../errors.js';
import type { QueryCalls } from '../../worker/protocol.js';
import { serve, toBatch, type Handlers, type Port } from '../../worker/serve.js';
import type { Evaluation } from '../answer.js';
import { open, type PromqlStore } from '../store.js';

/** Serves a store with PromQL on a port. */
export function serveWithQueries(port: Port): void {
  serve(port, open, queryHandlers);
}

function queryHandlers(opened: () => PromqlStore): Handlers<QueryCalls> {
  const evaluations = new Map<number, Evaluation>();
  return {
    query: (query, expression, options) => {
      evaluations.set(query, opened().evaluate(expression, options));
    },
    nextOfQuery: async (query) => {
      const evaluation = evaluations.get(query);
      if (evaluation === undefined) throw new InvalidError(`query ${query} has ended`);
      const { series, notes } = await evaluation.next();
      return { batch: toBatch(series), notes };
    },
    endQuery: (query) => {
      evaluations.get(query)?.end();
      evaluations.delete(query);
    },
    formatQuery: (expression) => opened().formatQuery(expression),
    parseQuery: (expression) => opened().parseQuery(expression),
  };
}
