/** Types, helps and units of metrics. */

import type { FamilyMetadata, MetadataMap } from '../source/answers';
import type { Source } from '../source/source';

/**
 * Families that one request asks for; of those beyond it nothing is known until they are asked for
 * by name.
 */
export const FAMILIES_MAX = 5000;

/** What is said of metrics. */
export class Metadata {
  readonly #families: ReadonlyMap<string, FamilyMetadata>;
  readonly isWhole: boolean;

  constructor(map: MetadataMap) {
    this.#families = new Map(Object.entries(map).flatMap(([name, said]) => (said[0] === undefined ? [] : [[name, said[0]] as const])));
    this.isWhole = this.#families.size < FAMILIES_MAX;
  }

  /** What is said of the family of a metric. */
  of(metric: string): FamilyMetadata | undefined {
    for (const name of familiesOf(metric)) {
      const said = this.#families.get(name);
      if (said !== undefined) return said;
    }
    return undefined;
  }
}

/** The families that a metric may be of: its own name, and that without a suffix. */
export function familiesOf(metric: string): string[] {
  const base = metric.replace(/_(bucket|sum|count|total|created|info)$/, '');
  return base === metric ? [metric] : [metric, base];
}

/** Loads all of it. */
export async function loadMetadata(source: Source, signal: AbortSignal): Promise<Metadata> {
  const { data } = await source.request('api/v1/metadata', new URLSearchParams({ limit: `${FAMILIES_MAX}` }), signal);
  return new Metadata(data as MetadataMap);
}
