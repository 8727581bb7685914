/**
 * Finds what was picked: a data directory, a snapshot, one block, or an archive of one of them,
 * wherever in the tree it begins.
 */

import { isUlid, ulid } from '../files/ulid.js';
import type { Files } from './disk.js';
import { readArchive } from './tar.js';

/** A file, and its path from what was picked. */
export interface Picked {
  readonly path: string;
  readonly file: Blob;
}

/** What was found. */
export interface Found {
  /** Name of the directory, as far as it has one. */
  readonly name: string;
  /** The files of a data directory, by their paths in it. */
  readonly files: Files;
  /** What is damaged. */
  readonly damage: string[];
  /** What else was found and is not shown. */
  readonly others: string[];
}

/** A file of a block or a log, below its data directory. */
const PLACE = /^(?:(.*)\/)?(?:([0-9A-Z]{26})\/(?:meta\.json|index|chunks\/[0-9]+)|(?:wal|wbl)\/(?:checkpoint\.[0-9]+\/)?[0-9]+)$/;
/** The index of a block whose directory has another name than its own. */
const INDEX = /^(?:(.*)\/)?index$/;

/** Looks through picked files. Throws an `Error` if nothing in them can be shown. */
export async function findData(picked: readonly Picked[]): Promise<Found> {
  const { files, damage } = await unpacked(picked);
  const roots = new Map<string, number>();
  for (const path of files.keys()) {
    const place = PLACE.exec(path);
    if (place === null || (place[2] !== undefined && !isUlid(place[2]))) continue;
    const root = place[1] ?? '';
    roots.set(root, (roots.get(root) ?? 0) + 1);
  }
  const depth = (path: string) => (path === '' ? 0 : path.split('/').length);
  const [root, ...others] = [...roots.keys()].sort((a, b) => depth(a) - depth(b) || roots.get(b)! - roots.get(a)!);
  if (root === undefined) return { ...(await renamedBlock(files)), damage, others: [] };
  return { name: nameOf(root), files: below(files, root), damage, others };
}

/** Files by paths without `.`, `..` and empty parts, those of archives among them. */
async function unpacked(picked: readonly Picked[]): Promise<{ files: Map<string, Blob>; damage: string[] }> {
  const files = new Map<string, Blob>();
  const damage: string[] = [];
  for (const { path, file } of picked) {
    const known = normal(path);
    // Archives within a directory stay as they are.
    const archive = known.includes('/') ? undefined : await readArchive(known, file);
    if (archive === undefined) files.set(known, file);
    for (const entry of archive?.files ?? []) files.set(`${known}/${normal(entry.path)}`, entry.file);
    damage.push(...(archive?.damage ?? []));
  }
  return { files, damage };
}

/** A block that was renamed: its name is in its `meta.json`. */
async function renamedBlock(files: Files): Promise<{ name: string; files: Files }> {
  for (const path of files.keys()) {
    const dir = INDEX.exec(path)?.[1];
    const meta = dir === undefined ? undefined : files.get(`${dir}/meta.json`);
    if (dir === undefined || meta === undefined) continue;
    const named = /"ulid"\s*:\s*"([0-9A-Z]{26})"/.exec(await meta.text())?.[1] ?? '';
    const block = isUlid(named) ? named : ulid(0, 0n);
    const inside = [...below(files, dir)].map(([name, file]) => [`${block}/${name}`, file] as const);
    return { name: nameOf(dir), files: new Map(inside) };
  }
  const some = [...files.keys()].slice(0, 3).join(', ');
  const seen = files.size === 0 ? 'no files' : `${files.size} files (${some}${files.size > 3 ? ', …' : ''})`;
  throw new Error(
    `There is no block and no log in what was picked: ${seen}. Pick a data directory of Prometheus or tidepool, ` +
      'one of its blocks, a snapshot, or an archive of one of them (.tar, .tar.gz).',
  );
}

function below(files: Files, dir: string): Map<string, Blob> {
  if (dir === '') return new Map(files);
  const inside = [...files].filter(([path]) => path.startsWith(`${dir}/`));
  return new Map(inside.map(([path, file]) => [path.slice(dir.length + 1), file]));
}

function nameOf(dir: string): string {
  return dir.split('/').at(-1) ?? '';
}

function normal(path: string): string {
  return path.split('/').filter((part) => part !== '' && part !== '.' && part !== '..').join('/');
}
