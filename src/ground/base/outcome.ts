/** How work ended; a failure is an outcome too, so that nobody has to be listening for it. */
export type Outcome<Result> =
  | { readonly type: "done"; readonly result: Result }
  | { readonly type: "failed"; readonly error: unknown };

/** Never rejects. */
export async function outcomeOf<Result>(
  work: (signal: AbortSignal) => Promise<Result>,
  signal: AbortSignal,
): Promise<Outcome<Result>> {
  try {
    return { type: "done", result: await work(signal) };
  } catch (error) {
    return { type: "failed", error };
  }
}
