import { access } from "node:fs/promises";
import { isMissing } from "./errors.ts";

/**
 * What work on a path gives, or `otherwise` where nothing is at the path. Any other failure stays one: what can't be
 * looked at is not the same as what isn't there.
 */
export async function ifThere<Result>(work: Promise<Result>): Promise<Result | undefined>;
export async function ifThere<Result>(work: Promise<Result>, otherwise: Result): Promise<Result>;
export async function ifThere<Result>(work: Promise<Result>, otherwise?: unknown): Promise<unknown> {
  try {
    return await work;
  } catch (error) {
    if (isMissing(error)) return otherwise;
    throw error;
  }
}

/** Whether something is at the path that we can see; where that can't be found out, there is nothing for us. */
export async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
