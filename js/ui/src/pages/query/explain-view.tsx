/** What an expression means, part by part, and what it costs. */

import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { useLoad } from '../../app/load';
import { Highlight } from '../../editor/highlight';
import { formatCount, formatNumber } from '../../format/number';
import { describe } from '../../promql/describe';
import { printDuration } from '../../promql/duration';
import { partsOf, printTree, type TreeNode } from '../../promql/tree';
import { Await, Failure, Remarks } from '../../widgets/state';
import { CostTable } from './cost';
import type { ViewProps } from './graph-view';
import { measureParts, type Cost } from './measure';
import type { Panel } from './panels';
import { runRange } from './run';

export function ExplainView({ panel, run }: ViewProps) {
  const { source } = useApp();
  const tree = useLoad(panel.expr, async (signal) => {
    const { data } = await source.request('api/v1/parse_query', new URLSearchParams({ query: panel.expr }), signal);
    return data as TreeNode;
  });
  return (
    <Await of={tree}>
      {(root) => (
        <>
          <Whole panel={panel} run={run} />
          <Parts key={panel.expr} root={root} panel={panel} />
        </>
      )}
    </Await>
  );
}

/** The cost of the query of the graph. */
function Whole({ panel, run }: { panel: Panel; run: number }) {
  const { source } = useApp();
  const key = JSON.stringify([panel.expr, panel.rangeMs, panel.endMs ?? null, run]);
  const cost = useLoad(key, (signal) => runRange(source, panel, signal));
  return (
    <section>
      <h2>Cost over {printDuration(panel.rangeMs)}</h2>
      <Await of={cost}>
        {({ data, warnings, infos }) => (
          <>
            <Remarks warnings={warnings} infos={infos} />
            {data.stats === undefined ? <p class="muted">The source says nothing of it.</p> : <CostTable stats={data.stats} />}
          </>
        )}
      </Await>
    </section>
  );
}

function Parts({ root, panel }: { root: TreeNode; panel: Panel }) {
  const { source } = useApp();
  const [costs, setCosts] = useState<ReadonlyMap<TreeNode, Cost>>();
  const [measuring, setMeasuring] = useState<AbortController>();
  const [error, setError] = useState<Error>();
  useEffect(() => () => measuring?.abort(), [measuring]);
  const measure = (): void => {
    const controller = new AbortController();
    setMeasuring(controller);
    setError(undefined);
    measureParts(source, root, panel, controller.signal, setCosts)
      .catch((error: Error) => {
        if (!controller.signal.aborted) setError(error);
      })
      .finally(() => setMeasuring(undefined));
  };
  return (
    <section>
      <h2>Parts</h2>
      <p class="muted row">
        <span>Each line is computed from those below it.</span>
        <button type="button" disabled={measuring !== undefined} onClick={measure} title="Evaluates each part by itself, at the end of the range">
          {measuring === undefined ? 'Measure the parts' : 'Measuring…'}
        </button>
      </p>
      {error !== undefined && <Failure error={error} />}
      <ul class="tree">
        <Part node={root} costs={costs} />
      </ul>
    </section>
  );
}

function Part({ node, costs }: { node: TreeNode; costs: ReadonlyMap<TreeNode, Cost> | undefined }) {
  const parts = partsOf(node);
  const cost = costs?.get(node);
  return (
    <li>
      <div class="part">
        <Highlight text={printTree(node)} />
        <span class="muted">{describe(node)}</span>
        {cost !== undefined && <CostOf cost={cost} />}
      </div>
      {parts.length > 0 && (
        <ul>
          {parts.map((part) => (
            <Part node={part} costs={costs} />
          ))}
        </ul>
      )}
    </li>
  );
}

function CostOf({ cost }: { cost: Cost }) {
  if (cost.error !== undefined) return <span class="bad-text">{cost.error}</span>;
  return (
    <span class="cost">
      {formatCount(cost.series)}
      {cost.isCut ? '+' : ''} series
      {cost.seconds !== undefined && ` · ${formatNumber(cost.seconds, 'seconds', 2)}`}
      {cost.samples !== undefined && ` · ${formatCount(cost.samples)} samples read`}
    </span>
  );
}
