/** A silence as it is written into the form. */

import { parseTime, type Zone } from '../../../format/time';
import { parseDuration } from '../../../promql/duration';
import { parseMatchers } from '../../../promql/matchers';
import type { NewSilence } from './load';

/** The texts of the fields. */
export interface Draft {
  matchers: string;
  /** A duration or a time. */
  ends: string;
  author: string;
  comment: string;
}

export type Mistakes = Partial<Record<keyof Draft, string>>;

/** Go's zero time: a start in the past is the present by the node's clock, as in Alertmanager. */
const NOW = '0001-01-01T00:00:00Z';

/**
 * When a silence ends: a duration from now on, or a time. Nothing for another text.
 *
 * @param nowMs by the node's clock
 */
export function endOf(text: string, nowMs: number, zone: Zone): number | undefined {
  const duration = parseDuration(text);
  return duration === undefined ? parseTime(text, zone) : nowMs + duration;
}

/** The silence, or what is wrong with the texts. What is not checked here the node checks. */
export function silenceOf(draft: Draft, nowMs: number, zone: Zone): { silence: NewSilence; mistakes?: never } | { silence?: never; mistakes: Mistakes } {
  const { matchers, mistake } = parseMatchers(draft.matchers);
  const endMs = endOf(draft.ends, nowMs, zone);
  const [createdBy, comment] = [draft.author.trim(), draft.comment.trim()];
  const mistakes: Mistakes = {};
  if (mistake !== undefined) mistakes.matchers = `${mistake[0]!.toUpperCase()}${mistake.slice(1)}.`;
  else if (matchers.length === 0) mistakes.matchers = 'A silence needs a matcher.';
  if (endMs === undefined) mistakes.ends = 'This is no duration such as 2h, and no time such as 2026-01-31 13:05.';
  else if (endMs <= nowMs) mistakes.ends = 'This time has passed.';
  if (createdBy === '') mistakes.author = 'A silence needs an author.';
  if (comment === '') mistakes.comment = 'A silence needs a comment.';
  if (matchers === undefined || endMs === undefined || Object.keys(mistakes).length > 0) return { mistakes };
  return { silence: { matchers, startsAt: NOW, endsAt: new Date(endMs).toISOString(), createdBy, comment } };
}
