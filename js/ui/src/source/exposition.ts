/** Metrics in Prometheus' text format, version 0.0.4, as a node gives them of itself. */

import type { Labels } from './answers';

/** A sample of the text. */
export interface Sample {
  labels: Labels;
  value: number;
}

/** Samples by the name of their metric. */
export class Metrics {
  readonly #samples = new Map<string, Sample[]>();

  constructor(text = '') {
    for (const line of text.split('\n')) {
      if (line === '' || line.startsWith('#')) continue;
      const sample = sampleOf(line);
      if (sample === undefined) continue;
      const { name, ...rest } = sample;
      const of = this.#samples.get(name);
      if (of === undefined) this.#samples.set(name, [rest]);
      else of.push(rest);
    }
  }

  /** All samples of a metric. */
  all(name: string): readonly Sample[] {
    return this.#samples.get(name) ?? [];
  }

  /** The value of the first sample with these labels. */
  value(name: string, labels: Labels = {}): number | undefined {
    const wanted = Object.entries(labels);
    return this.all(name).find((sample) => wanted.every(([key, value]) => sample.labels[key] === value))?.value;
  }

  /** The sum of all samples; nothing if there are none. */
  sum(name: string): number | undefined {
    const all = this.all(name);
    return all.length === 0 ? undefined : all.reduce((sum, sample) => sum + sample.value, 0);
  }
}

const LINE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{.*\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"/g;

function sampleOf(line: string): (Sample & { name: string }) | undefined {
  const parts = LINE.exec(line);
  if (parts === null) return undefined;
  const labels: Labels = {};
  for (const [, name, value] of (parts[2] ?? '').matchAll(LABEL)) {
    labels[name!] = value!.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped));
  }
  return { name: parts[1]!, labels, value: numberOf(parts[3]!) };
}

/** A number as the text format writes it. */
export function numberOf(text: string): number {
  switch (text) {
    case '+Inf':
    case 'Inf':
      return Infinity;
    case '-Inf':
      return -Infinity;
    default:
      return Number(text);
  }
}
