import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Completer } from '../../src/editor/completions';
import { pathSegment } from '../../src/editor/names';
import { fitOf, ranked } from '../../src/promql/rank';
import type { ApiAnswer, Source } from '../../src/source/source';

/**
 * Answers look-ups from a list of names, by the expression in the selector, and counts the
 * requests.
 */
class Lists implements Source {
  readonly kind = 'node';
  readonly title = 'test';
  readonly asked: string[] = [];

  constructor(readonly lists: Record<string, unknown>) {}

  async request(path: string, params: URLSearchParams): Promise<ApiAnswer> {
    this.asked.push(`${path}?${params}`);
    let data = this.lists[path] ?? [];
    const pattern = /=~"\(\?is:(.*)\)"\}$/.exec(params.get('match[]') ?? '')?.[1];
    if (Array.isArray(data) && pattern !== undefined) {
      data = data.filter((name: string) => new RegExp(`^(?:${pattern})$`, 'is').test(name));
    }
    if (Array.isArray(data)) data = data.slice(0, Number(params.get('limit')));
    return { data, warnings: [], infos: [] };
  }
}

const source = new Lists({
  'api/v1/label/__name__/values': ['go_threads', 'node_cpu_seconds_total', 'node_load1', 'node.load', 'up'],
  'api/v1/labels': ['__name__', 'cpu', 'job', 'a.b'],
  'api/v1/label/job/values': ['node', 'pro"m'],
  'api/v1/metadata': { node_cpu_seconds: [{ type: 'counter', help: 'Seconds.', unit: 'seconds' }] },
});

async function at(marked: string) {
  const cursor = marked.indexOf('|');
  const text = marked.slice(0, cursor) + marked.slice(cursor + 1);
  const offer = await new Completer(source).at(text, cursor, new AbortController().signal);
  return offer?.completions ?? [];
}

test('metrics come with type and help, functions with their signature', async () => {
  const cpu = (await at('cpu|')).find((it) => it.kind === 'metric');
  assert.deepEqual(cpu, { kind: 'metric', name: 'node_cpu_seconds_total', text: 'node_cpu_seconds_total', back: 0, detail: 'counter', help: 'Seconds.' });
  const [rate] = await at('rate|');
  assert.equal(rate?.name, 'rate');
  assert.equal(rate?.detail, 'rate(range-vector)');
  assert.deepEqual([rate?.text, rate?.back], ['rate()', 1]);
  const dotted = (await at('load|')).find((it) => it.name === 'node.load');
  assert.equal(dotted?.text, '{"node.load"}', 'a name with a dot stands in braces');
});

test('names of labels come with an operator, unless there is one', async () => {
  assert.deepEqual(
    (await at('up{|}')).map((it) => it.text),
    ['cpu=""', 'job=""', '"a.b"=""'],
  );
  assert.deepEqual(
    (await at('up{jo|="x"}')).map((it) => it.text),
    ['job'],
  );
  assert.deepEqual(
    (await at('sum by (j|) (up)')).map((it) => it.text),
    ['job'],
  );
});

test('values are escaped, and close their quotes once', async () => {
  assert.deepEqual(
    (await at('up{job="pr|"}')).map((it) => [it.text, it.back]),
    [['pro\\"m', -1]],
  );
  assert.deepEqual(
    (await at('up{job="no|')).map((it) => [it.text, it.back]),
    [['node"', 0]],
  );
});

test('a longer word asks nothing that a shorter one answered in full', async () => {
  const lists = new Lists({ 'api/v1/label/__name__/values': ['node_load1', 'node_load5'] });
  const completer = new Completer(lists);
  const signal = new AbortController().signal;
  await completer.at('no', 2, signal);
  const before = lists.asked.length;
  const offer = await completer.at('node_load5', 10, signal);
  assert.equal(lists.asked.length, before);
  assert.equal(offer, undefined, 'the only completion is there already');
});

test('names that fit better come first', () => {
  assert.deepEqual(
    ['cpu', 'CPU_x', 'node_cpu', 'mycpu', 'c_p_u', 'up'].map((name) => fitOf(name, 'cpu')),
    [0, 1, 2, 3, 4, undefined],
  );
  assert.deepEqual(
    ranked(['node_up', 'xup', 'up', 'upper', 'u_p', 'down'], (name) => name, 'up', 4),
    ['up', 'upper', 'node_up', 'xup'],
  );
  const many = Array.from({ length: 50_000 }, (_, i) => `metric_${i}`);
  assert.equal(ranked(many, (name) => name, '49999', 10)[0], 'metric_49999');
});

test('names with other characters are written in paths as Prometheus escapes them', () => {
  assert.equal(pathSegment('job'), 'job');
  assert.equal(pathSegment('a.b'), 'U__a_2e_b');
  assert.equal(pathSegment('a_b.c'), 'U__a__b_2e_c');
  assert.equal(pathSegment('é'), 'U___e9_');
});
