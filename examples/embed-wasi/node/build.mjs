// Makes JavaScript of the component, in generated/, and of the one with PromQL, in generated-promql/.

import { transpileBytes } from '@bytecodealliance/jco-transpile';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(here, '../../../target');
const PRODUCTS = {
  'component-small/tidepool-standalone.wasm': 'generated',
  'component-small-promql/tidepool-standalone-promql.wasm': 'generated-promql',
};

for (const [component, folder] of Object.entries(PRODUCTS)) {
  const bytes = readFileSync(join(target, 'wasm32-wasip2', component));
  const { files } = await transpileBytes(bytes, { name: 'standalone' });
  const generated = join(here, folder);
  rmSync(generated, { recursive: true, force: true });
  for (const [name, bytes] of Object.entries(files)) {
    const file = join(generated, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, bytes);
  }
}
