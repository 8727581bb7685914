/** Asks what rules would have fired, once for each time that this is wanted. */

import { useEffect, useRef, useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import type { BacktestData } from '../../../source/answers';
import type { TimeRange } from '../../../widgets/range';

const PATH = 'api/v1/alerts/backtest';

/** What is asked for: the range as it was chosen, and in seconds since the epoch. */
export interface Asked {
  rules: string;
  range: TimeRange;
  start: number;
  end: number;
}

/** The answer, with what it was asked for. */
export interface Answered {
  asked: Asked;
  data: BacktestData;
  warnings: string[];
  infos: string[];
  tookMs: number;
}

export interface RunState {
  /** Since when it runs. */
  runningSinceMs?: number;
  /** The newest answer, until one after it fails. */
  answered?: Answered | undefined;
  error?: Error;
  isCancelled?: boolean;
}

export interface Backtesting extends RunState {
  /** Ends what runs, and begins. */
  run(asked: Asked): void;
  cancel(): void;
}

/** A run ends with the component. It is not repeated when the source comes back. */
export function useBacktest(): Backtesting {
  const { source } = useApp();
  const [state, setState] = useState<RunState>({});
  const running = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  const run = (asked: Asked): void => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const sinceMs = Date.now();
    setState(({ answered }) => ({ answered, runningSinceMs: sinceMs }));
    const params = new URLSearchParams({ rules: asked.rules, start: `${asked.start}`, end: `${asked.end}` });
    source.request(PATH, params, signal).then(
      ({ data, warnings, infos }) => {
        if (!signal.aborted) setState({ answered: { asked, data: data as BacktestData, warnings, infos, tookMs: Date.now() - sinceMs } });
      },
      (error: unknown) => {
        if (!signal.aborted) setState({ error: error instanceof Error ? error : new Error(String(error)) });
      },
    );
  };
  const cancel = (): void => {
    running.current?.abort();
    setState(({ answered }) => ({ answered, isCancelled: true }));
  };
  return { ...state, run, cancel };
}
