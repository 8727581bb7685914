/** What a report holds, as JSON in its document. */

import type { Panel } from '../query/panels';
import type { Result } from '../query/run';

/** The element that holds it. */
export const REPORT_ID = 'report';

/** A query with its answer, as it was shown. */
export interface Report {
  /** 1, or it was saved by another version of the page. */
  version: number;
  /** Where the data came from: the node's address, or the directory. */
  source: string;
  savedMs: number;
  panel: Panel;
  result: Result;
}

/** The report that a document is; nothing if it is the page or the viewer. */
export function reportOf(document: Document): Report | undefined {
  const text = document.getElementById(REPORT_ID)?.textContent;
  return text === undefined || text === null ? undefined : (JSON.parse(text) as Report);
}
