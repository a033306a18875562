const longestTyped = 40;

/** The one of the names that was probably meant; undefined when none comes close. */
export function closestTo(typed: string, names: readonly string[]): string | undefined {
  if (typed.length > longestTyped) return undefined;
  const word = typed.toLowerCase();
  const letters = word.replace(/^-+/, "").length;
  const begun = letters >= 3 ? names.find((name) => name.startsWith(word)) : undefined;
  if (begun !== undefined) return begun;
  const [best] = names.map((name) => ({ name, slips: slipsBetween(word, name) })).sort((a, b) => a.slips - b.slips);
  // More slips than this, and it is another word.
  const mostSlips = letters < 5 ? 1 : 2;
  return best !== undefined && best.slips <= mostSlips ? best.name : undefined;
}

/** How many letters must be added, left out or changed (Levenshtein), two that changed places counting as one. */
function slipsBetween(a: string, b: string): number {
  const rows: number[][] = [Array.from({ length: b.length + 1 }, (_, index) => index)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const changed = at(i - 1, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const isSwapped = a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swapped = isSwapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY;
      row.push(Math.min(at(i - 1, j) + 1, at(i, j - 1) + 1, changed, swapped));
    }
  }
  return at(a.length, b.length);
}
