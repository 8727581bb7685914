/** The README's example does what it shows. */

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const PACKAGE = new URL('../../../', import.meta.url);

test("the README's example prints what the README shows", () => {
  const readme = readFileSync(new URL('README.md', PACKAGE), 'utf8');
  const program = /<<'JS'\n(.*?)\nJS\n/s.exec(readme)?.[1];
  const shown = /```text\n(.*?)```/s.exec(readme)?.[1];
  const options = { cwd: PACKAGE, input: program ?? '', encoding: 'utf8' } as const;
  const run = spawnSync(process.execPath, ['--input-type=module'], options);
  assert.equal(run.stderr, '');
  assert.equal(run.stdout, shown);
});
