/** A series by its labels, as text only: values come from anywhere. */

import type { Labels } from '../source/answers';
import { labelName, quoted } from '../promql/selector';

const PLAIN = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;

/** Name and labels, coloured. */
export function SeriesName({ labels }: { labels: Labels }) {
  const { __name__: name, ...rest } = labels;
  const entries = Object.entries(rest);
  const isPlain = name !== undefined && PLAIN.test(name);
  const hasBraces = entries.length > 0 || !isPlain;
  return (
    <span class="series">
      {isPlain && <span class="t-metric">{name}</span>}
      {hasBraces && '{'}
      {name !== undefined && !isPlain && <span class="t-string">{quoted(name)}{entries.length > 0 && ', '}</span>}
      {entries.map(([label, value], i) => (
        <>
          {i > 0 && ', '}
          <span class="t-label">{labelName(label)}</span>=<span class="t-string">{quoted(value)}</span>
        </>
      ))}
      {hasBraces && '}'}
    </span>
  );
}

/** Labels as a row of small boxes. */
export function LabelBoxes({ labels }: { labels: Labels }) {
  return (
    <span class="boxes">
      {Object.entries(labels).map(([name, value]) => (
        <span class="box">
          <span class="t-label">{name}</span>=<span class="t-string">{quoted(value)}</span>
        </span>
      ))}
    </span>
  );
}
