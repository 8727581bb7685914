/** Whether alerts are firing: beside the state of the node, which is another matter. */

import { useApp } from '../../app/context';
import { useAnswer, useLoad } from '../../app/load';
import { hashOf } from '../../app/route';
import { alertsState, alertsVerdict, type AlertsState } from '../../figures/alerts';
import { deliveryOf, withDelivery } from '../../figures/receivers';
import type { Alerts, Receivers, Rules } from '../../source/answers';
import { isMissing, type Source } from '../../source/source';

const EVERY_MS = 15_000;
const WITHOUT_ALERTS = new URLSearchParams({ exclude_alerts: 'true' });
const NO_PARAMS = new URLSearchParams();

/** @param clockAheadSeconds what the node's clock is ahead of the browser's */
export function AlertsVerdict({ isOld, clockAheadSeconds }: { isOld: boolean; clockAheadSeconds: number | undefined }) {
  const { source } = useApp();
  const loaded = useLoad('alerts', (signal) => loadAlerts(source, (clockAheadSeconds ?? 0) * 1000, signal), { everyMs: EVERY_MS });
  const receivers = useAnswer('api/v1/alerts/receivers', NO_PARAMS, { everyMs: EVERY_MS });
  const { value, error } = loaded;
  // A build without rules.
  if (isMissing(error)) return null;
  // Nothing holds a place for it, because most nodes have no rules.
  if (!isOld && ((value === undefined && error === undefined) || (receivers.value === undefined && receivers.error === undefined))) return null;
  const all = receivers.error === undefined ? (receivers.value?.data as Receivers | undefined)?.receivers : undefined;
  // A node that does not answer is said once; an older one tells of no receivers.
  const delivery = isOld || isMissing(receivers.error) ? undefined : deliveryOf(all, Date.now() + (clockAheadSeconds ?? 0) * 1000);
  const hasNoRules = error === undefined && value !== undefined && value.alerting + value.recording === 0;
  if (hasNoRules && delivery === undefined) return null;
  const { level, text } = withDelivery(alertsVerdict(error === undefined && !isOld ? value : undefined), delivery);
  return (
    <section class={`verdict ${level}`} aria-label="Alerts">
      <h2>
        <i class={`dot ${level}`} aria-hidden="true" />
        {text} <a href={hashOf(['alerts'])}>Alerts</a>
        {delivery !== undefined && <a href={hashOf(['alerts', 'receivers'])}>Receivers</a>}
      </h2>
      {error !== undefined && <p class="muted">{error.message}</p>}
      {delivery !== undefined && receivers.error !== undefined && <p class="muted">{receivers.error.message}</p>}
    </section>
  );
}

/** The counts, without the alerts of each rule: one list has those that are active. */
async function loadAlerts(source: Source, aheadMs: number, signal: AbortSignal): Promise<AlertsState> {
  const rules = await source.request('api/v1/rules', WITHOUT_ALERTS, signal);
  const { groups } = rules.data as Rules;
  // A node without rules has no alerts.
  const alerts = groups.length === 0 ? undefined : await source.request('api/v1/alerts', NO_PARAMS, signal);
  const isDoubted = rules.isClockDoubted === true || alerts?.isClockDoubted === true;
  return alertsState(groups, (alerts?.data as Alerts | undefined)?.alerts ?? [], Date.now() + aheadMs, isDoubted);
}
