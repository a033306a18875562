import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { formatDuration } from "../base/index.ts";
import { goQuote } from "../model/index.ts";
import { HealthCheckRequest, HealthCheckResponse, HealthCheckResponse_ServingStatus } from "./gen/health.ts";
import { joinHostPort } from "./http/url.ts";
import type { ProbeOutcome } from "./outcome.ts";
import { type ProbeTarget, probeUserAgent } from "./target.ts";

/** Healthy when the gRPC health service says SERVING. The timeout covers connecting and asking. */
export async function probeGrpc(
  { host, port, service }: ProbeTarget & { readonly type: "grpc" },
  timeoutMs: number,
  now: number,
  signal: AbortSignal,
): Promise<ProbeOutcome> {
  signal.throwIfAborted();
  const address = joinHostPort(host, port);
  const deadline = new Date(now + timeoutMs);
  const client = new Client(`${host.includes(":") ? "ipv6" : "ipv4"}:${address}`, credentials.createInsecure(), {
    "grpc.primary_user_agent": probeUserAgent,
    "grpc.default_authority": address,
    "grpc.enable_http_proxy": 0,
    "grpc.service_config_disable_resolution": 1,
    // Every probe makes its own connection; a shared one would prove nothing about a server that accepts no more.
    "grpc.use_local_subchannel_pool": 1,
    "grpc.initial_reconnect_backoff_ms": 100,
    "grpc.max_reconnect_backoff_ms": 1_000,
  });
  // Closing the client alone leaves a connection attempt to its own time limit.
  const onAbort = (): void => client.close();
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const connectError = await connected(client, deadline);
    signal.throwIfAborted();
    if (connectError !== undefined) {
      const within = `within ${formatDuration(timeoutMs)}: context deadline exceeded`;
      return { type: "failure", output: `timeout: failed to connect service ${goQuote(address)} ${within}` };
    }
    const answer = await check(client, service, deadline, signal);
    signal.throwIfAborted();
    return judge(answer, timeoutMs);
  } finally {
    signal.removeEventListener("abort", onAbort);
    client.close();
  }
}

function connected(client: Client, deadline: Date): Promise<Error | undefined> {
  return new Promise((resolve) => client.waitForReady(deadline, resolve));
}

function check(
  client: Client,
  service: string,
  deadline: Date,
  signal: AbortSignal,
): Promise<HealthCheckResponse | ServiceError> {
  return new Promise((resolve) => {
    const cancel = (): void => call.cancel();
    const call = client.makeUnaryRequest(
      "/grpc.health.v1.Health/Check",
      (request: HealthCheckRequest) => Buffer.from(HealthCheckRequest.encode(request).finish()),
      (bytes) => HealthCheckResponse.decode(bytes),
      { service },
      new Metadata(),
      { deadline },
      (error, response) => {
        signal.removeEventListener("abort", cancel);
        resolve(error ?? response ?? { status: HealthCheckResponse_ServingStatus.UNKNOWN });
      },
    );
    signal.addEventListener("abort", cancel, { once: true });
  });
}

const statusNames = Object.entries(HealthCheckResponse_ServingStatus);

function judge(answer: HealthCheckResponse | ServiceError, timeoutMs: number): ProbeOutcome {
  if (answer instanceof Error) return { type: "failure", output: describeError(answer, timeoutMs) };
  if (answer.status === HealthCheckResponse_ServingStatus.SERVING) return { type: "success" };
  const name = statusNames.find(([, value]) => value === answer.status)?.[0] ?? String(answer.status);
  return { type: "failure", output: `service unhealthy (responded with ${goQuote(name)})` };
}

function describeError({ code, details }: ServiceError, timeoutMs: number): string {
  if (code === status.UNIMPLEMENTED) {
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${details}`;
  }
  if (code === status.DEADLINE_EXCEEDED) {
    return `timeout: health rpc did not complete within ${formatDuration(timeoutMs)}`;
  }
  return `error: health rpc probe failed: rpc error: code = ${goCodeName(code)} desc = ${details}`;
}

/** NOT_FOUND as NotFound. */
function goCodeName(code: status): string {
  if (code === status.CANCELLED) return "Canceled";
  if (code === status.OK) return "OK";
  return status[code].toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
