/**
 * What Prometheus keeps of its head beside the log: `chunks_head/` and `chunk_snapshot.*`
 * directories.
 *
 * Both are made from the log and name series by their numbers in it. Once another program has
 * written to the log, their numbers may mean other series, and Prometheus, back on the directory,
 * would trust them. So they are deleted after the replay, before the first write. If the log was
 * damaged, they may hold what it lost, and are quarantined. Before that, the out-of-order log loses
 * the marks that say what of it is in `chunks_head`, since Prometheus passes over what is before
 * a mark.
 */

import { removeTree, type Disk } from './disk.js';
import type { FileLog } from './log.js';
import { quarantine } from './quarantine.js';

/** First byte of a record of such marks (`MmapMarkers` in `tsdb/record/record.go`). */
const MARKS_RECORD = 5;

const CACHE = /^(chunks_head|chunk_snapshot\.[0-9]+\.[0-9]+)$/;

/** Whether a directory is such a cache that was on its way out. */
export function isUnfinishedHeadCache(name: string): boolean {
  return name.endsWith('.tmp') && CACHE.test(name.slice(0, -4));
}

/** Removes the caches, or quarantines them if the logs are not whole. */
export function retireHeadCaches(disk: Disk, outOfOrder: FileLog, areLogsWhole: boolean): void {
  const caches = disk.list('').filter(({ name, isDir }) => isDir && CACHE.test(name));
  if (caches.length === 0) return;
  outOfOrder.dropRecords((record) => record[0] === MARKS_RECORD);
  for (const { name } of caches) {
    if (!areLogsWhole) {
      quarantine(disk, name);
      continue;
    }
    // Prometheus does not start where some of the files are missing.
    removeTree(disk, `${name}.tmp`);
    disk.rename(name, `${name}.tmp`);
    disk.syncDir('');
    removeTree(disk, `${name}.tmp`);
  }
}
