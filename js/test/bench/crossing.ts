/** Ways to hand series from a worker to a page, for `browser.ts`: runs in the page. */

/** What the worker runs; it stands alone. */
function worker(): void {
  addEventListener('message', ({ data: [how, series, samples] }) => {
    const all = Array.from({ length: series as number }, (_, s) => ({
      labels: { __name__: 'http_requests_total', job: 'api', path: `/${s}`, code: '200' },
      timestampsMs: new Float64Array(samples).fill(s),
      values: new Float64Array(samples).fill(s),
    }));
    const post = postMessage as (message: unknown, transfer: Transferable[]) => void;
    if (how === 'plain arrays') {
      const plain = ({ labels, timestampsMs, values }: (typeof all)[0]) => {
        return { labels, timestampsMs: [...timestampsMs], values: [...values] };
      };
      post(all.map(plain), []);
    } else if (how === 'typed arrays, copied') {
      post(all, []);
    } else if (how === 'typed arrays, handed over one by one') {
      post(all, all.flatMap((one) => [one.timestampsMs.buffer, one.values.buffer]));
    } else {
      const timestampsMs = new Float64Array(series * samples);
      const values = new Float64Array(series * samples);
      all.forEach((one, s) => {
        timestampsMs.set(one.timestampsMs, s * samples);
        values.set(one.values, s * samples);
      });
      const labels = all.map((one) => one.labels);
      post({ labels, timestampsMs, values }, [timestampsMs.buffer, values.buffer]);
    }
  });
}

export const WAYS = [
  'plain arrays',
  'typed arrays, copied',
  'typed arrays, handed over one by one',
  'columns of all series, handed over',
] as const;

/** Milliseconds that each way takes for so many series of so many samples; the least of some. */
export async function measure(series: number, samples: number): Promise<number[]> {
  const source = new Blob([`(${worker})()`], { type: 'text/javascript' });
  const other = new Worker(URL.createObjectURL(source));
  const times: number[] = [];
  for (const way of WAYS) {
    let least = Infinity;
    for (let run = 0; run < 7; run += 1) {
      const begun = performance.now();
      other.postMessage([way, series, samples]);
      const data = await new Promise<unknown>((resolve) => {
        other.addEventListener('message', (event) => resolve(event.data), { once: true });
      });
      // A page looks at every sample.
      let sum = 0;
      for (const one of Array.isArray(data) ? data : [data]) {
        for (const value of (one as { values: Float64Array }).values) sum += value;
      }
      if (sum < 0) throw new Error('cannot be');
      least = Math.min(least, performance.now() - begun);
    }
    times.push(least);
  }
  other.terminate();
  return times;
}
