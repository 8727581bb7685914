/** The blocks, one by one. */

import { useState } from 'preact/hooks';
import { useApp } from '../../../app/context';
import { useAnswer } from '../../../app/load';
import { formatCount, formatDuration, formatNumber } from '../../../format/number';
import { formatTime } from '../../../format/time';
import type { Block, BlocksStatus } from '../../../source/answers';
import { isMissing } from '../../../source/source';
import { Pager } from '../../../widgets/pager';
import { Failure } from '../../../widgets/state';

const ROWS = 50;
const NO_PARAMS = new URLSearchParams();

export function Blocks() {
  const answer = useAnswer('api/v1/status/tsdb/blocks', NO_PARAMS);
  const { source } = useApp();
  const [offset, setOffset] = useState(0);
  if (answer.error !== undefined) {
    if (!isMissing(answer.error)) return <Failure error={answer.error} />;
    return <p class="card muted">{source.kind === 'node' ? 'This node does not list its blocks; “tidepool tsdb list DIR” does.' : 'The blocks are not listed.'}</p>;
  }
  if (answer.value === undefined) return <p class="muted loading">Loading…</p>;
  const blocks = [...(answer.value.data as BlocksStatus).blocks].sort((a, b) => b.maxTime - a.maxTime);
  return (
    <section class="card" aria-label="Blocks">
      <h2>Blocks</h2>
      {blocks.length === 0 && <p class="muted">There are none yet: the first is cut after three hours of data.</p>}
      <Pager what="blocks" offset={offset} size={ROWS} total={blocks.length} onMove={setOffset} />
      {blocks.length > 0 && <Table blocks={blocks.slice(offset, offset + ROWS)} />}
    </section>
  );
}

function Table({ blocks }: { blocks: readonly Block[] }) {
  const { zone } = useApp();
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="List of blocks">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Block</th>
            <th scope="col">From</th>
            <th scope="col" class="number">
              Span
            </th>
            <th scope="col" class="number">
              Level
            </th>
            <th scope="col" class="number">
              Series
            </th>
            <th scope="col" class="number">
              Samples
            </th>
            <th scope="col" class="number">
              Size
            </th>
          </tr>
        </thead>
        <tbody>
          {blocks.map((block) => (
            <tr key={block.ulid}>
              <td class="mono">
                {block.ulid}
                {block.error !== undefined && <div class="bad-text">{block.error}</div>}
              </td>
              <td>{formatTime(block.minTime, zone)}</td>
              <td class="number">{formatDuration((block.maxTime - block.minTime) / 1000)}</td>
              <td class="number">{formatCount(block.compaction?.level)}</td>
              <td class="number">{formatCount(block.stats?.numSeries)}</td>
              <td class="number">{formatCount(block.stats?.numSamples)}</td>
              <td class="number">{formatNumber(block.size, 'bytes')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
