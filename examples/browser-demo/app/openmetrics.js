// Reads the samples of Prometheus' text format, with or without OpenMetrics' additions. Types,
// help and exemplars are passed over.

const SAMPLE = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*?)\})?[ \t]+(\S+)(?:[ \t]+(-?[0-9.eE+]+))?(?:[ \t]+#.*)?$/;
const LABEL = /([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"\s*(?:,\s*|$)/gy;
const ESCAPES = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/** Rows of the text; times are milliseconds, and `nowMs` where the text has none. */
export function* readOpenMetrics(text, nowMs) {
  // OpenMetrics has seconds and says so by its end; Prometheus' format has milliseconds.
  const unitMs = /^# EOF\s*$/m.test(text) ? 1000 : 1;
  let number = 0;
  for (const line of text.split('\n')) {
    number += 1;
    if (line.trim() === '' || line.startsWith('#')) continue;
    const found = SAMPLE.exec(line.trim());
    if (found === null) throw new Error(`line ${number} is no sample: ${line.slice(0, 80)}`);
    const [, name, inside = '', value, time] = found;
    const timeMs = time === undefined ? nowMs : Math.round(Number(time) * unitMs);
    yield { labels: { ...readLabels(inside, number), __name__: name }, timeMs, value: toNumber(value) };
  }
}

function readLabels(text, line) {
  const labels = {};
  LABEL.lastIndex = 0;
  for (let end = 0; end < text.length; end = LABEL.lastIndex) {
    const found = LABEL.exec(text);
    if (found === null) throw new Error(`the labels of line ${line} do not read: ${text}`);
    labels[found[1]] = found[2].replace(/\\./g, (escape) => ESCAPES[escape] ?? escape);
  }
  return labels;
}

function toNumber(text) {
  const infinite = /^([+-]?)inf(inity)?$/i.exec(text);
  if (infinite !== null) return infinite[1] === '-' ? -Infinity : Infinity;
  return Number(text);
}
