/** The viewer's worker: one directory, whose requests are answered one after the other. */

import type { Build } from '../component.js';
import type { Unzstd } from '../files/reader.js';
import { build, type ExportsWithQueries } from '../promql/build.js';
import { answer, failureOf } from './api.js';
import type { FromViewer, ToViewer } from './protocol.js';
import { Viewer } from './viewer.js';
import { fileReaderSync } from './windows.js';

/** A worker's own end of the port to its page. */
export interface Port {
  postMessage(message: FromViewer): void;
  addEventListener(type: 'message', listener: (event: MessageEvent<ToViewer>) => void): void;
}

/** Serves a page on a port. `unzstd` unpacks logs: no browser does that by itself. */
export function serveViewer(port: Port, unzstd: Unzstd): void {
  const read = fileReaderSync();
  let modules: Readonly<Record<string, Blob>> = {};
  let viewer: Viewer | undefined;
  let endMs = 0;
  let damage = '';
  const running = new Map<number, AbortController>();
  let turn: Promise<unknown> = Promise.resolve();

  const open = async (picked: Parameters<typeof Viewer.open>[0]) => {
    await viewer?.close();
    viewer = undefined;
    try {
      viewer = await Viewer.open(picked, { build: unpacking(modules), read, unzstd });
      const summary = await viewer.summary();
      endMs = summary.endMs ?? Date.now();
      damage = summary.damage.join('\n');
      port.postMessage({ opened: summary });
    } catch (error) {
      port.postMessage({ failed: error instanceof Error ? error.message : String(error) });
    }
  };
  const request = async (id: number, path: string, params: string, signal: AbortSignal) => {
    try {
      if (viewer === undefined) throw new Error('nothing is open');
      port.postMessage({ id, answer: await answer(viewer, path, new URLSearchParams(params), endMs, signal) });
    } catch (error) {
      port.postMessage({ id, failure: failureOf(error) });
    } finally {
      running.delete(id);
      const found = viewer?.damage ?? [];
      if (found.join('\n') !== damage) port.postMessage({ damage: found });
      damage = found.join('\n');
    }
  };
  port.addEventListener('message', ({ data }) => {
    if ('modules' in data) {
      modules = data.modules;
    } else if ('open' in data) {
      turn = turn.then(() => open(data.open));
    } else if ('cancel' in data) {
      running.get(data.cancel)?.abort();
    } else {
      const controller = new AbortController();
      running.set(data.id, controller);
      turn = turn.then(() => request(data.id, data.path, data.params, controller.signal));
    }
  });
}

const compiled = new Map<string, Promise<WebAssembly.Module>>();

/** The component with PromQL, of modules that are packed. */
function unpacking(modules: Readonly<Record<string, Blob>>): Build<ExportsWithQueries> {
  const compile = async (name: string) => {
    const packed = modules[name];
    if (packed === undefined) throw new Error(`the page lacks ${name}`);
    const bytes = packed.stream().pipeThrough(new DecompressionStream('gzip'));
    return WebAssembly.compile(await new Response(bytes).arrayBuffer());
  };
  return {
    ...build,
    compile: (name) => {
      const known = compiled.get(name) ?? compile(name);
      compiled.set(name, known);
      return known;
    },
  };
}
