/** What the node's clock is ahead of the browser's. */

import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import type { RuntimeInfo } from '../../source/answers';

const EVERY_MS = 300_000;

/** The node's process, and its clock. */
export interface NodeInfo {
  runtime: RuntimeInfo;
  /** Seconds, give or take half of the time that the answer took. */
  clockAheadSeconds: number | undefined;
}

/** Asked for each five minutes. */
export function useNodeInfo() {
  const { source } = useApp();
  return useLoad(
    'runtime',
    async (signal): Promise<NodeInfo> => {
      const begunMs = Date.now();
      const runtime = (await source.request('api/v1/status/runtimeinfo', new URLSearchParams(), signal)).data as RuntimeInfo;
      const middleMs = (begunMs + Date.now()) / 2;
      const nodeMs = Date.parse(runtime.serverTime);
      return { runtime, clockAheadSeconds: Number.isNaN(nodeMs) ? undefined : (nodeMs - middleMs) / 1000 };
    },
    { everyMs: EVERY_MS },
  );
}
