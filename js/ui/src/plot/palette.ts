/** Colours of lines: each stands out from the light and from the dark ground by 3:1 at least. */

const PALETTE = [
  '#2f7fc1',
  '#c9701f',
  '#2d9667',
  '#c2497c',
  '#8561c5',
  '#94801a',
  '#1f93a8',
  '#c9544a',
  '#6678d0',
  '#6a9132',
  '#a36a45',
  '#7f858d',
];

/** The colour of a place; places beyond the palette begin again. */
export function colorOf(place: number): string {
  return PALETTE[place % PALETTE.length]!;
}
