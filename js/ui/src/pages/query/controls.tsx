/** Range, end, resolution and kind of a panel's graph; the time of its table. */

import { useEffect, useState } from 'preact/hooks';
import { useApp } from '../../app/context';
import { formatTime, parseTime } from '../../format/time';
import { parseDuration, printDuration } from '../../promql/duration';
import { nextRange, stepMsOf, type Panel, type Resolution } from './panels';

type Change = (panel: Panel) => void;

/** A field whose text is read when it is left or Enter is pressed. */
function Field(props: { label: string; value: string; width: string; placeholder?: string; onText: (text: string) => boolean }) {
  const [text, setText] = useState(props.value);
  const [isWrong, setWrong] = useState(false);
  useEffect(() => {
    setText(props.value);
    setWrong(false);
  }, [props.value]);
  const commit = (): void => {
    if (text !== props.value) setWrong(!props.onText(text));
  };
  return (
    <input
      type="text"
      class={props.width}
      aria-label={props.label}
      aria-invalid={isWrong}
      title={props.label}
      placeholder={props.placeholder}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
      onBlur={commit}
      onKeyDown={(event) => event.key === 'Enter' && commit()}
    />
  );
}

/** The end of a range, or the time of a table. */
export function EndControl({ panel, onChange, label }: { panel: Panel; onChange: Change; label: string }) {
  const { zone, source } = useApp();
  const at = panel.endMs ?? source.endMs ?? Date.now();
  const set = (endMs: number | undefined): void => {
    const { endMs: _, ...rest } = panel;
    onChange(endMs === undefined ? rest : { ...rest, endMs });
  };
  const move = (by: number) => set(Math.round((at + by * Math.max(panel.rangeMs / 2, 1000)) / 1000) * 1000);
  return (
    <span class="group" role="group" aria-label={label}>
      <button type="button" aria-label={`${label}: earlier`} onClick={() => move(-1)}>
        ‹
      </button>
      <Field
        label={`${label}, as 2026-01-31 13:05:09 in ${zone === 'utc' ? 'UTC' : 'local time'}`}
        value={panel.endMs === undefined ? '' : formatTime(panel.endMs, zone)}
        width="w-time"
        placeholder={source.endMs === undefined ? 'now' : 'end of the data'}
        onText={(text) => {
          const endMs = text.trim() === '' ? undefined : parseTime(text, zone);
          if (endMs === undefined && text.trim() !== '') return false;
          set(endMs);
          return true;
        }}
      />
      <button type="button" aria-label={`${label}: later`} onClick={() => move(1)}>
        ›
      </button>
      {panel.endMs !== undefined && (
        <button type="button" onClick={() => set(undefined)}>
          Now
        </button>
      )}
    </span>
  );
}

const RESOLUTIONS: [string, Resolution | undefined][] = [
  ['Low resolution', { type: 'auto', density: 'low' }],
  ['Medium resolution', { type: 'auto', density: 'medium' }],
  ['High resolution', { type: 'auto', density: 'high' }],
  ['Fixed step', undefined],
];

/** All of a graph. */
export function GraphControls({ panel, onChange }: { panel: Panel; onChange: Change }) {
  const { resolution } = panel;
  const chosen = resolution.type === 'fixed' ? 3 : RESOLUTIONS.findIndex(([, known]) => known?.type === 'auto' && known.density === resolution.density);
  return (
    <div class="row controls">
      <span class="group" role="group" aria-label="Range">
        <button type="button" aria-label="Shorter range" onClick={() => onChange({ ...panel, rangeMs: nextRange(panel.rangeMs, -1) })}>
          −
        </button>
        <Field
          label="Range, as 1h30m"
          value={printDuration(panel.rangeMs)}
          width="w-short"
          onText={(text) => {
            const rangeMs = parseDuration(text);
            if (rangeMs !== undefined) onChange({ ...panel, rangeMs });
            return rangeMs !== undefined;
          }}
        />
        <button type="button" aria-label="Longer range" onClick={() => onChange({ ...panel, rangeMs: nextRange(panel.rangeMs, 1) })}>
          +
        </button>
      </span>
      <EndControl panel={panel} onChange={onChange} label="End" />
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
