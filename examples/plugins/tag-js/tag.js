// What the plugin does, without what surrounds it.

/** Reads `name=value`. */
export function parse(config) {
  const found = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)=(.+?)\s*$/.exec(config);
  if (found === null) throw `${JSON.stringify(config)} is not of the form name=value`;
  return { name: found[1], value: found[2] };
}

/** Changes to a batch, or undefined if all series have the label. */
export function edit(batch, { name, value }) {
  const names = namesOf(batch, name);
  const count = batch.symbolEnds.length;
  const relabeled = [];
  const labelRefs = [];
  const seriesEnds = [];
  let start = 0;
  batch.seriesEnds.forEach((end, series) => {
    const refs = batch.labelRefs.slice(start, end);
    start = end;
    const hasIt = refs.some((ref, place) => place % 2 === 0 && names.has(ref));
    if (hasIt) return;
    relabeled.push(series);
    // New symbols count on behind those of the batch: the name, then the value.
    labelRefs.push(...refs, count, count + 1);
    seriesEnds.push(labelRefs.length);
  });
  if (relabeled.length === 0) return undefined;
  const bytes = (text) => new TextEncoder().encode(text).length;
  return {
    symbols: name + value,
    symbolEnds: [bytes(name), bytes(name + value)],
    dropped: [],
    relabeled,
    labelRefs,
    seriesEnds,
    added: undefined,
  };
}

/** References to the symbols that are a name. Ends count bytes of UTF-8, not letters. */
function namesOf(batch, name) {
  const symbols = new TextEncoder().encode(batch.symbols);
  const decoder = new TextDecoder();
  const names = new Set();
  let start = 0;
  batch.symbolEnds.forEach((end, symbol) => {
    if (end - start === name.length && decoder.decode(symbols.subarray(start, end)) === name) {
      names.add(symbol);
    }
    start = end;
  });
  return names;
}
