/** The decoder of XOR chunks: worked bytes, the engine's own chunks, and damage. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ChunkError, decodeChunk } from '../../src/index.js';
import { bits, NOW_MS, openMemory, seeded } from './support.js';

/** A chunk from its bits, written as text with any spaces. */
function chunk(text: string): Uint8Array {
  const digits = text.replaceAll(/\s/g, '');
  const padded = digits.padEnd(Math.ceil(digits.length / 8) * 8, '0');
  return Uint8Array.from(padded.match(/.{8}/g) ?? [], (byte) => parseInt(byte, 2));
}

const COUNT_4 = '00000000 00000100';
/** Time -1 as a zigzag varint, value 1, then a step of 5. */
const START = `00000001 ${'0011111111110000'.padEnd(64, '0')} 00000101`;

test('worked bytes decode', () => {
  // 1 XOR 1.5 is the single bit 51: 12 leading zeros, one bit.
  const data = chunk(`${COUNT_4} ${START} 11 01100 000001 1
    0 0
    10 10000000000000 10 1`);
  const { timestampsMs, values } = decodeChunk(data);
  assert.deepEqual([...timestampsMs], [-1, 4, 9, 9 + 5 + 8192]);
  assert.deepEqual([...values], [1, 1.5, 1.5, 1]);
});

test('every width of step decodes', () => {
  const data = chunk(`${COUNT_4} ${START} 0
    1110 ${'1'.padEnd(20, '0')} 0
    1111 ${'1'.repeat(63)}0 0`);
  const { timestampsMs } = decodeChunk(data);
  const step = 5 + 524288;
  assert.deepEqual([...timestampsMs], [-1, 4, 4 + step, 4 + step + (step - 2)]);
});

test('an empty chunk holds nothing', () => {
  assert.deepEqual(decodeChunk(Uint8Array.of(0, 0)).values.length, 0);
});

test('times that a number cannot hold are refused', () => {
  const data = chunk(`${COUNT_4} ${START} 0 1111 01${'0'.repeat(62)} 0`);
  assert.throws(() => decodeChunk(data), /2\^53/);
});

test("the engine's chunks decode, whatever the bits", async () => {
  const random = seeded(2);
  const word = () => BigInt(Math.floor(random() * 0x1_0000_0000));
  // The rounds lie far apart in time, and none may be too old.
  const store = await openMemory({ blockDurationMs: 1e12 });
  for (let round = 0; round < 50; round += 1) {
    const series = store.seriesRef({ __name__: 'm', round: String(round).padStart(2, '0') });
    const values = new Float64Array(100);
    const words = new BigUint64Array(values.buffer);
    const timestampsMs = new Float64Array(100);
    let timeMs = NOW_MS;
    const spread = 2 ** (round % 22);
    for (let i = 0; i < 100; i += 1) {
      timeMs += 1 + Math.floor(random() * spread);
      timestampsMs[i] = timeMs;
      // Random bits under a random mask give windows of every width.
      const shift = BigInt(Math.floor(random() * 64));
      const some = (((word() << 32n) | word()) >> shift) << (shift / 2n);
      words[i] = random() < 0.2 ? (words[i - 1] ?? 0n) : some;
    }
    const outcome = store.append({ series, timestampsMs, values }, timeMs);
    assert.equal(outcome.refused, 0);
    const matchers = [{ name: 'round', op: '=', value: String(round).padStart(2, '0') }] as const;
    const [answer] = [...store.select({ matchers })];
    assert.deepEqual(answer?.timestampsMs, timestampsMs);
    assert.deepEqual(bits(answer.values), bits(values));
  }
  await store.close();
});

test('damage and truncation give an error or other samples, never anything else', async () => {
  const random = seeded(3);
  const store = await openMemory();
  const series = store.seriesRef({ __name__: 'm' });
  const timestampsMs = Array.from(
    { length: 100 },
    (_, i) => NOW_MS + 1000 * i + Math.floor(random() * 50),
  );
  store.append(
    { series, timestampsMs, values: timestampsMs.map(() => random()) },
    NOW_MS + 200_000,
  );
  const [answer] = [...store.selectChunks()];
  const data = answer!.chunks[0]!.data;
  await store.close();

  const decodes = (bytes: Uint8Array) => {
    try {
      return decodeChunk(bytes).values.length;
    } catch (error) {
      assert.ok(error instanceof ChunkError, String(error));
      return undefined;
    }
  };
  assert.equal(decodes(data), 100);
  for (let length = 0; length < data.length; length += 1) {
    assert.equal(decodes(data.subarray(0, length)), undefined, `cut to ${length} bytes`);
  }
  for (let i = 0; i < 20_000; i += 1) {
    const damaged = data.slice();
    for (let flips = 0; flips < 1 + random() * 4; flips += 1) {
      const at = Math.floor(random() * data.length);
      damaged[at]! ^= 1 << Math.floor(random() * 8);
    }
    decodes(damaged);
  }
});
