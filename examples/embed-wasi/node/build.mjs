// Makes JavaScript of the component, in generated/.

import { transpileBytes } from '@bytecodealliance/jco-transpile';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(here, '../../../target');
const component = join(target, 'wasm32-wasip2/component-small/tidepool-standalone.wasm');
const generated = join(here, 'generated');

const { files } = await transpileBytes(readFileSync(component), { name: 'standalone' });
rmSync(generated, { recursive: true, force: true });
for (const [name, bytes] of Object.entries(files)) {
  const file = join(generated, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, bytes);
}
