// Builds what `tsc` does not: the component, and its JavaScript face in src/generated/; the same with
// PromQL in src/promql/generated/; and for the tests the component that checks storages, in
// test/generated/.
//
//   node build.mjs          cargo builds what has changed, jco transpiles it
//   node build.mjs --component FILE   transpiles this component with PromQL, and nothing else
//   node build.mjs --copy   copies the generated files beside the compiled TypeScript
//
// The components come from `cargo build-component-small`, `cargo build-component-small-promql` and
// `cargo build-contract`, which do nothing when they are up to date. Without cargo, one that was built elsewhere and lies in its place is used as
// it is.
//
// `jco-transpile` is the part of jco that is needed here, a tenth of its packages. package.json
// overrides the version of `jco-node-fs`, of which transpiling uses nothing: the newer one asks
// for builds for other platforms that cannot be had, and `npm ci` will not start without them.

import { transpileBytes } from '@bytecodealliance/jco-transpile';
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '..');
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');

/** What is built, and where its JavaScript goes. */
const PRODUCTS = [
  {
    command: 'build-component-small',
    file: 'component-small/tidepool_engine.wasm',
    name: 'engine',
    folder: 'src',
  },
  {
    command: 'build-component-small-promql',
    file: 'component-small-promql/tidepool_engine.wasm',
    name: 'engine',
    folder: 'src/promql',
  },
  {
    command: 'build-contract',
    file: 'component-small/tidepool_contract.wasm',
    name: 'contract',
    folder: 'test',
  },
];

const given = process.argv.indexOf('--component');
if (given > 0) {
  await transpileComponent(process.argv[given + 1], 'engine', join(here, 'src/promql/generated'));
  process.exit();
}
for (const { command, file, name, folder } of PRODUCTS) {
  const generated = join(here, folder, 'generated');
  if (process.argv.includes('--copy')) {
    cpSync(generated, join(here, 'dist', folder, 'generated'), { recursive: true });
  } else {
    const component = join(target, 'wasm32-wasip2', file);
    buildComponent(command, component);
    await transpileComponent(component, name, generated);
  }
}

function buildComponent(command, component) {
  const cargo = spawnSync('cargo', [command], { cwd: root, stdio: 'inherit' });
  if (cargo.error === undefined) {
    if (cargo.status !== 0) process.exit(cargo.status ?? 1);
  } else if (!existsSync(component)) {
    console.error(`${component} is missing, and cargo could not be started to build it:`);
    console.error(`${cargo.error.message}. Install Rust with the target wasm32-wasip2.`);
    process.exit(1);
  }
}

async function transpileComponent(component, name, generated) {
  const { files } = await transpileBytes(readFileSync(component), {
    name,
    // The imports are given when a store is opened: each has storage of its own.
    instantiation: 'async',
    minify: true,
    // Our code tells the contract's errors by their wrapping.
    noComponentErrorWrapping: false,
    // Our own few lines answer WASI, so nothing of a shim may be imported.
    wasiShim: false,
  });
  rmSync(generated, { recursive: true, force: true });
  for (const [name, bytes] of Object.entries(files)) {
    const file = join(generated, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, name.endsWith('.d.ts') ? declared(bytes) : bytes);
  }
}

// jco leaves a word out of functions whose names are JavaScript's own, such as `delete`.
function declared(bytes) {
  return new TextDecoder().decode(bytes).replaceAll(/^function /gm, 'declare function ');
}
