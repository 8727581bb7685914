/**
 * The lock of a data directory: `flock` on its file `lock`, as `tidepool` and Prometheus do it.
 *
 * Node has no call for that. But such a lock belongs to an open file, which a child process shares:
 * so a short one takes it on a file of ours and ends, and the lock stays until we close the file or
 * die. `flock` is part of every Linux; Perl, for macOS, does the same.
 */

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { StorageError } from '../errors.js';
import { attempt } from './disk.js';

const LOCK_FILE = 'lock';

/** Ways to lock the file that is the standard input, ending in 1 if another has it. */
const LOCKERS: readonly (readonly [string, readonly string[]])[] = [
  ['flock', ['-x', '-n', '0']],
  ['perl', ['-e', 'use Fcntl ":flock"; exit(flock(STDIN, LOCK_EX | LOCK_NB) ? 0 : 1)']],
];

/** Locks a directory; returns what unlocks it. */
export function lock(dir: string): () => void {
  const path = join(dir, LOCK_FILE);
  for (;;) {
    const fd = attempt('lock', path, () => fs.openSync(path, 'a+', 0o644));
    try {
      if (!takeLock(fd)) {
        const remedy = 'close the store or stop the program that has it open';
        throw new StorageError('io', `another process works in ${dir}: ${remedy}`);
      }
      // Prometheus removes its lock file when it ends. A lock on a file that was unlinked in
      // between would exclude no process.
      if (isNamed(fd, path)) return () => fs.closeSync(fd);
    } catch (error) {
      fs.closeSync(fd);
      throw error;
    }
    fs.closeSync(fd);
  }
}

function takeLock(fd: number): boolean {
  for (const [program, args] of LOCKERS) {
    const { error, status, stderr } = spawnSync(program, args, { stdio: [fd, 'ignore', 'pipe'] });
    if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') continue;
    if (status === 0) return true;
    if (status === 1) return false;
    const reason = error?.message ?? stderr.toString().trim();
    throw new StorageError('io', `${program} could not lock the data directory: ${reason}`);
  }
  const programs = LOCKERS.map(([program]) => program).join(' nor ');
  throw new StorageError('io', `no lock can be taken: there is neither ${programs}`);
}

function isNamed(fd: number, path: string): boolean {
  try {
    const [locked, named] = [fs.fstatSync(fd), fs.statSync(path)];
    return locked.ino === named.ino && locked.dev === named.dev;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false;
    throw error;
  }
}
