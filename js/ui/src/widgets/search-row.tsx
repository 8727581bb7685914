/** The field above a list, whose text stands in the address, and the pages of the list. */

import { useEffect, useState } from 'preact/hooks';
import { useSettled } from '../app/load';
import { setParams, type Route } from '../app/route';
import { Pager } from './pager';

/** Time after a key until a list is searched, in milliseconds. */
const SETTLE_MS = 250;

/** The searched text, and the place in the list. */
export function listState(route: Route): { search: string; offset: number } {
  const offset = Number(route.params.get('offset') ?? 0);
  return { search: route.params.get('search') ?? '', offset: Number.isSafeInteger(offset) && offset > 0 ? offset : 0 };
}

export function SearchRow(props: { route: Route; what: string; size: number; total: number; isOpenEnd?: boolean }) {
  const { route, what } = props;
  const { search, offset } = listState(route);
  const [text, setText] = useState(search);
  const settled = useSettled(text, SETTLE_MS);
  useEffect(() => {
    if (settled !== search) setParams(route, { search: settled, offset: '' });
  }, [settled]);
  useEffect(() => setText(search), [search]);
  return (
    <div class="row">
      <input type="search" aria-label={`Search in ${what}`} placeholder={`Search in ${what}`} value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <Pager
        what={what}
        offset={offset}
        size={props.size}
        total={props.total}
        isOpenEnd={props.isOpenEnd ?? false}
        onMove={(next) => setParams(route, { offset: next === 0 ? '' : `${next}` })}
      />
      {props.isOpenEnd === true && <span class="muted">There are more: search for fewer.</span>}
    </div>
  );
}
