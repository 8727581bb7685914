/** Parameters of requests, read as Prometheus' HTTP API reads them. */

/** Why a request has no answer, in the words of Prometheus' API. */
export class Refusal extends Error {
  constructor(
    readonly errorType: string,
    message: string,
  ) {
    super(message);
  }
}

/**
 * A time in milliseconds, given in seconds or as in RFC 3339. `before` begins the refusal's text.
 */
export function timeOf(params: URLSearchParams, name: string, before = ''): number | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  const ms = isNumber(text) ? Math.round(Number(text) * 1000) : Date.parse(text);
  if (Number.isSafeInteger(ms)) return ms;
  throw wrong(name, `${before}cannot parse "${text}" to a valid timestamp`);
}

/** A time that must be given. */
export function neededTime(params: URLSearchParams, name: string): number {
  const ms = timeOf(params, name);
  if (ms === undefined) throw wrong(name, 'it is missing');
  return ms;
}

const UNITS_MS: Record<string, number> = { ms: 1, s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5, y: 31536e6 };

/** A duration in milliseconds, given in seconds or as in PromQL, such as `1h30m`. */
export function durationOf(params: URLSearchParams, name: string): number | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  if (isNumber(text)) return Math.round(Number(text) * 1000);
  if (!/^(?:[0-9]+(?:ms|[smhdwy]))+$/.test(text)) throw wrong(name, `cannot parse "${text}" to a valid duration`);
  const parts = text.matchAll(/([0-9]+)(ms|[smhdwy])/g);
  return [...parts].reduce((sum, [, count, unit]) => sum + Number(count) * UNITS_MS[unit!]!, 0);
}

/** A count; 0 if it is not given. */
export function countOf(params: URLSearchParams, name: string): number {
  const text = params.get(name) ?? '';
  if (/^[0-9]*$/.test(text)) return Number(text);
  throw wrong(name, `"${text}" is no number from zero`);
}

/** The refusal of a parameter. */
export function wrong(name: string, reason: string): Refusal {
  return new Refusal('bad_data', `invalid parameter "${name}": ${reason}`);
}

function isNumber(text: string): boolean {
  return /^[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?$/i.test(text);
}
