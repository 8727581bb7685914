/**
 * What stands above the pages of the viewer: what is open, what is damaged, and where to pick more.
 */

import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ViewerSummary } from '../../../src/viewer/protocol';
import { formatCount, formatNumber } from '../format/number';
import { droppedFiles, filesOf, type Picked } from './picked';

/** Damaged places that are named at once. */
const NAMED_MAX = 20;

/** What the viewer has open. */
export interface StartState {
  opened?: ViewerSummary | undefined;
  isOpening: boolean;
  failure?: string | undefined;
  damage: readonly string[];
}

/** Called with what a person picked, or will have picked when its files are known. */
export type Pick = (picked: Picked[] | Promise<Picked[]>) => void;

/** The part of the page above the data. */
export function Start({ state, onPick }: { state: StartState; onPick: Pick }) {
  const { opened, isOpening, failure, damage } = state;
  const isOver = useDrop(onPick);
  return (
    <section class={`start${isOver ? ' over' : ''}`} aria-label="Files">
      {opened === undefined ? (
        <Introduction />
      ) : (
        <p role="status">
          <strong>{opened.name === '' ? 'Picked files' : opened.name}</strong>: {formatNumber(opened.bytes, 'bytes')}, {formatCount(opened.blocks)} blocks,{' '}
          {formatCount(opened.logSeries)} series in the log
        </p>
      )}
      <p class="picks">
        <Picker label="Open a directory" isDirectory onPick={onPick} />
        <Picker label="Open an archive" onPick={onPick} />
        {isOpening && (
          <span class="loading" role="status">
            Opening…
          </span>
        )}
      </p>
      {failure !== undefined && (
        <p class="notice bad" role="alert">
          {failure}
        </p>
      )}
      {opened !== undefined && opened.others.length > 0 && (
        <p class="notice">Also found and not shown: {opened.others.slice(0, NAMED_MAX).join(', ')}. Open them by themselves.</p>
      )}
      {damage.length > 0 && <Damage damage={damage} />}
    </section>
  );
}

function Introduction() {
  return (
    <>
      <h1>Query a data directory</h1>
      <p>
        Drop a data directory of Prometheus or tidepool here, one of its blocks, a snapshot, or an archive of one of them (.tar, .tar.gz). It is read
        in this tab, and sent nowhere. Its files do not change.
      </p>
    </>
  );
}

function Damage({ damage }: { damage: readonly string[] }) {
  return (
    <details class="notice warn" open={damage.length <= 3}>
      <summary>{damage.length === 1 ? 'One part is damaged; all else is shown.' : `${formatCount(damage.length)} parts are damaged; all else is shown.`}</summary>
      <ul>
        {damage.slice(0, NAMED_MAX).map((text) => (
          <li key={text}>{text}</li>
        ))}
        {damage.length > NAMED_MAX && <li>and {formatCount(damage.length - NAMED_MAX)} more</li>}
      </ul>
    </details>
  );
}

function Picker({ label, isDirectory = false, onPick }: { label: string; isDirectory?: boolean; onPick: Pick }): ComponentChildren {
  const input = useRef<HTMLInputElement>(null);
  const directory = isDirectory ? { webkitdirectory: true } : {};
  const pick = (): void => {
    const list = input.current!.files;
    if (list !== null && list.length > 0) onPick(filesOf(list));
    // The same directory can be picked again, such as after it has changed.
    input.current!.value = '';
  };
  return (
    <>
      <button type="button" onClick={() => input.current!.click()}>
        {label}
      </button>
      <input ref={input} type="file" multiple hidden aria-label={label} onChange={pick} {...directory} />
    </>
  );
}

/** Whether something is held over the window; what is dropped there is picked. */
function useDrop(onPick: Pick): boolean {
  const [isOver, setIsOver] = useState(false);
  useEffect(() => {
    const over = (event: DragEvent): void => {
      event.preventDefault();
      setIsOver(true);
    };
    const leave = (event: DragEvent): void => {
      if (event.relatedTarget === null) setIsOver(false);
    };
    const drop = (event: DragEvent): void => {
      event.preventDefault();
      setIsOver(false);
      if (event.dataTransfer !== null) onPick(droppedFiles(event.dataTransfer));
    };
    addEventListener('dragover', over);
    addEventListener('dragleave', leave);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('dragleave', leave);
      removeEventListener('drop', drop);
    };
  }, [onPick]);
  return isOver;
}
