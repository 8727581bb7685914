/** Shows a report: the query, what it was asked of, and its answer as a graph or a table. */

import { render } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { Connection } from '../../app/connection';
import { App, type AppContext } from '../../app/context';
import { printDuration } from '../../promql/duration';
import { formatTime, zoneName, type Zone } from '../../format/time';
import { Graph } from '../query/graph-view';
import { Answer } from '../query/table-view';
import { ApiError, type Source } from '../../source/source';
import { Facts } from '../../widgets/facts';
import type { Report } from './data';

/** A report is all that there is: nothing can be asked of it. */
class NoSource implements Source {
  readonly kind = 'report';

  constructor(readonly title: string) {}

  request(): Promise<never> {
    return Promise.reject(new ApiError('missing', 'a report answers no query'));
  }
}

/** Shows a report in an element. */
export function showReport(element: HTMLElement, report: Report): void {
  element.replaceChildren();
  render(report.version === 1 ? <ReportPage report={report} /> : <p class="notice bad">Another version of the page saved this report.</p>, element);
}

function ReportPage({ report }: { report: Report }) {
  const source = useMemo(() => new Connection(new NoSource(report.source)), [report]);
  const [zone, setZone] = useState<Zone>('local');
  const [panel, setPanel] = useState(report.panel);
  useEffect(() => source.start(), [source]);
  const app: AppContext = { source, zone, theme: 'auto', epoch: 0, setZone, setTheme: () => {} };
  const { grid } = report.result;
  const isGraph = panel.tab === 'graph';
  const time = (seconds: number): string => formatTime(seconds * 1000, zone);
  return (
    <App.Provider value={app}>
      <header class="top">
        <strong class="brand">
          tidepool <small>report</small>
        </strong>
        <div class="choices">
          <button type="button" class="quiet" onClick={() => setZone(zone === 'utc' ? 'local' : 'utc')} title="Times in UTC or in your zone">
            {zone === 'utc' ? 'UTC' : 'Local time'}
          </button>
        </div>
      </header>
      <main id="main">
        <h1 class="hidden">Report of a query</h1>
        <section class="card" aria-label="Query">
          <pre class="sample" tabIndex={0} role="region" aria-label="Expression">
            {panel.expr}
          </pre>
          <Facts
            rows={[
              ['Source', report.source],
              ['Time', isGraph ? `${time(grid.start)} to ${time(grid.end)}` : time(grid.end)],
              ['Step', isGraph && printDuration(grid.step * 1000)],
              ['Saved', formatTime(report.savedMs, zone)],
              ['Times in', zoneName(zone)],
            ]}
          />
        </section>
        <section class="card panel" aria-label="Result">
          {isGraph ? (
            <Graph panel={panel} result={report.result} onChange={({ hidden }) => setPanel({ ...panel, hidden })} />
          ) : (
            <Answer panel={panel} result={report.result} />
          )}
        </section>
      </main>
    </App.Provider>
  );
}
