/** What leaves the node: samples to receivers, blocks to object storage. */

import { useNow } from '../../../app/clock';
import { useSnapshots } from '../../../app/metrics';
import { destinations, shipping, type Destination, type Shipping } from '../../../figures/leaving';
import { formatCount, formatNumber } from '../../../format/number';
import { formatAgo } from '../../../format/time';
import { Facts } from '../../../widgets/facts';
import { Await } from '../../../widgets/state';
import { lagText, shippingText } from '../../home/cards';

export function Forwarding() {
  const snapshots = useSnapshots();
  return (
    <Await of={snapshots}>
      {(snapshots) => {
        const all = destinations(snapshots);
        const ship = shipping(snapshots);
        return (
          <>
            {all.length === 0 && <p class="card muted">No samples are forwarded. --remote-write-url, or the section remote_write of the file of --config, names receivers.</p>}
            {all.map((destination) => (
              <DestinationCard key={destination.name} destination={destination} />
            ))}
            {ship === undefined ? <p class="card muted">No blocks are shipped. --ship names a bucket or a directory.</p> : <ShipCard ship={ship} />}
          </>
        );
      }}
    </Await>
  );
}

function DestinationCard({ destination: it }: { destination: Destination }) {
  return (
    <section class="card" aria-label={`Destination ${it.name}`}>
      <h2>
        {it.name} <span class="mono muted">{it.url}</span>
      </h2>
      <p>It {lagText(it)}.</p>
      <Facts
        rows={[
          ['Bytes that wait', formatNumber(it.bytesLeft, 'bytes')],
          ['Samples in queues', formatCount(it.pending)],
          ['Samples that will be read from blocks', formatCount(it.backlog)],
          ['Sent', formatCount(it.sent)],
          ['Sent again', formatCount(it.retried)],
          ['Refused by the receiver', formatCount(it.failed)],
          ['Dropped', it.dropped.length === 0 ? 'none' : it.dropped.map(({ reason, count }) => `${formatCount(count)} ${reason}`).join(', ')],
          ['Shards', `${formatCount(it.shards)} of at most ${formatCount(it.shardsMax)}`],
        ]}
      />
    </section>
  );
}

function ShipCard({ ship }: { ship: Shipping }) {
  const now = useNow(15_000);
  return (
    <section class="card" aria-label="Object storage">
      <h2>Object storage</h2>
      <p>It {shippingText(ship)}.</p>
      <Facts
        rows={[
          ['Uploaded', `${formatCount(ship.uploads)} blocks, ${formatNumber(ship.uploadedBytes, 'bytes')}`],
          ['Last upload', ship.lastUploadMs === undefined ? 'none since the start' : formatAgo(ship.lastUploadMs, Math.max(now, ship.lastUploadMs))],
          ['Failed uploads', formatCount(ship.failures)],
          ['Name taken by another block', formatCount(ship.conflicts)],
          ['Dropped before they were shipped', formatCount(ship.droppedUnshipped)],
        ]}
      />
    </section>
  );
}
