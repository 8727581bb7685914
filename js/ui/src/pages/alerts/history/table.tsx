/** Events of alerts as a table. */

import { useApp } from '../../../app/context';
import { timeOf } from '../../../figures/alerts';
import { causeText, eventLevel, eventText } from '../../../figures/history';
import { formatNumber } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { AlertEvent } from '../../../source/answers';
import { numberOf } from '../../../source/exposition';
import { LabelBoxes } from '../../../widgets/series';

export function EventTable({ events }: { events: readonly AlertEvent[] }) {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Events, the newest first">
      <table class="fired">
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Change</th>
            <th scope="col">Alert</th>
            <th scope="col" class="number">
              Value
            </th>
          </tr>
        </thead>
        <tbody>
          {events.map((event) => (
            <EventRow key={event.number} event={event} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function EventRow({ event }: { event: AlertEvent }) {
  const { zone } = useApp();
  const { alertname = '', ...labels } = event.labels;
  const ms = timeOf(event.time);
  const level = eventLevel(event);
  const cause = causeText(event);
  return (
    <tr>
      <td class="time">{ms === undefined ? 'unknown' : formatTime(ms, zone)}</td>
      <td>
        <span class={level === 'unknown' ? undefined : `${level}-text`}>{eventText(event)}</span>
        {cause !== '' && <p class="muted">{cause}</p>}
      </td>
      <td class="label">
        <b>{alertname}</b> <LabelBoxes labels={labels} />
      </td>
      <td class="number">{event.value === undefined || event.value === '' ? '–' : formatNumber(numberOf(event.value), 'none', 4)}</td>
    </tr>
  );
}
