/** Blocks of two hours for the viewer: their lines of the text format, the same each time. */

const BLOCK_MS = 7_200_000;

/** What a directory has; each series has a sample in each step. */
export interface Shape {
  blocks: number;
  instances: number;
  /** Series of each instance. */
  ofEach: number;
  stepMs: number;
}

/** Samples in such a directory. */
export function samplesOf({ blocks, instances, ofEach, stepMs }: Shape): number {
  return blocks * instances * ofEach * (BLOCK_MS / stepMs);
}

/** The first of all times: a multiple of the span of a block. */
const BEGIN_MS = Date.UTC(2025, 0, 1);

/**
 * The series of one block, each with all of its lines. Every sixth is a counter; the others are
 * gauges whose values fill their 64 bits, so that the files are large.
 */
export function* blockLines({ instances, ofEach, stepMs }: Shape, block: number): Generator<string> {
  const begin = BEGIN_MS + block * BLOCK_MS;
  const times = Array.from({ length: BLOCK_MS / stepMs }, (_, step) => ` ${begin + step * stepMs}\n`);
  const random = randomOf(block + 1);
  for (let series = 0; series < instances * ofEach; series += 1) {
    const [n, instance] = [series % ofEach, Math.floor(series / ofEach)];
    const isCounter = n % 6 === 0;
    const head = `measured${isCounter ? '_total' : ''}{instance="host-${instance}",n="${n}"} `;
    let value = block * 1e6;
    let lines = '';
    for (const time of times) {
      value = isCounter ? value + Math.floor(random() * 1000) : (random() * 1000) / 7;
      lines += head + value + time;
    }
    yield lines;
  }
}

/** Numbers from 0 to 1, of a linear congruential generator. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
