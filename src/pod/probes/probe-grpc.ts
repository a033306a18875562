import { type Clock, formatDuration, goQuote, LinkedSignal, messageOf } from "../../ground/base/index.ts";
import { fairDeadline } from "./fair-deadline.ts";
import { HealthCheckRequest, HealthCheckResponse, HealthCheckResponse_ServingStatus } from "./gen/health.ts";
import { connectUntilReady } from "./grpc/connect.ts";
import { callUnary, type UnaryAnswer } from "./grpc/unary.ts";
import { isOwnLack } from "./http/dial-errors.ts";
import { joinHostPort } from "./http/url.ts";
import type { ProbeOutcome } from "./outcome.ts";
import { type ProbeTarget, probeUserAgent } from "./target.ts";

/** Healthy when the gRPC health service says SERVING. The timeout covers connecting and asking. */
export async function probeGrpc(
  { host, port, service }: ProbeTarget & { readonly type: "grpc" },
  timeoutMs: number,
  clock: Clock,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  signal.throwIfAborted();
  const authority = joinHostPort(host, port);
  using cancel = new LinkedSignal(signal);
  const timer = fairDeadline(clock, timeoutMs, () =>
    cancel.abort(new DOMException("the probe's time is over", "TimeoutError")),
  );
  let isConnected = false;
  try {
    using connection = await connectUntilReady(host, port, clock, cancel.signal);
    isConnected = true;
    const message = HealthCheckRequest.encode({ service }).finish();
    const call = { path: "/grpc.health.v1.Health/Check", authority, userAgent: probeUserAgent, timeoutMs, message };
    return judge(await callUnary(connection.session, call, cancel.signal), timeoutMs);
  } catch (error) {
    if (error instanceof Error && isOwnLack(host, error.cause)) {
      return { type: "error", state: "unknown", message: error.message };
    }
    if (signal.aborted || !cancel.signal.aborted) throw error;
    return isConnected ? callTimeout(timeoutMs) : connectTimeout(authority, timeoutMs);
  } finally {
    timer.cancel();
  }
}

function connectTimeout(authority: string, timeoutMs: number): ProbeOutcome {
  const within = `within ${formatDuration(timeoutMs)}: context deadline exceeded`;
  return { type: "failure", output: `timeout: failed to connect service ${goQuote(authority)} ${within}` };
}

function callTimeout(timeoutMs: number): ProbeOutcome {
  return { type: "failure", output: `timeout: health rpc did not complete within ${formatDuration(timeoutMs)}` };
}

const statusNames = Object.entries(HealthCheckResponse_ServingStatus);

function judge(answer: UnaryAnswer, timeoutMs: number): ProbeOutcome {
  if (answer.type === "message") return judgeMessage(answer.bytes);
  switch (answer.code) {
    case "Unimplemented": {
      const text = "this server does not implement the grpc health protocol (grpc.health.v1.Health)";
      return { type: "failure", output: `error: ${text}: ${answer.message}` };
    }
    case "DeadlineExceeded":
      return callTimeout(timeoutMs);
    default:
      return failedCall(answer.code, answer.message);
  }
}

function judgeMessage(bytes: Buffer): ProbeOutcome {
  let response: HealthCheckResponse;
  try {
    response = HealthCheckResponse.decode(bytes);
  } catch (error) {
    return failedCall("Internal", messageOf(error));
  }
  if (response.status === HealthCheckResponse_ServingStatus.SERVING) return { type: "success" };
  const name = statusNames.find(([, value]) => value === response.status)?.[0] ?? String(response.status);
  return { type: "failure", output: `service unhealthy (responded with ${goQuote(name)})` };
}

function failedCall(code: string, message: string): ProbeOutcome {
  return { type: "failure", output: `error: health rpc probe failed: rpc error: code = ${code} desc = ${message}` };
}
