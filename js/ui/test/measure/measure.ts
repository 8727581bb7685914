/**
 * Prints what a person waits for, and what a tab takes: `npm run measure`. With `-- --large DIR`:
 * of the viewer over a directory of 2 GB, which is made at DIR if it is not there. Chromium; the
 * program of TIDEPOOL_BIN with its page and its viewer.
 */

import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { closeBrowser } from '../browser/browser';
import { measureNode } from './node';
import { measureLarge, measureSmall } from './viewer';

const { large } = parseArgs({ options: { large: { type: 'string' } } }).values;
try {
  if (large === undefined) {
    await measureNode();
    await measureSmall();
  } else {
    await measureLarge(resolve(large));
  }
} finally {
  await closeBrowser();
}
