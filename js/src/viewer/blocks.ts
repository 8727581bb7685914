/** The blocks of picked files: what their `meta.json` says, and which of them cannot be read. */

import { crc32c } from '../files/crc32c.js';
import { isUlid } from '../files/ulid.js';
import type { Files } from './disk.js';

/** A block, in the shape of `status/tsdb/blocks`. */
export interface ViewedBlock {
  readonly ulid: string;
  readonly minTime: number;
  readonly maxTime: number;
  readonly stats?: object;
  readonly compaction?: object;
  /** Bytes of its files. */
  readonly size: number;
  /** Why it is left out. */
  error?: string;
}

/** Bytes of an index's table of contents: six places and their checksum. */
const CONTENTS_BYTES = 6 * 8 + 4;

/**
 * First bytes of an index, of a file of chunks and of tombstones. Source: Prometheus'
 * `tsdb/docs/format`.
 */
const INDEX_MAGIC = 0xbaaad700;
const CHUNKS_MAGIC = 0x85bd40dd;
const TOMBSTONES_MAGIC = 0x0130ba30;

/**
 * Sections of an index that are larger are not checked before they are read: they would take
 * memory.
 */
const SECTION_BYTES_MAX = 128 * 1024 * 1024;

/** All blocks, oldest first. Those that cannot be opened have an `error`. */
export async function blocksOf(files: Files): Promise<ViewedBlock[]> {
  const parts = new Map<string, Map<string, Blob>>();
  for (const [path, file] of files) {
    const block = path.slice(0, path.indexOf('/'));
    if (!isUlid(block)) continue;
    const known = parts.get(block) ?? new Map<string, Blob>();
    parts.set(block, known.set(path.slice(block.length + 1), file));
  }
  const blocks = await Promise.all([...parts].map(([ulid, parts]) => blockOf(ulid, parts)));
  return blocks.sort((a, b) => a.minTime - b.minTime || (a.ulid < b.ulid ? -1 : 1));
}

async function blockOf(ulid: string, parts: ReadonlyMap<string, Blob>): Promise<ViewedBlock> {
  const size = [...parts.values()].reduce((sum, file) => sum + file.size, 0);
  try {
    const meta = await metaOf(parts.get('meta.json'));
    const { minTime, maxTime, stats, compaction } = meta;
    const block: ViewedBlock = { ulid, minTime, maxTime, size, ...(stats && { stats }), ...(compaction && { compaction }) };
    try {
      await checkFiles(parts, (stats as { numChunks?: number } | undefined)?.numChunks ?? 0);
    } catch (error) {
      block.error = (error as Error).message;
    }
    return block;
  } catch (error) {
    return { ulid, minTime: 0, maxTime: 0, size, error: (error as Error).message };
  }
}

interface Meta {
  readonly minTime: number;
  readonly maxTime: number;
  readonly stats?: object;
  readonly compaction?: object;
}

async function metaOf(file: Blob | undefined): Promise<Meta> {
  if (file === undefined) throw new Error('meta.json is missing: the block was never finished, or is not whole');
  const text = await file.text();
  let meta: Partial<Meta> & { version?: unknown };
  try {
    meta = JSON.parse(text) as typeof meta;
  } catch {
    throw new Error('meta.json is damaged: it is no JSON');
  }
  if (meta.version !== 1) throw new Error(`meta.json has the version ${String(meta.version)}, which is not known`);
  if (!Number.isSafeInteger(meta.minTime) || !Number.isSafeInteger(meta.maxTime)) {
    throw new Error('meta.json is damaged: it has no times');
  }
  return meta as Meta;
}

async function checkFiles(parts: ReadonlyMap<string, Blob>, chunks: number): Promise<void> {
  await checkMagic('index', parts.get('index'), INDEX_MAGIC);
  await checkContents(parts.get('index')!);
  await checkTombstones(parts.get('tombstones'));
  const names = [...parts.keys()].filter((name) => /^chunks\/[0-9]{6}$/.test(name)).sort();
  for (const [i, name] of names.entries()) {
    if (Number(name.slice(7)) !== i + 1) throw new Error(`chunks/${String(i + 1).padStart(6, '0')} is missing`);
    await checkMagic(name, parts.get(name), CHUNKS_MAGIC);
  }
  if (names.length === 0 && chunks > 0) throw new Error('chunks/000001 is missing');
}

async function checkMagic(name: string, file: Blob | undefined, magic: number): Promise<void> {
  if (file === undefined) throw new Error(`${name} is missing`);
  const bytes = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  const found = bytes.reduce((value, byte) => value * 256 + byte, 0);
  if (bytes.length < 4 || found !== magic) throw new Error(`${name} is damaged: it does not begin as such a file does`);
}

/**
 * Checks what the engine reads of an index when it opens a block: it leaves the block out if that
 * is damaged, and does not say so to those who only read.
 */
async function checkContents(index: Blob): Promise<void> {
  const version = new Uint8Array(await index.slice(4, 5).arrayBuffer())[0];
  if (version !== 1 && version !== 2) throw new Error(`index has the version ${version}, which is not known`);
  const bytes = new Uint8Array(await index.slice(-CONTENTS_BYTES).arrayBuffer());
  const table = new DataView(bytes.buffer);
  const isWhole = bytes.length === CONTENTS_BYTES && table.getUint32(48) === crc32c(bytes.subarray(0, 48));
  if (!isWhole) throw new Error('index is damaged at its end: it was cut off, or never finished');
  await checkSection('symbols', index, Number(table.getBigUint64(0)));
  await checkSection('postings offset table', index, Number(table.getBigUint64(40)));
}

/** A length in four bytes, so many bytes, and their checksum. */
async function checkSection(name: string, index: Blob, offset: number): Promise<void> {
  const head = new DataView(await index.slice(offset, offset + 4).arrayBuffer());
  const length = head.byteLength < 4 ? Infinity : head.getUint32(0);
  const end = offset + 4 + length;
  if (end + 4 > index.size) throw new Error(`index is damaged at byte ${offset}: the ${name} reach past its end`);
  if (length > SECTION_BYTES_MAX) return;
  const bytes = new Uint8Array(await index.slice(offset + 4, end + 4).arrayBuffer());
  if (!isSummed(bytes)) throw new Error(`index is damaged at byte ${offset}: the checksum of the ${name} is wrong`);
}

async function checkTombstones(file: Blob | undefined): Promise<void> {
  if (file === undefined) return;
  await checkMagic('tombstones', file, TOMBSTONES_MAGIC);
  // Behind the first four bytes there is the version, which the checksum does not cover.
  const bytes = new Uint8Array(await file.slice(5).arrayBuffer());
  if (!isSummed(bytes)) throw new Error('tombstones is damaged: its checksum is wrong');
}

/** Whether the last four bytes are the checksum of the others. */
function isSummed(bytes: Uint8Array): boolean {
  if (bytes.length < 4) return false;
  const end = bytes.length - 4;
  return new DataView(bytes.buffer).getUint32(end) === crc32c(bytes.subarray(0, end));
}
