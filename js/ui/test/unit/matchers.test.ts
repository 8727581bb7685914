/** Matchers as text, and what they match. */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { anchored, matchersOf, parseMatchers, printMatchers, testOf } from '../../src/promql/matchers';
import type { Matcher } from '../../src/source/answers';

const matcher = (name: string, op: '=' | '!=' | '=~' | '!~', value: string): Matcher => ({ name, value, isRegex: op.endsWith('~'), isEqual: op.startsWith('=') });

test('matchers are read as Alertmanager writes them', () => {
  assert.deepEqual(parseMatchers(''), { matchers: [] });
  assert.deepEqual(parseMatchers(' { } '), { matchers: [] });
  assert.deepEqual(parseMatchers('{severity="page", instance=~"edge-.*",}'), { matchers: [matcher('severity', '=', 'page'), matcher('instance', '=~', 'edge-.*')] });
  assert.deepEqual(parseMatchers("a!='x y'\nb !~ c|d , \"e.f\"=`g\\n`"), { matchers: [matcher('a', '!=', 'x y'), matcher('b', '!~', 'c|d'), matcher('e.f', '=', 'g\\n')] });
  // A backslash that escapes nothing stands for itself.
  assert.deepEqual(parseMatchers('a=~"10\\.0", b="\\"\\\\\\n"'), { matchers: [matcher('a', '=~', '10\\.0'), matcher('b', '=', '"\\\n')] });
  assert.deepEqual(parseMatchers('a=""'), { matchers: [matcher('a', '=', '')] });
});

test('a mistake in matchers has its place', () => {
  const mistake = (text: string) => parseMatchers(text).mistake;
  assert.equal(mistake('severity'), '=, !=, =~ or !~ behind severity is missing at the end');
  assert.equal(mistake('severity page'), '=, !=, =~ or !~ behind severity is missing before page');
  assert.equal(mistake('severity='), 'a value of severity, or its closing quote, is missing at the end');
  assert.equal(mistake('severity="page'), 'a value of severity, or its closing quote, is missing before "page');
  assert.equal(mistake('a="b", =c'), 'the name of a label is missing before =c');
});

test('matchers are printed as they are read', () => {
  const all = [matcher('a', '=', 'b"\\\n'), matcher('b', '!=', ''), matcher('c', '=~', 'x.*'), matcher('d.e', '!~', '\\d')];
  assert.equal(printMatchers(all), 'a="b\\"\\\\\\n", b!="", c=~"x.*", "d.e"!~"\\\\d"');
  assert.deepEqual(parseMatchers(printMatchers(all)), { matchers: all });
  assert.deepEqual(matchersOf({ alertname: 'A', job: 'b' }), [matcher('alertname', '=', 'A'), matcher('job', '=', 'b')]);
  // Older nodes do not say that a matcher is of equality.
  assert.equal(printMatchers([{ name: 'a', value: 'b', isRegex: false }]), 'a="b"');
});

test('a matcher is of the whole value, and an absent label is empty', () => {
  const is = (it: Matcher, labels: Record<string, string>) => testOf(it)(labels);
  assert.equal(is(matcher('a', '=', 'b'), { a: 'b' }), true);
  assert.equal(is(matcher('a', '=', ''), {}), true);
  assert.equal(is(matcher('a', '!=', 'b'), {}), true);
  assert.equal(is(matcher('a', '=~', 'b|c'), { a: 'c' }), true);
  assert.equal(is(matcher('a', '=~', 'b|c'), { a: 'bc' }), false);
  assert.equal(is(matcher('a', '!~', 'b|c'), { a: 'bc' }), true);
  assert.equal(is(matcher('a', '=~', '.+'), {}), false);
  assert.equal(is({ name: 'a', value: 'b', isRegex: false }, { a: 'b' }), true);
});

test('an expression of Go is read as such, or not at all', () => {
  const is = (pattern: string, value: string) => anchored(pattern)?.test(value);
  assert.equal(is('(?i)EDGE.*', 'edge-7'), true);
  assert.equal(is('edge\\-[0-9\\-]+', 'edge-7-8'), true);
  assert.equal(is('a\\_b\\:c\\/d', 'a_b:c/d'), true);
  assert.equal(is('(?P<site>north|south)', 'south'), true);
  assert.equal(is('\\(?P<', '(P<'), true);
  // The dot is of lines, too, and the end is the end of the text.
  assert.equal(is('a.b', 'a\nb'), true);
  assert.equal(is('a', 'a\n'), false);
  for (const unknown of ['[[:alpha:]]+', 'a\\s+b', '(?m)a', '(?U)a+', '\\Qa.b\\E', 'a\\z', '\\pL', '(', 'x{,2}']) assert.equal(anchored(unknown), undefined, unknown);
});
