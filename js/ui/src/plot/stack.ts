/** Lines on top of one another. */

/**
 * The upper edge of each column when columns stand on top of one another, the first at the bottom.
 * A gap stays a gap and adds nothing to those above.
 */
export function stacked(columns: readonly (readonly (number | null)[])[]): (number | null)[][] {
  const length = columns[0]?.length ?? 0;
  const height = new Float64Array(length);
  return columns.map((column) =>
    Array.from({ length }, (_, i) => {
      const value = column[i] ?? null;
      if (value === null) return null;
      height[i]! += value;
      return height[i]!;
    }),
  );
}

/**
 * Columns on a logarithmic axis: what is not above zero is a gap. Gives how many points that are.
 */
export function positive(columns: readonly (readonly (number | null)[])[]): { columns: (number | null)[][]; dropped: number } {
  let dropped = 0;
  const kept = columns.map((column) =>
    column.map((value) => {
      if (value === null || value > 0) return value;
      dropped += 1;
      return null;
    }),
  );
  return { columns: kept, dropped };
}

/** Points without a neighbour: no line shows them. */
export function lonely(column: ArrayLike<number | null | undefined>): number[] {
  const places: number[] = [];
  for (let i = 0; i < column.length; i += 1) {
    if (column[i] != null && column[i - 1] == null && column[i + 1] == null) places.push(i);
  }
  return places;
}
