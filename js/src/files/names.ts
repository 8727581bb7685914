/**
 * Names in a log's directory: segments are numbers of eight digits (any run of digits is read), a
 * checkpoint is `checkpoint.` and the number of the last segment that it stands for.
 */

import { join, type Disk } from './disk.js';

const CHECKPOINT_PREFIX = 'checkpoint.';
const UNFINISHED_SUFFIX = '.tmp';
const NUMBER_MAX = 2 ** 32 - 1;

/** A segment or a checkpoint. */
export interface Numbered {
  readonly number: number;
  readonly path: string;
  /** Length of a segment. */
  readonly sizeBytes: number;
}

/** What a log's directory holds, each ascending by number. */
export interface LogListing {
  readonly segments: Numbered[];
  readonly checkpoints: Numbered[];
  /** The highest number that any name stands for. */
  readonly numberMax: number | undefined;
}

/** Looks through a directory: a log's, or a checkpoint's. */
export function listLog(disk: Disk, dir: string): LogListing {
  const segments: Numbered[] = [];
  const checkpoints: Numbered[] = [];
  let numberMax: number | undefined;
  for (const { name, isDir, sizeBytes } of disk.list(dir)) {
    const isCheckpoint = isDir && name.startsWith(CHECKPOINT_PREFIX);
    const number = toNumber(isCheckpoint ? name.slice(CHECKPOINT_PREFIX.length) : name);
    if (number === undefined) continue;
    numberMax = Math.max(numberMax ?? 0, number);
    const found = { number, path: join(dir, name), sizeBytes };
    if (isCheckpoint) checkpoints.push(found);
    else if (!isDir) segments.push(found);
  }
  const ascending = (a: Numbered, b: Numbered) => a.number - b.number;
  return {
    segments: segments.sort(ascending),
    checkpoints: checkpoints.sort(ascending),
    numberMax,
  };
}

/** The name of a segment. */
export function segmentName(number: number): string {
  return String(number).padStart(8, '0');
}

/** The name of a checkpoint, and that which it has while it is written. */
export function checkpointNames(lastSegment: number): { name: string; unfinished: string } {
  const name = CHECKPOINT_PREFIX + segmentName(lastSegment);
  return { name, unfinished: name + UNFINISHED_SUFFIX };
}

/** Where a segment is written that will take another's place. */
export const UNFINISHED_REWRITE = 'rewrite.tmp';

/** Whether this in a log's directory was never finished. */
export function isUnfinishedInLog(name: string): boolean {
  return name === UNFINISHED_REWRITE || (name.startsWith(CHECKPOINT_PREFIX) && name.endsWith('.tmp'));
}

function toNumber(name: string): number | undefined {
  const number = /^[0-9]+$/.test(name) ? Number(name) : NUMBER_MAX + 1;
  return number <= NUMBER_MAX ? number : undefined;
}
