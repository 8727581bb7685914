/** The expressions that were run, to be run again. */

import { useState } from 'preact/hooks';
import { Highlight } from '../../editor/highlight';
import { isFound } from '../../promql/selector';
import { readHistory } from './history';

export function HistoryList({ onTake }: { onTake: (expression: string) => void }) {
  const [search, setSearch] = useState('');
  const entries = readHistory().filter((entry) => isFound(entry, search));
  return (
    <div class="history">
      <input type="search" aria-label="Search in the history" placeholder="Search" value={search} onInput={(event) => setSearch(event.currentTarget.value)} />
      {entries.length === 0 && <p class="muted">There is nothing.</p>}
      <ul>
        {entries.map((entry) => (
          <li key={entry}>
            <button type="button" class="quiet" onClick={() => onTake(entry)}>
              <Highlight text={entry} />
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
