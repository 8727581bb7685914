/** Range, end, resolution and kind of a panel's graph. */

import { parseDuration, printDuration } from '../../promql/duration';
import { Field } from '../../widgets/field';
import { EndControl, RangeControl, type TimeRange } from '../../widgets/range';
import { stepMsOf, withRange, type Panel, type Resolution } from './panels';

type Change = (panel: Panel) => void;

const RESOLUTIONS: [string, Resolution | undefined][] = [
  ['Low resolution', { type: 'auto', density: 'low' }],
  ['Medium resolution', { type: 'auto', density: 'medium' }],
  ['High resolution', { type: 'auto', density: 'high' }],
  ['Fixed step', undefined],
];

export function GraphControls({ panel, onChange }: { panel: Panel; onChange: Change }) {
  const { resolution } = panel;
  const setRange = (range: TimeRange): void => onChange(withRange(panel, range));
  const chosen = resolution.type === 'fixed' ? 3 : RESOLUTIONS.findIndex(([, known]) => known?.type === 'auto' && known.density === resolution.density);
  return (
    <div class="row controls">
      <RangeControl range={panel} onChange={setRange} />
      <EndControl range={panel} onChange={setRange} label="End" />
      <span class="group">
        <select
          aria-label="Resolution"
          value={chosen}
          onChange={(event) => {
            const next = RESOLUTIONS[Number(event.currentTarget.value)]?.[1];
            onChange({ ...panel, resolution: next ?? { type: 'fixed', stepMs: stepMsOf(panel) } });
          }}
        >
          {RESOLUTIONS.map(([title], index) => (
            <option value={index}>{title}</option>
          ))}
        </select>
        {resolution.type === 'fixed' && (
          <Field
            label="Step, as 15s"
            value={printDuration(resolution.stepMs)}
            width="w-short"
            onText={(text) => {
              const stepMs = parseDuration(text);
              if (stepMs !== undefined) onChange({ ...panel, resolution: { type: 'fixed', stepMs } });
              return stepMs !== undefined;
            }}
          />
        )}
      </span>
      <span class="group">
        <Toggle isOn={panel.isStacked} onToggle={(isStacked) => onChange({ ...panel, isStacked, isLog: false })}>
          Stacked
        </Toggle>
        <Toggle isOn={panel.isLog} onToggle={(isLog) => onChange({ ...panel, isLog, isStacked: false })}>
          Log axis
        </Toggle>
        <Toggle
          isOn={panel.yMin === 0}
          onToggle={(isOn) => {
            const { yMin: _, ...rest } = panel;
            onChange(isOn ? { ...rest, yMin: 0 } : rest);
          }}
        >
          From zero
        </Toggle>
      </span>
    </div>
  );
}

function Toggle({ isOn, onToggle, children }: { isOn: boolean; onToggle: (isOn: boolean) => void; children: string }) {
  return (
    <button type="button" aria-pressed={isOn} onClick={() => onToggle(!isOn)}>
      {children}
    </button>
  );
}
