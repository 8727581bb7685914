/** How relabeling made a target of what was discovered, rule by rule. */

import { useState } from 'preact/hooks';
import { useAnswer } from '../../../app/load';
import type { Labels, RelabelSteps as Steps } from '../../../source/answers';
import { isMissing } from '../../../source/source';
import { LabelBoxes } from '../../../widgets/series';
import { Failure } from '../../../widgets/state';

export function RelabelSteps({ pool, discovered }: { pool: string; discovered: Labels }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Discovered labels and relabeling</summary>
      {isOpen && (
        <>
          <LabelBoxes labels={discovered} />
          <StepList pool={pool} discovered={discovered} />
        </>
      )}
    </details>
  );
}

function StepList({ pool, discovered }: { pool: string; discovered: Labels }) {
  const params = new URLSearchParams({ scrapePool: pool, labels: JSON.stringify(discovered) });
  const { value, error, isLoading } = useAnswer('api/v1/targets/relabel_steps', params);
  if (isLoading) return <p class="muted loading">Loading…</p>;
  if (error !== undefined) return isMissing(error) ? <p class="muted">This node does not tell the steps.</p> : <Failure error={error} />;
  const { steps } = value!.data as Steps;
  if (steps.length === 0) return <p class="muted">The job has no rules.</p>;
  return (
    <ol class="steps">
      {steps.map(({ rule, output, keep }) => (
        <li>
          <code>{ruleText(rule)}</code>
          {keep ? <LabelBoxes labels={output} /> : <span class="bad-text">drops the target</span>}
        </li>
      ))}
    </ol>
  );
}

/** A rule in a line, without keys that have no value. */
function ruleText(rule: Record<string, unknown>): string {
  return Object.entries(rule)
    .filter(([, value]) => value !== null && value !== '' && !(Array.isArray(value) && value.length === 0))
    .map(([key, value]) => `${key}: ${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join(', ');
}
