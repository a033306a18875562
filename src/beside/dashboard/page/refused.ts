import { parseVisible } from "./visible.ts";

/** The agent, or who stands before it, has said no. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Why, in the agent's words; names in them may be a pod's. Somebody else may have answered, who does not speak JSON. */
export async function readRefusal(response: Response): Promise<RefusedError> {
  let message: unknown;
  try {
    message = parseVisible<{ readonly message?: unknown }>(await response.text()).message;
  } catch {
    message = undefined;
  }
  return new RefusedError(response.status, typeof message === "string" ? message : response.statusText);
}
