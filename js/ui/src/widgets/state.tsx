/** What stands where something is loading, failed, or is empty. */

import type { ComponentChildren } from 'preact';
import { ApiError } from '../source/source';
import type { Loaded } from '../app/load';

/** What a node says before a mistake in an expression: there is only one on the page. */
const PARAMETER = /^invalid parameter "query": /;

/** Why something is not there. */
export function Failure({ error, what }: { error: Error; what?: string | undefined }) {
  const kind = error instanceof ApiError && error.errorType !== 'unreachable' ? ` (${error.errorType})` : '';
  return (
    <p class="notice bad" role="alert">
      {what !== undefined && `${what}: `}
      {error.message.replace(PARAMETER, '')}
      {kind}
    </p>
  );
}

/** Shows a value once it is there; before that, that it is loading or why it failed. */
export function Await<T>({ of, children, what }: { of: Loaded<T>; children: (value: T) => ComponentChildren; what?: string }) {
  return (
    <>
      {of.error !== undefined && <Failure error={of.error} what={what} />}
      {of.value !== undefined ? children(of.value) : of.isLoading && <p class="muted loading">Loading…</p>}
    </>
  );
}

/** Warnings and infos of an answer. */
export function Remarks({ warnings, infos = [] }: { warnings: readonly string[]; infos?: readonly string[] }) {
  return (
    <>
      {warnings.map((text) => (
        <p class="notice warn" role="status">
          {text}
        </p>
      ))}
      {infos.map((text) => (
        <p class="notice">{text}</p>
      ))}
    </>
  );
}
