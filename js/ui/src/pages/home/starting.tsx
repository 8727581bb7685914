/** A node that reads its log at the start. */

import { useAnswer } from '../../app/load';

const NO_PARAMS = new URLSearchParams();
const EVERY_MS = 1000;

interface Replay {
  min: number;
  max: number;
  current: number;
  state: string;
}

/** How far the replay is, while that matters. */
export function useReplay(isStarting: boolean): Replay | undefined {
  return useAnswer('api/v1/status/walreplay', isStarting ? NO_PARAMS : undefined, { everyMs: EVERY_MS }).value?.data as Replay | undefined;
}

export function Starting({ replay }: { replay: Replay | undefined }) {
  const isRunning = replay?.state === 'in progress';
  return (
    <section class="verdict warn" aria-label="State of the node">
      <h1>
        <i class="dot warn" aria-hidden="true" />
        The node starts
      </h1>
      <p role="status">
        It reads its log{isRunning && `: segment ${replay.current} of ${replay.min} to ${replay.max}`}. Until then it takes no writes and answers no
        queries.
      </p>
    </section>
  );
}
