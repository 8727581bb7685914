/** Deleting a store from the page. */

import { OpfsFiles } from '../opfs/index.js';

/** Deletes a store that is open nowhere; none of that name is fine. */
export function deleteStore(name = 'default'): Promise<void> {
  return OpfsFiles.delete(name);
}
