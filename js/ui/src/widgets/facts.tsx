/** Names and values in two columns. */

import type { ComponentChildren } from 'preact';

/** Rows without a value are left out. */
export function Facts({ rows }: { rows: readonly (readonly [string, ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows.map(
        ([name, value]) =>
          value !== undefined &&
          value !== false && (
            <div>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
