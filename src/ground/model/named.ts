/** Shorter lists are looked through faster than an index of them is made. */
const fewEntries = 16;

const indexes = new WeakMap<readonly object[], ReadonlyMap<string, number>>();

/**
 * The first of that name. The API takes pods with 20,000 containers, and whoever looks for each of them in a list of
 * them all would take seconds. The list must not change after the first look.
 */
export function named<Item extends { readonly name: string }>(list: readonly Item[], name: string): Item | undefined {
  if (list.length <= fewEntries) return list.find((item) => item.name === name);
  const index = indexes.get(list) ?? indexOf(list);
  const position = index.get(name);
  return position === undefined ? undefined : list[position];
}

function indexOf(list: readonly { readonly name: string }[]): ReadonlyMap<string, number> {
  const index = new Map<string, number>();
  for (const [position, { name }] of list.entries()) if (!index.has(name)) index.set(name, position);
  indexes.set(list, index);
  return index;
}
