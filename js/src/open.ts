/** Opens a store whose component has no PromQL. */

import { build } from './build.js';
import { openWith, Store, type OpenOptions } from './store.js';

/**
 * Opens a store and reads its log back. One store at a time can be open on a storage; close it
 * before the next one is opened there.
 */
export function open(options: OpenOptions): Promise<Store> {
  return openWith(build, options, (instance) => new Store(instance, options.storage));
}
