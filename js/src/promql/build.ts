/** The component with PromQL. */

import type { Build, Exports, StoreExports } from '../component.js';
import { instantiate, type ImportObject } from './generated/engine.js';
import type * as QueryExports from './generated/interfaces/tidepool-tsdb-query.js';

export type { QueryExports };

/** What it exports beside the store. */
export interface ExportsWithQueries extends Exports {
  readonly query: typeof QueryExports;
}

export const build: Build<ExportsWithQueries> = {
  async instantiate(compile, imports) {
    // The generated code looks imports up without their versions, whatever its types say.
    const { store, query } = await instantiate(compile, imports as ImportObject);
    // The same interface, whose types were generated twice.
    return { store: store as unknown as typeof StoreExports, query };
  },
  file: (name) => new URL(`./generated/${name}`, import.meta.url),
};
