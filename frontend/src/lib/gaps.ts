/** withGaps puts an empty interval into each gap of rows by time, so that no line of a chart crosses it. at is when a row begins. */
export function withGaps<T>(rows: T[], every: number, at: (row: T) => number, empty: (at: number) => T): T[] {
  return rows.flatMap((row, i) => {
    const before = rows[i - 1];

    return before !== undefined && at(row) > at(before) + every ? [empty(at(before) + every), row] : [row];
  });
}
