/**
 * Archives: tar in the formats ustar, pax and GNU, plain or packed with gzip. A plain one is read
 * where it lies; a packed one is unpacked into pieces, which browsers keep on the disk.
 *
 * Source: POSIX.1-2017, pax, sections *ustar Interchange Format* and *pax Header Block*; GNU tar
 * manual, *Basic Tar Format*.
 */

import type { Picked } from './find.js';

const RECORD_BYTES = 512;
/** Bytes of one name, or of the extended headers before one. */
const HEADERS_BYTES_MAX = 1024 * 1024;
/** Bytes that an archive may unpack to: whatever is larger belongs on a disk. */
const UNPACKED_BYTES_MAX = 8 * 1024 ** 3;
const PIECE_BYTES = 8 * 1024 * 1024;

/** What an archive holds. */
export interface Archive {
  readonly files: Picked[];
  /** What is wrong with it; all that stands before that is there. */
  readonly damage: string[];
}

/** Reads an archive; nothing if a file is none. */
export async function readArchive(name: string, file: Blob): Promise<Archive | undefined> {
  const damage: string[] = [];
  const isPacked = await isGzip(file);
  const bytes = isPacked ? await gunzip(name, file, damage) : file;
  const first = new Uint8Array(await bytes.slice(0, RECORD_BYTES).arrayBuffer());
  if (!isHeader(first)) return isPacked ? { files: [], damage: [...damage, `${name} is no archive of tar`] } : undefined;
  const files = await entries(name, bytes, damage);
  return { files, damage };
}

async function isGzip(file: Blob): Promise<boolean> {
  const [a, b] = new Uint8Array(await file.slice(0, 2).arrayBuffer());
  return a === 0x1f && b === 0x8b;
}

async function gunzip(name: string, file: Blob, damage: string[]): Promise<Blob> {
  const pieces: Blob[] = [];
  let [pending, pendingBytes, bytes]: [BlobPart[], number, number] = [[], 0, 0];
  const keep = () => {
    pieces.push(new Blob(pending));
    [pending, pendingBytes] = [[], 0];
  };
  const reader = file.stream().pipeThrough(new DecompressionStream('gzip')).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.length;
      if (bytes > UNPACKED_BYTES_MAX) throw new Error('it unpacks to more than 8 GiB: unpack it, and pick the directory');
      pending.push(value as BlobPart);
      pendingBytes += value.length;
      if (pendingBytes >= PIECE_BYTES) keep();
    }
  } catch (error) {
    damage.push(`${name} is damaged after ${bytes} unpacked bytes: ${messageOf(error)}`);
    await reader.cancel().catch(() => {});
  }
  keep();
  return new Blob(pieces);
}

async function entries(name: string, archive: Blob, damage: string[]): Promise<Picked[]> {
  const files: Picked[] = [];
  let said: { path?: string; sizeBytes?: number } = {};
  for (let at = 0; at + RECORD_BYTES <= archive.size; ) {
    const header = new Uint8Array(await archive.slice(at, at + RECORD_BYTES).arrayBuffer());
    if (header.every((byte) => byte === 0)) return files;
    if (!isHeader(header)) {
      damage.push(`${name} is damaged at byte ${at}: what follows is not read`);
      return files;
    }
    const kind = String.fromCharCode(header[156]!);
    const isExtension = kind === 'x' || kind === 'g' || kind === 'L' || kind === 'K';
    const sizeBytes = isExtension ? numberAt(header, 124, 12) : (said.sizeBytes ?? numberAt(header, 124, 12));
    const start = at + RECORD_BYTES;
    const content = archive.slice(start, start + sizeBytes);
    if (content.size < sizeBytes) damage.push(`${name} ends within ${said.path ?? pathOf(header)}`);
    at = start + Math.ceil(sizeBytes / RECORD_BYTES) * RECORD_BYTES;
    if (isExtension) {
      if (sizeBytes > HEADERS_BYTES_MAX) {
        damage.push(`${name} has a header of ${sizeBytes} bytes: what follows is not read`);
        return files;
      }
      const bytes = new Uint8Array(await content.arrayBuffer());
      if (kind === 'x') said = { ...said, ...extended(bytes) };
      else if (kind === 'L') said = { ...said, path: textOf(bytes) };
      continue;
    }
    // Sparse files, links and devices are none of a data directory's.
    if (kind === '0' || kind === '\0' || kind === '7') files.push({ path: said.path ?? pathOf(header), file: content });
    said = {};
  }
  return files;
}

/** Records such as `30 path=some/where\n`, whose number counts all of their bytes. */
function extended(bytes: Uint8Array): { path?: string; sizeBytes?: number } {
  const said: { path?: string; sizeBytes?: number } = {};
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(textOf(bytes.subarray(at, Math.max(space, at))));
    if (space < 0 || !(length > 0)) break;
    const record = textOf(bytes.subarray(space + 1, at + length - 1));
    const equals = record.indexOf('=');
    const [key, value] = [record.slice(0, equals), record.slice(equals + 1)];
    if (key === 'path') said.path = value;
    if (key === 'size') said.sizeBytes = Number(value);
    at += length;
  }
  return said;
}

function pathOf(header: Uint8Array): string {
  const name = textOf(header.subarray(0, 100));
  const isUstar = textOf(header.subarray(257, 263)) === 'ustar';
  const prefix = isUstar ? textOf(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Whether a record's checksum is right: the sum of its bytes, with spaces in its own place. */
function isHeader(header: Uint8Array): boolean {
  if (header.length < RECORD_BYTES || header[0] === 0) return false;
  const sum = header.reduce((sum, byte, at) => sum + (at >= 148 && at < 156 ? 0x20 : byte), 0);
  return numberAt(header, 148, 8) === sum;
}

/** A number in octal digits, or, with the first bit set, in bytes. */
function numberAt(header: Uint8Array, at: number, length: number): number {
  const field = header.subarray(at, at + length);
  if ((field[0]! & 0x80) !== 0) return field.subarray(1).reduce((value, byte) => value * 256 + byte, field[0]! & 0x7f);
  return parseInt(textOf(field).trim(), 8);
}

function textOf(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
