/** The component without PromQL. */

import type { Build, Exports } from './component.js';
import { instantiate, type ImportObject } from './generated/engine.js';

export const build: Build<Exports> = {
  async instantiate(compile, imports) {
    // The generated code looks imports up without their versions, whatever its types say.
    const { store } = await instantiate(compile, imports as ImportObject);
    return { store };
  },
  file: (name) => new URL(`./generated/${name}`, import.meta.url),
};
