import { request } from "node:http";
import { type Clock, waitFor, withDeadline } from "../../../ground/base/index.ts";
import type { DoctorReport } from "../finding.ts";

const withinMs = 500;

/**
 * Tells the agent what a whole examination of it came to, for its metrics. An agent that is too old to care, or does not
 * answer now, has missed it: the report is as good without.
 */
export async function tellAgent(
  { at, summary, agent }: DoctorReport,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const late = (): Error => new Error("the agent does not listen");
  try {
    await withDeadline(clock, withinMs, late, signal, (bounded) =>
      put(agent.socket, "/doctor", JSON.stringify({ at, summary }), bounded),
    );
  } catch {
    signal.throwIfAborted();
  }
}

async function put(socketPath: string, path: string, body: string, signal: AbortSignal): Promise<void> {
  await waitFor<void>(signal, (done, fail) => {
    const sent = request({ socketPath, path, method: "PUT", agent: false }, (response) => {
      response.resume().on("error", fail).on("end", done);
    });
    sent.on("error", fail).end(body);
    return () => sent.destroy();
  });
}
