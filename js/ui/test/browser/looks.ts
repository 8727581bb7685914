/**
 * How a page looks, in few letters: a grid of cells, each with its brightness and how much is drawn
 * in it. The tests compare it with what is kept in `test/looks`; `LOOKS=keep` writes it there.
 *
 * Cells are compared with those around them, and single ones may differ: other numbers, times and
 * edges of letters are no difference. A chart that is missing, parts that lie over others and a
 * page without its style sheet are.
 */

import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

/** Pixels of a cell's side. */
const CELL_PX = 40;
/** Only the upper part of a page counts: below, what differs in height adds up. */
const HEIGHT_MAX_PX = 1600;

/** What is drawn in a cell: percent of pixels that differ from the ones beside them. */
const INK_STEPS = [0.3, 4, 12];
/** Changes of brightness, of 255, that are not seen as an edge. */
const EDGE_MIN = 16;

/** Differences that count for nothing: steps of brightness, of 16, and of ink, of 4. */
const BRIGHTNESS_SLACK = 1;
const INK_SLACK = 1;
/** Cells beside each other that may differ, and the share of all that may. */
const CLUSTER_MAX = 20;
const SHARE_MAX = 0.08;

/** Longest time until a page looks as it should, in milliseconds: charts are drawn one by one. */
const SETTLED_WITHIN_MS = 20_000;
const LOOK_AGAIN_AFTER_MS = 500;

const kept = fileURLToPath(new URL('../../../test/looks/', import.meta.url));
const isKeeping = process.env['LOOKS'] === 'keep';

/** Rows of cells, two letters each: brightness from 0 to f, and ink from 0 to 3. */
export type Look = readonly string[];

/** The page looks as it is kept under a name. */
export async function assertLooks(page: Page, name: string): Promise<void> {
  const file = join(kept, `${name}.txt`);
  if (isKeeping) {
    mkdirSync(kept, { recursive: true });
    writeFileSync(file, `${(await lookOf(page)).join('\n')}\n`);
  }
  const differences = existsSync(file) ? await lastingDifferences(page, keptLook(name)) : ['nothing is kept of it'];
  assert.deepEqual(differences, [], `${name} looks otherwise: see build/screens/${name}.png; if it is right, run the tests with LOOKS=keep`);
}

/** What differs and does not go away. */
export async function lastingDifferences(page: Page, known: Look): Promise<string[]> {
  const end = Date.now() + SETTLED_WITHIN_MS;
  for (;;) {
    const differences = differencesOf(await lookOf(page), known);
    if (differences.length === 0 || Date.now() > end) return differences;
    await page.waitForTimeout(LOOK_AGAIN_AFTER_MS);
  }
}

/** What is kept under a name. */
export function keptLook(name: string): Look {
  return readFileSync(join(kept, `${name}.txt`), 'utf8').trimEnd().split('\n');
}

/** How the page looks. */
export async function lookOf(page: Page): Promise<Look> {
  const shot = await page.screenshot({ fullPage: true });
  // A page of its own: the policy of the other one forbids this.
  const desk = await page.context().newPage();
  try {
    return await desk.evaluate(
      async ({ url, cell, heightMax, inkSteps, edgeMin }) => {
        const picture = await createImageBitmap(await (await fetch(url)).blob());
        const [columns, rows] = [Math.ceil(picture.width / cell), Math.ceil(Math.min(picture.height, heightMax) / cell)];
        const context = new OffscreenCanvas(picture.width, picture.height).getContext('2d')!;
        context.drawImage(picture, 0, 0);
        const { data, width } = context.getImageData(0, 0, picture.width, Math.min(picture.height, heightMax));
        const brightness = (x: number, y: number): number => {
          const at = (y * width + x) * 4;
          return (data[at]! * 2 + data[at + 1]! * 5 + data[at + 2]!) / 8;
        };
        const lettersOf = (left: number, top: number): string => {
          const [right, bottom] = [Math.min(left + cell, width), Math.min(top + cell, data.length / 4 / width)];
          let [sum, edges] = [0, 0];
          for (let y = top; y < bottom; y += 1) {
            for (let x = left; x < right; x += 1) {
              const here = brightness(x, y);
              sum += here;
              const isEdge = (x > left && Math.abs(here - brightness(x - 1, y)) > edgeMin) || (y > top && Math.abs(here - brightness(x, y - 1)) > edgeMin);
              if (isEdge) edges += 1;
            }
          }
          const pixels = (right - left) * (bottom - top);
          const ink = inkSteps.filter((step) => (edges / pixels) * 100 >= step).length;
          return `${Math.floor(sum / pixels / 16).toString(16)}${ink}`;
        };
        return Array.from({ length: rows }, (_, row) => Array.from({ length: columns }, (_, column) => lettersOf(column * cell, row * cell)).join(''));
      },
      { url: `data:image/png;base64,${shot.toString('base64')}`, cell: CELL_PX, heightMax: HEIGHT_MAX_PX, inkSteps: INK_STEPS, edgeMin: EDGE_MIN },
    );
  } finally {
    await desk.close();
  }
}

/** What is seen to differ, in words. */
export function differencesOf(look: Look, known: Look): string[] {
  const [cells, knownCells] = [cellsOf(look), cellsOf(known)];
  const differ = cellsOf(known).map((row) => row.map(() => false));
  for (const [y, row] of knownCells.entries()) {
    for (const [x, cell] of row.entries()) {
      const other = cells[y]?.[x];
      differ[y]![x] = other === undefined || !(isNear(cell, cells, x, y) && isNear(other, knownCells, x, y));
    }
  }
  const differences: string[] = [];
  if (Math.abs(look.length - known.length) > 2) differences.push(`it is ${look.length} rows high, not ${known.length}`);
  const clusters = clustersOf(differ);
  for (const cluster of clusters.filter((cells) => cells.length > CLUSTER_MAX)) {
    const [x, y] = [0, 1].map((i) => cluster.map((place) => place[i]! * CELL_PX).sort((a, b) => a - b));
    const span = (all: number[] | undefined): string => `${all![0]} to ${all!.at(-1)! + CELL_PX}`;
    differences.push(`${cluster.length} cells differ from x ${span(x)}, y ${span(y)}`);
  }
  const [count, all] = [clusters.flat().length, knownCells.flat().length];
  if (count > all * SHARE_MAX) differences.push(`${count} of ${all} cells differ`);
  return differences;
}

type Cell = readonly [brightness: number, ink: number];
type Place = readonly [x: number, y: number];

function cellsOf(look: Look): Cell[][] {
  return look.map((row) => (row.match(/../g) ?? []).map((cell) => [parseInt(cell[0]!, 16), Number(cell[1])]));
}

const AROUND = [-1, 0, 1].flatMap((dy) => [-1, 0, 1].map((dx): Place => [dx, dy]));

/** Whether such a cell is at a place or beside it. */
function isNear([brightness, ink]: Cell, cells: readonly Cell[][], x: number, y: number): boolean {
  return AROUND.some(([dx, dy]) => {
    const other = cells[y + dy]?.[x + dx];
    return other !== undefined && Math.abs(other[0] - brightness) <= BRIGHTNESS_SLACK && isSameInk(other[1], ink);
  });
}

/** Whether nothing is drawn in both, or about the same in both. */
function isSameInk(a: number, b: number): boolean {
  return a === b || (a > 0 && b > 0 && Math.abs(a - b) <= INK_SLACK);
}

/** Places that are marked and beside each other. */
function clustersOf(marks: boolean[][]): Place[][] {
  const clusters: Place[][] = [];
  for (const [y, row] of marks.entries()) {
    for (const [x, mark] of row.entries()) {
      if (!mark) continue;
      marks[y]![x] = false;
      const cluster: Place[] = [[x, y]];
      for (const [fromX, fromY] of cluster) {
        for (const [dx, dy] of AROUND) {
          const [nextX, nextY] = [fromX + dx, fromY + dy];
          if (marks[nextY]?.[nextX] !== true) continue;
          marks[nextY]![nextX] = false;
          cluster.push([nextX, nextY]);
        }
      }
      clusters.push(cluster);
    }
  }
  return clusters;
}
