// Makes tag_js.wasm of plugin.js.
import { componentize } from '@bytecodealliance/componentize-js';
import { writeFile } from 'node:fs/promises';

const { component } = await componentize({
  sourcePath: 'plugin.js',
  witPath: '../../../wit/plugin',
  worldName: 'transform',
  // A transform has no network.
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile('tag_js.wasm', component);
