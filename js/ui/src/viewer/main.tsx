/**
 * The viewer: the page over files that a person picks. Worker and engine stand in the document, as
 * base64 of what gzip made of them, so that it is one file that needs no server.
 */

import { render } from 'preact';
import type { ViewerSummary } from '../../../src/viewer/protocol';
import { mount } from '../app/mount';
import { EXPLORE, QUERY } from '../app/views';
import { reportOf } from '../pages/report/data';
import { showReport } from '../pages/report/show';
import { ViewerWorker, WorkerSource } from '../source/worker';
import type { Picked } from './picked';
import { Start, type Pick, type StartState } from './start';
import './viewer.css';

const SCRIPT = 'text/javascript';
/** A directory has no state of a node to show. */
const VIEWS = [QUERY, EXPLORE];

function main(start: HTMLElement, app: HTMLElement): void {
  let state: StartState = { isOpening: false, damage: [] };
  let worker: Promise<ViewerWorker> | undefined;
  const show = (changes: Partial<StartState>): void => {
    state = { ...state, ...changes };
    render(<Start state={state} onPick={pick} />, start);
  };
  const pick: Pick = (picked) => void open(picked);
  const open = async (picked: Picked[] | Promise<Picked[]>): Promise<void> => {
    if (state.isOpening) return;
    show({ isOpening: true, failure: undefined });
    // What was mounted shows the files that were open.
    render(null, app);
    let opened: ViewerSummary | undefined;
    let failure: string | undefined;
    try {
      worker ??= startWorker((damage) => show({ damage }));
      const running = await worker;
      opened = await running.open(await picked);
      mount(app, new WorkerSource(running, opened), VIEWS);
    } catch (error) {
      failure = error instanceof Error ? error.message : String(error);
    }
    show({ isOpening: false, opened, failure, damage: opened?.damage ?? [] });
  };
  show({});
}

async function startWorker(onDamage: (damage: readonly string[]) => void): Promise<ViewerWorker> {
  const script = await new Response(packed('worker').stream().pipeThrough(new DecompressionStream('gzip'))).blob();
  const url = URL.createObjectURL(new Blob([script], { type: SCRIPT }));
  const worker = new Worker(url);
  const modules = [...document.querySelectorAll<HTMLElement>('[data-module]')].map((element) => element.dataset['module']!);
  worker.postMessage({ modules: Object.fromEntries(modules.map((name) => [name, packed(name)])) });
  return new ViewerWorker(worker, onDamage);
}

/** A part of the document, packed as it is. */
function packed(id: string): Blob {
  const text = atob(document.getElementById(id)!.textContent.trim());
  return new Blob([Uint8Array.from(text, (c) => c.charCodeAt(0))]);
}

const [start, app] = [document.getElementById('start'), document.getElementById('app')];
const report = reportOf(document);
if (app !== null && report !== undefined) showReport(app, report);
else if (start !== null && app !== null) main(start, app);
