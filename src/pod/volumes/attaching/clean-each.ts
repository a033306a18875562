const mostTold = 10;

/** Cleans up one after the other, also where one of them will not go: the rest is nobody's either. Throws in the end. */
export async function cleanEach<Item>(
  items: Iterable<Item>,
  what: string,
  clean: (item: Item) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const problems: unknown[] = [];
  for (const item of items) {
    try {
      await clean(item);
    } catch (error) {
      signal.throwIfAborted();
      problems.push(error);
    }
  }
  if (problems.length > 0) throw new AggregateError(problems.slice(0, mostTold), what);
}
