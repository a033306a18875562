import { visibleLine } from "./visible-text.ts";

/** Rows with their cells below each other. What a cell holds may come from a pod: nothing in it can pass for another. */
export function textTable(rows: readonly (readonly string[])[], indent = ""): readonly string[] {
  const shown = rows.map((row) => row.map(visibleLine));
  const widths: number[] = [];
  for (const row of shown) {
    // The last cell of a row needs no room after it.
    for (const [column, cell] of row.slice(0, -1).entries()) {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  return shown.map((row) => {
    const cells = row.map((cell, column) => (column < row.length - 1 ? cell.padEnd(widths[column] ?? 0) : cell));
    return `${indent}${cells.join("  ").trimEnd()}`;
  });
}
