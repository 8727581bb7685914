/** The rules that were written last, which stay until the tab is closed. */

import { readOfTab, writeOfTab } from '../../../app/settings';

const NAME = 'backtest.rules';
// Where a browser keeps nothing, opening the view of a rule works all the same.
let draft: string | undefined;

export function readDraft(): string {
  draft ??= readOfTab(NAME) ?? '';
  return draft;
}

export function keepDraft(text: string): void {
  draft = text;
  writeOfTab(NAME, text);
}
