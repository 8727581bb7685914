/** A button that saves what a panel shows as a report. */

import { useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { formatTime } from '../../format/time';
import type { Panel } from '../query/panels';
import type { Result } from '../query/run';
import { documentOf, partsOf } from './document';

export function SaveReport({ panel, result }: { panel: Panel; result: Result }) {
  const { source } = useApp();
  const [failure, setFailure] = useState<string>();
  if (source.kind === 'report') return null;
  const save = async (): Promise<void> => {
    try {
      const savedMs = Date.now();
      const text = documentOf({ version: 1, source: source.title, savedMs, panel, result }, await partsOf(document));
      offer(text, `tidepool-report-${formatTime(savedMs, 'utc').replace(/\D/g, '')}.html`);
      setFailure(undefined);
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <p class="row">
      <button type="button" class="quiet" title="One HTML file with the query and its answer, which any browser opens" onClick={() => void save()}>
        Save as a report
      </button>
      {failure !== undefined && (
        <span class="bad-text" role="alert">
          The report was not saved: {failure}.
        </span>
      )}
    </p>
  );
}

/** Time until the browser has taken a file, in milliseconds. */
const TAKEN_AFTER_MS = 60_000;

function offer(text: string, name: string): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'text/html' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), TAKEN_AFTER_MS);
}
