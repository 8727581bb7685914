/**
 * What was taken out of the way and not deleted, as the `tidepool` program does it:
 *
 * ```text
 * set-aside/000001-20261121T140000Z-wal-00000007
 * ```
 *
 * Numbers go up, whatever the clock does. Beyond a bound on their bytes the oldest go; the newest
 * stays, however large. Upstream's programs ignore the directory.
 */

import { isNotFound, join, removeTree, type Disk, type DiskEntry } from './disk.js';

const DIR = 'set-aside';
const BYTES_MAX = 256 * 1024 * 1024;
const COPY_BYTES = 1024 * 1024;

/** Moves a file or a directory out of the way, for good. */
export function quarantine(disk: Disk, path: string): void {
  disk.rename(path, nextPath(disk, path));
  disk.syncDir(DIR);
  trim(disk);
}

/** Keeps a copy of a file as it is now. */
export function keepCopy(disk: Disk, path: string): void {
  const target = nextPath(disk, path);
  const [from, to] = [disk.open(path, 'read'), disk.create(`${target}.tmp`)];
  try {
    const sizeBytes = from.sizeBytes();
    for (let at = 0; at < sizeBytes; at += COPY_BYTES) {
      const piece = new Uint8Array(Math.min(COPY_BYTES, sizeBytes - at));
      from.readAt(at, piece);
      to.writeAt(at, piece);
    }
    to.sync();
  } finally {
    from.close();
    to.close();
  }
  disk.rename(`${target}.tmp`, target);
  disk.syncDir(DIR);
  trim(disk);
}

function nextPath(disk: Disk, path: string): string {
  disk.createDir(DIR);
  disk.syncDir('');
  const number = Math.max(0, ...entries(disk).map(({ number }) => number)) + 1;
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return join(DIR, `${String(number).padStart(6, '0')}-${time}-${path.replaceAll('/', '-')}`);
}

function entries(disk: Disk): (DiskEntry & { number: number })[] {
  const numbered = disk.list(DIR).map((entry) => ({ ...entry, number: parseInt(entry.name, 10) }));
  return numbered.filter(({ number }) => number >= 0).sort((a, b) => a.number - b.number);
}

function trim(disk: Disk): void {
  const all = entries(disk).map((entry) => {
    const path = join(DIR, entry.name);
    return { ...entry, path, bytes: entry.isDir ? treeBytes(disk, path) : entry.sizeBytes };
  });
  let total = all.reduce((sum, { bytes }) => sum + bytes, 0);
  for (const { path, isDir, bytes } of all.slice(0, -1)) {
    if (total <= BYTES_MAX) return;
    total -= bytes;
    if (isDir) removeTree(disk, path);
    else disk.removeFile(path);
  }
}

function treeBytes(disk: Disk, dir: string): number {
  return disk.list(dir).reduce((sum, { name, isDir, sizeBytes }) => {
    return sum + (isDir ? treeBytes(disk, join(dir, name)) : sizeBytes);
  }, 0);
}

/** Removes copies that a crash left half made. */
export function sweepQuarantine(disk: Disk): void {
  let found: DiskEntry[];
  try {
    found = disk.list(DIR);
  } catch (error) {
    if (isNotFound(error)) return;
    throw error;
  }
  for (const { name } of found) if (name.endsWith('.tmp')) disk.removeFile(join(DIR, name));
}
