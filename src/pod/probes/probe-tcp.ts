import { connect } from "node:net";
import type { Clock } from "../../ground/base/index.ts";
import { fairDeadline } from "./deadline.ts";
import { dialErrorText, dialTimeoutText } from "./http/dial-errors.ts";
import { hostNames } from "./http/lookup.ts";
import type { ProbeOutcome } from "./outcome.ts";
import type { ProbeTarget } from "./target.ts";

/** Healthy when the port accepts a connection; nothing is sent. */
export function probeTcp(
  { host, port }: ProbeTarget & { readonly type: "tcp" },
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const over = new AbortController();
    const socket = connect({ host, port, lookup: hostNames.lookupUntil(over.signal) });
    const finish = (settle: () => void): void => {
      over.abort();
      timer.cancel();
      signal.removeEventListener("abort", onAbort);
      socket.destroy();
      settle();
    };
    const onAbort = (): void => finish(() => reject(signal.reason));
    const timer = fairDeadline(clock, timeoutMs, () =>
      finish(() => resolve({ type: "failure", output: dialTimeoutText(host, port) })),
    );
    signal.addEventListener("abort", onAbort, { once: true });
    socket.once("connect", () => finish(() => resolve({ type: "success" })));
    socket.on("error", (error) => finish(() => resolve({ type: "failure", output: dialErrorText(host, port, error) })));
  });
}
