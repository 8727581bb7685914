/**
 * A report as one document that needs neither a server nor this page: a script that shows it, the
 * page's style sheet, and the answer as JSON. Its policy allows these two by their hashes, and no
 * request.
 */

import { REPORT_ID, type Report } from './data';

/** What all reports have in common. */
export interface Parts {
  script: string;
  style: string;
  /** Hashes of both for a policy, such as `sha256-…`. */
  scriptHash: string;
  styleHash: string;
  licences: string;
}

/**
 * The parts of the page or viewer that is open. The viewer's own script shows reports, too, and
 * stands in it; the page names a script for them, which the node is asked for.
 */
export async function partsOf(page: Document): Promise<Parts> {
  const script = element(page, 'link[rel=report], script[data-hash]');
  const style = element(page, 'style[data-hash], link[rel=stylesheet][data-hash]');
  const texts = await Promise.all([textOf(script), textOf(style), textOf(element(page, 'link[rel=license], footer pre'))]);
  const [scriptText, styleText, licences] = texts;
  return { script: scriptText, style: styleText, licences, scriptHash: script.dataset['hash']!, styleHash: style.dataset['hash']! };
}

function element(page: Document, selector: string): HTMLElement {
  const found = page.querySelector<HTMLElement>(selector);
  if (found === null) throw new Error(`the page lacks ${selector}`);
  return found;
}

async function textOf(element: HTMLElement): Promise<string> {
  const address = element.getAttribute('src') ?? element.getAttribute('href');
  if (address === null) return element.textContent;
  const response = await fetch(address);
  if (!response.ok) throw new Error(`${address} is answered with status ${response.status}`);
  return response.text();
}

/** The document of a report. */
export function documentOf(report: Report, parts: Parts): string {
  const policy = [
    "default-src 'none'",
    `script-src '${parts.scriptHash}'`,
    `style-src '${parts.styleHash}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  // No text of the data ends the element.
  const data = JSON.stringify(report).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>tidepool report</title>
<style>${parts.style}</style>
</head>
<body>
<div id="app"><noscript>This report needs JavaScript.</noscript></div>
<footer><details><summary>Licences</summary><pre>${escaped(parts.licences)}</pre></details></footer>
<script type="application/json" id="${REPORT_ID}">${data}</script>
<script>${parts.script}</script>
</body>
</html>
`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
}
