import { connect } from "node:net";
import { type Clock, waitFor } from "../../ground/base/index.ts";
import { fairDeadline } from "./fair-deadline.ts";
import { dialErrorText, dialTimeoutText, isOwnLack } from "./http/dial-errors.ts";
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
  return waitFor<ProbeOutcome>(signal, (done) => {
    const over = new AbortController();
    const socket = connect({ host, port, lookup: hostNames.lookupUntil(over.signal) });
    const failed = (output: string): void => done({ type: "failure", output });
    const timer = fairDeadline(clock, timeoutMs, () => failed(dialTimeoutText(host, port)));
    socket.once("connect", () => done({ type: "success" }));
    socket.on("error", (error) => {
      const text = dialErrorText(host, port, error);
      if (isOwnLack(host, error)) done({ type: "error", state: "unknown", message: text });
      else failed(text);
    });
    return () => {
      over.abort();
      timer.cancel();
      socket.destroy();
    };
  });
}
