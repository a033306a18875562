/** For lists whose length others choose: enough that waits overlap, few enough that other pods get their turn. */
export const aFewAtOnce = 8;

/**
 * `Promise.all` over a collection whose size is not ours: at most `limit` pieces of work at once, results in order.
 * After a failure nothing new is begun; what runs is waited for, then the first failure is thrown.
 */
export async function mapAtMost<Item, Result>(
  limit: number,
  items: Iterable<Item>,
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  let failure: { readonly error: unknown } | undefined;
  await inTurns(limit, items, async (item, index) => {
    try {
      results[index] = await work(item);
    } catch (error) {
      failure ??= { error };
    }
    return failure === undefined;
  });
  if (failure !== undefined) throw failure.error;
  return results;
}

/** `Promise.allSettled` over a collection whose size is not ours: at most `limit` pieces of work at once. */
export async function settleAtMost<Item, Result>(
  limit: number,
  items: Iterable<Item>,
  work: (item: Item) => Promise<Result>,
): Promise<PromiseSettledResult<Result>[]> {
  const results: PromiseSettledResult<Result>[] = [];
  await inTurns(limit, items, async (item, index) => {
    try {
      results[index] = { status: "fulfilled", value: await work(item) };
    } catch (reason) {
      results[index] = { status: "rejected", reason };
    }
    return true;
  });
  return results;
}

/** Waits for work that was begun elsewhere, however it ends. */
export async function allEnded(work: Iterable<Promise<unknown> | undefined>): Promise<void> {
  await Promise.allSettled(work);
}

/** `step` tells whether to go on; it never rejects. */
async function inTurns<Item>(
  limit: number,
  items: Iterable<Item>,
  step: (item: Item, index: number) => Promise<boolean>,
): Promise<void> {
  const all = [...items];
  const waiting = all.entries();
  let goesOn = true;
  const lane = async (): Promise<void> => {
    // The iterator is shared: each lane takes the next item that nobody has.
    for (const [index, item] of waiting) {
      goesOn = (await step(item, index)) && goesOn;
      if (!goesOn) return;
    }
  };
  await Promise.all(Array.from({ length: Math.min(limit, all.length) }, lane));
}
