import { RefusedError, readRefusal } from "./refused.ts";
import { keepKey, keyHeaders } from "./session-key.ts";
import { parseVisible } from "./visible.ts";

/** Asks the agent once. */
export async function ask<Answer>(path: string, left?: AbortSignal): Promise<Answer> {
  return parseVisible<Answer>(await askText(path, left));
}

/** The agent bounds its own looks by less: after so long the connection is dead, though nobody said so. */
const unansweredMs = 30_000;

export async function askText(path: string, left?: AbortSignal): Promise<string> {
  const bounded = new AbortController();
  const giveUp = (): void => bounded.abort();
  const timer = setTimeout(giveUp, unansweredMs);
  left?.addEventListener("abort", giveUp);
  try {
    left?.throwIfAborted();
    const response = await fetch(`api/${path}`, { headers: keyHeaders(), signal: bounded.signal });
    if (!response.ok) throw await readRefusal(response);
    return await response.text();
  } catch (error) {
    if (error instanceof RefusedError || left?.aborted === true) throw error;
    // Browsers say "Failed to fetch", and each its own.
    throw new Error("the agent does not answer", { cause: error });
  } finally {
    clearTimeout(timer);
    left?.removeEventListener("abort", giveUp);
  }
}

/** Exchanges the token of the address for a cookie. */
export async function logIn(token: string): Promise<void> {
  const response = await fetch("api/login", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ token }),
  });
  if (!response.ok) throw await readRefusal(response);
  const { key } = await response.json();
  keepKey(String(key));
}
