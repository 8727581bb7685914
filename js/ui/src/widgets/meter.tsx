/** How much is used of how much. */

import { formatNumber, type Unit } from '../format/number';
import { shareOf, type Use } from '../figures/limits';

/** Shares from which on a bar is coloured. */
const WARN = 0.8;
const BAD = 0.95;

/** @param by what sets the limit */
export function Meter({ label, use, unit, by }: { label: string; use: Use; unit: Unit; by: string }) {
  const share = shareOf(use);
  const level = share === undefined || share < WARN ? 'good' : share < BAD ? 'warn' : 'bad';
  return (
    <div class="meter">
      <div class="meter-text">
        <span>{label}</span>
        <span>
          <b>{formatNumber(use.used, unit)}</b>
          <span class="muted" title={by}>
            {' '}
            {use.limit === undefined ? 'without a limit' : `of ${formatNumber(use.limit, unit)}`}
          </span>
        </span>
      </div>
      {share !== undefined && (
        <div class="meter-bar" role="img" aria-label={`${formatNumber(share, 'ratio', 2)} used`}>
          <i class={level} style={{ width: `${Math.min(100, share * 100)}%` }} />
        </div>
      )}
    </div>
  );
}
