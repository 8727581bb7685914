import { openInWorker, unpackSnappy } from '@tidepool/engine/worker';
import uPlot from 'uplot';
import { exampleText } from './example.js';
import { readOpenMetrics } from './openmetrics.js';

const BODY_BYTES_MAX = 256 * 1024 * 1024;
const COLOURS = ['#1668b8', '#c2571a', '#2b8a3e', '#8f3f97', '#b3261e', '#00838f', '#6d4c41', '#546e7a'];

const element = (id) => document.getElementById(id);
let plot;

function say(text, isBad = false) {
  element('status').textContent = text;
  element('status').classList.toggle('bad', isBad);
}

let turn = Promise.resolve();

/** Runs what a click asks for, one after the other, and tells what goes wrong. */
function asked(run) {
  return (event) => {
    turn = turn.then(() => run(event)).catch((error) => say(error.message, true));
  };
}

// History may be as old as it likes: the window in which out-of-order samples are taken is a century.
const store = await openInWorker({
  name: 'demo',
  outOfOrderWindowMs: 100 * 365 * 24 * 3600 * 1000,
  futureLimitMs: 100 * 365 * 24 * 3600 * 1000,
}).catch((error) => {
  say(error.message, true);
  throw error;
});

async function loadText(text) {
  const sets = new Map();
  const rows = { of: [], timestampsMs: [], values: [] };
  for (const { labels, timeMs, value } of readOpenMetrics(text, Date.now())) {
    const key = JSON.stringify(Object.entries(labels).sort());
    if (!sets.has(key)) sets.set(key, labels);
    rows.of.push(key);
    rows.timestampsMs.push(timeMs);
    rows.values.push(value);
  }
  const refs = await store.seriesRefs([...sets.values()]);
  const byKey = new Map([...sets.keys()].map((key, i) => [key, refs[i]]));
  const series = rows.of.map((key) => byKey.get(key));
  return store.append({ series, timestampsMs: rows.timestampsMs, values: rows.values });
}

/** Over HTTP a body comes packed with Snappy, and may be of either version. */
async function loadBody(bytes) {
  const body = unpackSnappy(bytes, BODY_BYTES_MAX) ?? bytes;
  return store.appendRemoteWrite('v1', body).catch((error) => {
    if (error.code !== 'malformed') throw error;
    return store.appendRemoteWrite('v2', body);
  });
}

async function load(name, bytes) {
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    text = undefined;
  }
  const isText = text !== undefined && !/[\0-\x08]/.test(text);
  const { samplesWritten, refused, refusals } = await (isText ? loadText(text) : loadBody(bytes));
  const why = refused > 0 ? `, ${refused} refused: ${refusals[0].detail}` : '';
  await store.compact();
  await showMetrics();
  say(`${name}: ${samplesWritten} samples stored${why}`, refused > 0);
}

const named = (name) => [{ name: '__name__', op: '=', value: name }];

async function hasSamples(name) {
  for await (const { values } of store.select({ matchers: named(name) })) {
    if (values.length > 0) return true;
  }
  return false;
}

async function showMetrics() {
  const chosen = element('metric').value;
  const names = [];
  // Deleted series keep their names until they are compacted away.
  for (const name of await store.labelValues('__name__')) {
    if (await hasSamples(name)) names.push(name);
  }
  element('metric').replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) element('metric').value = chosen;
  await showPlot();
}

/** Values as uPlot wants them, which leaves a gap for null and draws nothing at all beside a NaN. */
function drawn(values) {
  return Array.from(values, (value) => (Number.isFinite(value) ? value : null));
}

/** Increase per second; from 0 where a counter was reset. */
function rates(timestampsMs, values) {
  return values.map((value, i) => {
    if (i === 0) return NaN;
    const increase = value < values[i - 1] ? value : value - values[i - 1];
    return (increase * 1000) / (timestampsMs[i] - timestampsMs[i - 1]);
  });
}

async function showPlot() {
  const name = element('metric').value;
  plot?.destroy();
  plot = undefined;
  if (name === '') return say('Nothing is stored yet.');
  const isRate = element('rate').checked && name.endsWith('_total');
  const tables = [];
  const series = [];
  let samples = 0;
  for await (const { labels, timestampsMs, values } of store.select({ matchers: named(name) })) {
    const { __name__, ...others } = labels;
    const seconds = timestampsMs.map((timeMs) => timeMs / 1000);
    tables.push([seconds, drawn(isRate ? rates(timestampsMs, values) : values)]);
    const stroke = COLOURS[series.length % COLOURS.length];
    const label = Object.values(others).join(' ') || name;
    series.push({ label, stroke, width: 1.5, points: { show: values.length < 50 } });
    samples += values.length;
  }
  const title = isRate ? `${name}, per second` : name;
  const width = element('plot').clientWidth;
  const axes = [{}, { size: 80 }];
  const options = { title, width, height: 380, axes, series: [{}, ...series] };
  // Series have times of their own; uPlot wants one column of them.
  plot = new uPlot(options, uPlot.join(tables), element('plot'));
  say(`${series.length} series, ${samples} samples`);
}

element('metric').addEventListener('change', asked(showPlot));
element('rate').addEventListener('change', asked(showPlot));
element('file').addEventListener('change', asked(async ({ target }) => {
  for (const file of target.files) {
    say(`Reading ${file.name} …`);
    await load(file.name, new Uint8Array(await file.arrayBuffer()));
  }
}));
element('example').addEventListener('click', asked(() => {
  return load('The example', new TextEncoder().encode(exampleText(Date.now())));
}));
element('forget').addEventListener('click', asked(async () => {
  await store.delete({ matchers: [{ name: '__name__', op: '!=', value: '' }] });
  await showMetrics();
}));

await showMetrics();
