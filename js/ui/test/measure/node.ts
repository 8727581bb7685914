/** How long a person waits for the first chart of a node. */

import { machineLines } from '../browser/data';
import { Program } from '../browser/program';
import { firstMs, median, TabMemory } from './tab';

const RUNS = 5;

/** Home of a node with an hour of a machine. */
export async function measureNode(): Promise<void> {
  const program = await new Program(['--no-host-metrics', '--no-own-metrics', '--host-metrics-instance=edge-7']).start();
  try {
    await program.import(machineLines(Date.now()));
    const times: number[] = [];
    let memoryMiB = 0;
    for (let run = 0; run < RUNS; run += 1) {
      const { page, ms } = await firstMs(program.url, '.u-wrap canvas');
      times.push(ms);
      await page.waitForLoadState('networkidle');
      const memory = await TabMemory.of(page);
      memoryMiB = memory.nowMiB();
      memory.stop();
      await page.context().close();
    }
    console.log(`home: first chart after ${median(times).toFixed(0)} ms (median of ${RUNS}); ${memoryMiB.toFixed(0)} MiB in the tab`);
  } finally {
    await program.remove();
  }
}
