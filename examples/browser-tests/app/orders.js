// The shop's memory: every order is a sample in a store that the browser keeps.

import { openInWorker } from '@tidepool/engine/worker';

const LABELS = { __name__: 'order_items', shop: 'shells' };

/** Opens the store of orders. Rejects if another tab has it open. */
export async function openOrders() {
  const store = await openInWorker({ name: 'orders' });
  const series = await store.seriesRef(LABELS);
  return {
    async add(items) {
      const { refusals } = await store.append({ series, timestampsMs: [Date.now()], values: [items] });
      if (refusals.length > 0) throw new Error(refusals[0].detail);
    },
    async total() {
      let items = 0;
      const matchers = [{ name: '__name__', op: '=', value: LABELS.__name__ }];
      for await (const { values } of store.select({ matchers })) {
        for (const value of values) items += value;
      }
      return items;
    },
  };
}
