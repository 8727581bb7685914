/**
 * What the viewer's worker runs. Not TypeScript: the page's types are checked without the component,
 * whose types are made when js is built.
 */

import { decompress } from 'fzstd';
import { serveViewer } from '../../../src/viewer/serve';

serveViewer(globalThis, (packed, bytesMax) => {
  try {
    const record = decompress(packed);
    return record.length > bytesMax ? undefined : record;
  } catch {
    return undefined;
  }
});
