import type { Probe } from "../../../ground/model/index.ts";
import type { ProbeShown } from "../ports.ts";
import type { ProbeView } from "../wire.ts";
import { shownCommand } from "./redacted.ts";

export function probeView({ plan, result, nextAt, attempts }: ProbeShown): ProbeView {
  return {
    kind: plan.kind,
    how: describeProbe(plan.probe),
    result: result ?? "ended",
    periodSeconds: plan.periodMs / 1000,
    nextAt,
    outcomes: attempts,
  };
}

const longestCommand = 120;

function describeProbe({ exec, httpGet, tcpSocket, grpc }: Probe): string {
  if (exec !== undefined)
    return `runs ${shownCommand(exec.command ?? [])
      .join(" ")
      .slice(0, longestCommand)}`;
  if (httpGet !== undefined) {
    const [path] = shownCommand([httpGet.path ?? "/"]);
    return `GET ${path} on port ${httpGet.port}${httpGet.scheme === "HTTPS" ? " by HTTPS" : ""}`;
  }
  if (tcpSocket !== undefined) return `connects to port ${tcpSocket.port}`;
  return grpc === undefined ? "" : `gRPC health on port ${grpc.port}`;
}
