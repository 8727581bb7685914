// Builds the page.
//
//   node build.mjs [FOLDER]   writes the page to FOLDER, by default dist
//   node build.mjs --viewer   writes the viewer to dist-viewer/viewer.html
//   node build.mjs --tests    writes the tests to build/test
//
// The page is index.html and the folder ui, whose files have a hash of their content in their names
// and never change. All addresses are relative. The document loads `ui/app-*.js` with the parts that
// it shares with others: frame and home. Every other view is a part of its own, which is loaded when
// it is opened. `ui/report-*.js` is the script of saved reports, and `ui/licences-*.txt` names the
// packages in all of them with their licences. Each file is there a second time, compressed, as
// NAME.gz.
//
// The viewer is one document with everything in it: script, style sheet, the worker's script and the
// component of `@tidepool/engine/promql`, which `npm run build` in `js` makes.

import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';

const here = fileURLToPath(new URL('.', import.meta.url));

const OPTIONS = {
  absWorkingDir: here,
  outdir: 'dist',
  write: false,
  bundle: true,
  minify: true,
  metafile: true,
  target: ['es2022'],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
  logLevel: 'warning',
};

/** Bundles an entry point: minified script and style sheet, and the packages that they hold. */
export async function bundle(entry, options = {}) {
  const { outputFiles, metafile } = await build({ ...OPTIONS, entryPoints: [entry], format: 'iife', ...options });
  const text = (ending) => outputFiles.find((file) => file.path.endsWith(ending))?.text ?? '';
  return { script: text('.js'), style: text('.css'), packages: packagesOf(Object.keys(metafile.inputs)) };
}

/**
 * Bundles an entry point as modules, one for each dynamic import and for what they share: the texts
 * of the files by name, the names of the entry and its style sheet, and of the modules that the entry
 * needs at once.
 */
async function split(entry) {
  const { outputFiles, metafile } = await build({
    ...OPTIONS,
    entryPoints: { app: entry },
    format: 'esm',
    splitting: true,
    entryNames: 'ui/[name]-[hash]',
    chunkNames: 'ui/[name]-[hash]',
  });
  const nameOf = (path) => relative(join(here, 'dist'), resolve(here, path));
  const files = Object.fromEntries(outputFiles.map(({ path, text }) => [nameOf(path), text]));
  const [main] = Object.keys(metafile.outputs).filter((path) => metafile.outputs[path].entryPoint === entry);
  const needed = new Set();
  const need = (path) => {
    for (const { path: imported, kind } of metafile.outputs[path].imports) {
      if (kind !== 'import-statement' || needed.has(imported)) continue;
      needed.add(imported);
      need(imported);
    }
  };
  need(main);
  const styles = Object.keys(files).filter((name) => name.endsWith('.css'));
  // Nothing loads the style sheet of a part: all styles belong into the entry's.
  if (styles.length !== 1) throw new Error(`there are ${styles.length} style sheets: ${styles.join(', ')}`);
  return { files, script: nameOf(main), style: styles[0], needed: [...needed].map(nameOf), packages: packagesOf(Object.keys(metafile.inputs)) };
}

/** The notices of these packages, in one text. */
export function licences(packages) {
  const texts = packages.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const file = readdirSync(folder).find((file) => /^(licen[cs]e|copying)/i.test(file));
    if (file === undefined) throw new Error(`${name} has no licence file`);
    return `${name} ${version}: ${license}\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
  });
  return `This page contains software of third parties.\n\n${texts.join(`\n${'='.repeat(80)}\n\n`)}`;
}

/**
 * The document that loads a script and a style sheet at these addresses, and at once what the script
 * imports. The hashes of style sheet and report script go into the policies of reports, which have
 * both in them.
 */
function documentOf({ script, needed, style, report, licences }) {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>tidepool</title>
<link rel="icon" href="${ICON}">
<link rel="license" href="${licences}">
<link rel="report" href="${report.name}" data-hash="${report.hash}">
<link rel="stylesheet" href="${style.name}" data-hash="${style.hash}">
<script type="module" src="${script}"></script>
${needed.map((name) => `<link rel="modulepreload" href="${name}">\n`).join('')}\
</head>
<body>
<div id="app"><noscript>This page needs JavaScript. Programs that do not ask for HTML, such as curl, get a list of endpoints here.</noscript></div>
</body>
</html>
`;
}

const ICON = `data:image/svg+xml,${encodeURIComponent(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="3" fill="#0b6e99"/>' +
    '<path d="M1 8q3-5 5 0t5 0t4-1M1 12q3-5 5 0t5 0t4-1" fill="none" stroke="#fff" stroke-width="1.6"/></svg>',
)}`;

/** The folders of the packages that files belong to, by name. */
function packagesOf(files) {
  const marker = 'node_modules/';
  const folders = files.filter((file) => file.includes(marker)).map((file) => {
    const at = file.lastIndexOf(marker) + marker.length;
    const [scope, name] = file.slice(at).split('/');
    return join(here, file.slice(0, at), scope.startsWith('@') ? `${scope}/${name}` : scope);
  });
  return [...new Set(folders)].sort();
}

/** A hash as policies have them. */
function hashOf(text) {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

function hashed(name, content) {
  const hash = createHash('sha256').update(content).digest('hex').slice(0, 12);
  return `ui/${name.replace('.', `-${hash}.`)}`;
}

async function buildPage(folder) {
  const page = await split('src/main.tsx');
  const report = await bundle('src/report.ts');
  const notices = licences([...new Set([...page.packages, ...report.packages])].sort());
  const names = { report: hashed('report.js', report.script), licences: hashed('licences.txt', notices) };
  const files = { ...page.files, [names.report]: report.script, [names.licences]: notices };
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(join(folder, 'ui'), { recursive: true });
  for (const [name, content] of Object.entries(files)) write(folder, name, content);
  const document = documentOf({
    script: page.script,
    needed: page.needed,
    style: { name: page.style, hash: hashOf(files[page.style]) },
    report: { name: names.report, hash: hashOf(report.script) },
    licences: names.licences,
  });
  write(folder, 'index.html', document);
}

/** Where js keeps the component with PromQL and its JavaScript. */
const generated = join(here, '../src/promql/generated');

async function buildViewer(folder) {
  if (!existsSync(join(generated, 'engine.js'))) {
    console.error(`${generated} is missing: run "npm ci" and "npm run build" in js first`);
    process.exit(1);
  }
  const page = await bundle('src/viewer/main.tsx');
  const worker = await bundle('src/viewer/worker.mjs', {
    // The modules come from the page: nothing is loaded from an address or by Node.
    define: { 'import.meta.url': '"about:blank"' },
    external: ['node:*'],
  });
  const modules = readdirSync(generated).filter((name) => name.endsWith('.wasm')).sort();
  const parts = [
    dataOf('worker', Buffer.from(worker.script)),
    ...modules.map((name) => dataOf(name, withoutNames(readFileSync(join(generated, name))), ' data-module="' + name + '"')),
  ];
  mkdirSync(folder, { recursive: true });
  const document = viewerOf(page.script, page.style, parts, licences([...new Set([...page.packages, ...worker.packages])]));
  const file = join(folder, 'viewer.html');
  write(folder, 'viewer.html', document);
  console.log(`${file}: ${Buffer.byteLength(document)} bytes, ${gzipSync(document, { level: 9 }).length} with gzip -9`);
}

/**
 * A WebAssembly module without its custom sections, such as names of functions: they say nothing to
 * a browser. Source: the specification's binary format, "Modules".
 */
function withoutNames(module) {
  const parts = [module.subarray(0, 8)];
  for (let at = 8; at < module.length; ) {
    const from = at;
    const id = module[at];
    at += 1;
    let [size, shift] = [0, 0];
    for (let more = true; more; at += 1, shift += 7) {
      size += (module[at] & 127) * 2 ** shift;
      more = module[at] > 127;
    }
    at += size;
    if (id !== 0) parts.push(module.subarray(from, at));
  }
  return Buffer.concat(parts);
}

/** A part of the viewer's document: a block of data, which no browser runs. */
function dataOf(id, bytes, attributes = '') {
  return `<script type="application/gzip" id="${id}"${attributes}>${gzipSync(bytes, { level: 9 }).toString('base64')}</script>`;
}

/**
 * The viewer's document. Its policy allows its own script and style sheet by their hashes, a worker
 * and the component; it forbids every request. A document cannot forbid frames around itself.
 */
function viewerOf(script, style, parts, licences) {
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}' 'wasm-unsafe-eval'`,
    `style-src '${hashOf(style)}'`,
    'img-src data:',
    'worker-src blob:',
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>tidepool viewer</title>
<link rel="icon" href="${ICON}">
<style data-hash="${hashOf(style)}">${style}</style>
</head>
<body>
<div id="start"><noscript>This page needs JavaScript.</noscript></div>
<div id="app"></div>
<footer><details><summary>Licences</summary><pre>${escaped(licences)}</pre></details></footer>
${parts.join('\n')}
<script data-hash="${hashOf(script)}">${script}</script>
</body>
</html>
`;
}

function escaped(text) {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}

function write(folder, name, content) {
  writeFileSync(join(folder, name), content);
  writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
}

async function buildTests(folder) {
  rmSync(folder, { recursive: true, force: true });
  const tests = join(here, 'test');
  const entryPoints = readdirSync(tests, { recursive: true })
    .filter((file) => file.endsWith('.test.ts') || file === join('measure', 'measure.ts'))
    .map((file) => join(tests, file));
  await build({
    absWorkingDir: here,
    entryPoints,
    outbase: tests,
    outdir: folder,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: ['node20'],
    sourcemap: 'inline',
    logLevel: 'warning',
  });
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(resolve(process.argv[1])).href) {
  const argument = process.argv[2];
  if (argument === '--tests') {
    await buildTests(join(here, 'build/test'));
  } else if (argument === '--viewer') {
    await buildViewer(join(here, 'dist-viewer'));
  } else {
    await buildPage(argument === undefined ? join(here, 'dist') : resolve(argument));
  }
}
