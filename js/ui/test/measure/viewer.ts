/** How long a person waits for the viewer's first answer. */

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open } from '../browser/browser';
import { executable } from '../browser/program';
import { blockLines, samplesOf, type Shape } from './samples';
import { cpuSeconds, droppedMs, median, TabMemory } from './tab';

const SMALL: Shape = { blocks: 5, instances: 10, ofEach: 100, stepMs: 18_000 };
const LARGE: Shape = { blocks: 100, instances: 60, ofEach: 100, stepMs: 15_000 };

interface Question {
  name: string;
  expression: string;
  tab: 'table' | 'graph';
  /** The value in the table. */
  value?: number;
  runs: number;
}

/** Two million samples; the directory is made and removed. */
export async function measureSmall(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'tidepool-measure-'));
  try {
    await make(SMALL, dir);
    await measure(SMALL, dir, [everything(SMALL, 5)]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A directory of some GB, which is made where it is missing, and stays. */
export async function measureLarge(dir: string): Promise<void> {
  await make(LARGE, dir);
  const steps = samplesOf({ ...LARGE, instances: 1, ofEach: 1 });
  await measure(LARGE, dir, [
    { name: 'one series, newest value', expression: 'count(measured{instance="host-3",n="7"})', tab: 'table', value: 1, runs: 5 },
    { name: 'one series of all blocks', expression: 'sum(count_over_time(measured{instance="host-3",n="7"}[9d]))', tab: 'table', value: steps, runs: 5 },
    { name: 'a graph of 60 series of a day', expression: 'rate(measured_total{n="6"}[5m])', tab: 'graph', runs: 5 },
    everything(LARGE, 3),
  ]);
}

function everything(shape: Shape, runs: number): Question {
  return { name: 'all samples', expression: 'sum(count_over_time(measured[9d])) + sum(count_over_time(measured_total[9d]))', tab: 'table', value: samplesOf(shape), runs };
}

/** Makes the blocks that a directory lacks, one at a time. */
async function make(shape: Shape, dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  for (let block = blocksIn(dir).length; block < shape.blocks; block += 1) {
    const child = spawn(executable, ['tsdb', 'import', '--quiet', '--format=prometheus', '-', dir], { stdio: ['pipe', 'inherit', 'inherit'] });
    const ended = once(child, 'exit');
    for (const lines of blockLines(shape, block)) if (!child.stdin.write(lines)) await Promise.race([once(child.stdin, 'drain'), ended]);
    child.stdin.end();
    const [code] = await ended;
    if (code !== 0) throw new Error(`block ${block} could not be made`);
  }
}

const blocksIn = (dir: string): string[] => readdirSync(dir).filter((name) => /^[0-9A-Z]{26}$/.test(name));

function bytesIn(dir: string): number {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return files.reduce((sum, { parentPath, name }) => sum + statSync(join(parentPath, name)).size, 0);
}

async function measure(shape: Shape, dir: string, questions: readonly Question[]): Promise<void> {
  const work = mkdtempSync(join(tmpdir(), 'tidepool-measure-'));
  try {
    const viewer = join(work, 'viewer.html');
    writeFileSync(viewer, execFileSync(executable, ['viewer'], { maxBuffer: 16 * 1024 * 1024 }));
    console.log(`viewer: ${samplesOf(shape)} samples in ${blocksIn(dir).length} blocks of ${(bytesIn(dir) / 1e6).toFixed(0)} MB`);
    for (const { name, expression, tab, value, runs } of questions) {
      const params = new URLSearchParams({ 'g0.expr': expression, 'g0.tab': tab, 'g0.range_input': '1d' });
      const [times, cpu, now, peaks]: [number[], number[], number[], number[]] = [[], [], [], []];
      for (let run = 0; run < runs; run += 1) {
        const { page } = await open(`file://${viewer}?${params}`);
        const memory = await TabMemory.of(page);
        const begun = await cpuSeconds(page);
        times.push(await droppedMs(page, dir, tab === 'table' ? 'main td.number' : '.u-wrap canvas'));
        cpu.push((await cpuSeconds(page)) - begun);
        now.push(memory.nowMiB());
        memory.stop();
        peaks.push(memory.peakMiB);
        const shown = tab === 'table' ? await page.locator('main td.number').first().textContent() : undefined;
        if (value !== undefined && shown !== `${value}`) throw new Error(`${expression}: ${shown}, not ${value}`);
        await page.context().close();
      }
      const memory = `${median(now).toFixed(0)} MiB in the tab, at most ${Math.max(...peaks).toFixed(0)}`;
      const time = `first answer ${median(times).toFixed(0)} ms after the drop (median of ${runs}), ${median(cpu).toFixed(1)} s of CPU`;
      console.log(`  ${name}: ${time}; ${memory}`);
    }
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}
