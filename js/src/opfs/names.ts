/**
 * Which path is kept in which of the browser's files: a table, and a log of its changes, in two
 * files of which one counts.
 *
 * ```text
 * names.0 / names.1:  ┌─────────┬────────────┬──────┐
 *                     │ len u32 │ CRC-32C u32 │ JSON │  × n, little-endian; ends at length 0
 *                     └─────────┴────────────┴──────┘
 * first: {"generation":7,"files":{"wal/00000000":"3"},"dirs":["wal"]}
 * then:  ["create","a","5"]   ["dir","a"]   ["rename","a","b"]   ["remove","a"]   ["generation",9]
 * ```
 *
 * The file with the higher generation counts, if its first entry is whole. Each change is one
 * entry, so that a crash leaves all of it or nothing: the rename of a directory as much as that of
 * a file. When the log has grown, the table is rewritten to the other file. If that fails, the log
 * says a generation above the one that was tried. Both files have reserved room, so that changes
 * that free space can be written when there is none.
 *
 * A power cut may keep a later page of the log and lose an earlier one: whole entries then lie
 * behind the place where the log ends. They are overwritten with zeros before anything is appended,
 * since a new entry of the right length would make them part of the log again.
 */

import { crc32c } from '../files/crc32c.js';
import { ignoring } from '../files/disk.js';
import { attempt, writeAll, type SyncHandle } from './handles.js';

/** One change of the table. */
export type Change =
  | readonly ['create', path: string, slot: string]
  | readonly ['dir', path: string]
  | readonly ['rename', from: string, to: string]
  | readonly ['remove', path: string];

const HEADER_BYTES = 8;
/** Bytes reserved in each file. When the log exceeds them, the table moves to the other file. */
const ROOM_BYTES = 256 * 1024;

/** The table of names. */
export class Names {
  readonly files = new Map<string, string>();
  readonly dirs = new Set<string>(['']);
  /** Whether there was no table. It is made by {@link begin}. */
  readonly isNew: boolean;
  readonly #handles: readonly [SyncHandle, SyncHandle];
  #current: 0 | 1 = 0;
  #generation = 0;
  /** The highest generation of a table that was written, or half written. */
  #claimed = 0;
  #end = 0;

  /** Reads the table from its two files, which may be empty. */
  constructor(handles: readonly [SyncHandle, SyncHandle]) {
    this.#handles = handles;
    const [first, second] = [entries(handles[0]), entries(handles[1])];
    this.#current = generation(second) > generation(first) ? 1 : 0;
    const current = [first, second][this.#current]!;
    const [table, ...changes] = current.values;
    this.isNew = table === undefined;
    if (table === undefined) return;
    const { files, dirs } = table as { files: Record<string, string>; dirs: string[] };
    this.#generation = generation(current);
    this.#end = current.end;
    for (const [path, slot] of Object.entries(files)) this.files.set(path, slot);
    for (const dir of dirs) this.dirs.add(dir);
    for (const change of changes) {
      if (!isGeneration(change)) this.#apply(change as Change);
    }
    this.#wipe(current.tail);
  }

  /** Makes the table of a new store. */
  begin(): void {
    if (this.isNew) this.#write(0);
  }

  /** Makes a change, which is in the log when this returns. */
  change(change: Change): void {
    const entry = encode(change);
    if (this.#end + entry.length > ROOM_BYTES) {
      // If that fails, the log grows on, if there is room for that.
      ignoring(() => this.#write(this.#current === 0 ? 1 : 0));
    }
    if (this.#claimed > this.#generation) {
      // The other file may hold a whole table all the same, which must not count.
      this.#append(encode(['generation', this.#claimed + 1]));
      this.#generation = this.#claimed + 1;
    }
    this.#append(entry);
    this.#apply(change);
  }

  /** Makes all changes survive a power cut. */
  sync(): void {
    attempt('sync', 'the names of files', () => this.#handles[this.#current].flush());
  }

  #append(entry: Uint8Array): void {
    writeAll(this.#handles[this.#current], 'the names of files', entry, this.#end);
    this.#end += entry.length;
  }

  #apply(change: Change): void {
    const [what, path] = change;
    if (what === 'create') this.files.set(path, change[2]);
    else if (what === 'dir') this.dirs.add(path);
    else if (what === 'rename') this.#rename(path, change[2]);
    else if (!this.files.delete(path)) this.dirs.delete(path);
  }

  #rename(from: string, to: string): void {
    const moved = (path: string) =>
      path === from || path.startsWith(`${from}/`) ? to + path.slice(from.length) : path;
    for (const [path, slot] of [...this.files]) {
      if (moved(path) === path) continue;
      this.files.delete(path);
      this.files.set(moved(path), slot);
    }
    for (const path of [...this.dirs]) {
      if (moved(path) === path) continue;
      this.dirs.delete(path);
      this.dirs.add(moved(path));
    }
  }

  /** Overwrites what a crash left behind the end of the log. */
  #wipe(tail: Uint8Array): void {
    const last = tail.findLastIndex((byte) => byte !== 0);
    if (last < 0) return;
    // In place: that takes no room.
    const handle = this.#handles[this.#current];
    writeAll(handle, 'the names of files', new Uint8Array(last + 1), this.#end);
    this.sync();
  }

  /** Rewrites the table to one of the files, which counts from then on. */
  #write(target: 0 | 1): void {
    const handle = this.#handles[target];
    const next = Math.max(this.#generation, this.#claimed) + 1;
    this.#claimed = next;
    const table = { generation: next, files: Object.fromEntries(this.files), dirs: [...this.dirs] };
    const entry = encode(table);
    attempt('write', 'the names of files', () => {
      handle.truncate(0);
      handle.truncate(Math.max(ROOM_BYTES, 2 * entry.length));
    });
    writeAll(handle, 'the names of files', entry, 0);
    attempt('sync', 'the names of files', () => handle.flush());
    this.#generation = next;
    this.#current = target;
    this.#end = entry.length;
  }
}

function encode(value: unknown): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(value));
  const entry = new Uint8Array(HEADER_BYTES + json.length);
  const view = new DataView(entry.buffer);
  view.setUint32(0, json.length, true);
  view.setUint32(4, crc32c(json), true);
  entry.set(json, HEADER_BYTES);
  return entry;
}

interface Entries {
  readonly values: unknown[];
  /** Where the last one ends. */
  readonly end: number;
  /** What lies behind it. */
  readonly tail: Uint8Array;
}

/** All whole entries of a file. */
function entries(handle: SyncHandle): Entries {
  const bytes = new Uint8Array(handle.getSize());
  attempt('read', 'the names of files', () => handle.read(bytes, { at: 0 }));
  const view = new DataView(bytes.buffer);
  const values: unknown[] = [];
  let at = 0;
  while (at + HEADER_BYTES <= bytes.length) {
    const end = at + HEADER_BYTES + view.getUint32(at, true);
    if (end === at + HEADER_BYTES || end > bytes.length) break;
    const json = bytes.subarray(at + HEADER_BYTES, end);
    if (crc32c(json) !== view.getUint32(at + 4, true)) break;
    values.push(JSON.parse(new TextDecoder().decode(json)));
    at = end;
  }
  return { values, end: at, tail: bytes.subarray(at) };
}

/** The generation of a file: that of its table, unless its log says a higher one. */
function generation({ values: [table, ...changes] }: Entries): number {
  if (table === undefined) return 0;
  const said = changes.filter(isGeneration).map(([, number]) => number);
  return Math.max((table as { generation: number }).generation, ...said);
}

function isGeneration(change: unknown): change is readonly ['generation', number] {
  return (change as readonly unknown[])[0] === 'generation';
}
