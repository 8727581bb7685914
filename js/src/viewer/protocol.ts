/**
 * What a page and the viewer's worker say to each other. Types only: the page has no other part.
 */

/** From the page. */
export type ToViewer =
  | {
      /**
       * The first message: the component's modules, by the names of their files, packed with gzip.
       */
      readonly modules: Readonly<Record<string, Blob>>;
    }
  | {
      /** Opens what was picked, in place of what is open. */
      readonly open: readonly { readonly path: string; readonly file: Blob }[];
    }
  | { readonly id: number; readonly path: string; readonly params: string }
  | { readonly cancel: number };

/** From the worker. */
export type FromViewer =
  | { readonly opened: ViewerSummary }
  | { readonly failed: string }
  /** Damage that was found later. */
  | { readonly damage: readonly string[] }
  | { readonly id: number; readonly answer: ViewerAnswer }
  | { readonly id: number; readonly failure: { readonly errorType: string; readonly error: string } };

/** An answer. */
export interface ViewerAnswer {
  /** The field `data` of Prometheus' API, as JSON. */
  readonly data: string;
  readonly warnings?: readonly string[];
  readonly infos?: readonly string[];
  readonly total?: number;
}

/** What is open. */
export interface ViewerSummary {
  readonly name: string;
  /** Time of the newest sample; `undefined` without any. */
  readonly endMs: number | undefined;
  readonly blocks: number;
  readonly logSeries: number;
  readonly bytes: number;
  /** What is damaged and left out, one sentence each. */
  readonly damage: readonly string[];
  /** Other data directories that were found, and are not shown. */
  readonly others: readonly string[];
}
