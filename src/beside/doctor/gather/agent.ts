import { request } from "node:http";
import { hasCode, LinkedSignal, messageOf } from "../../../ground/base/index.ts";
import type { ConfigDrift, ConfigReport } from "../../../ground/config/index.ts";
import type { Pod } from "../../../ground/model/index.ts";
import type { ExaminedWorld } from "../world.ts";
import { secondsText } from "./patience.ts";

/** What the agent of this machine says of itself. */
export type AgentFacts =
  | { readonly state: "absent"; readonly socket: string }
  /** `isDenied`: it answers root only. */
  | { readonly state: "silent"; readonly socket: string; readonly problem: string; readonly isDenied: boolean }
  | { readonly state: "older"; readonly socket: string }
  | {
      readonly state: "running";
      readonly socket: string;
      readonly self: AgentSelf;
      readonly config: ConfigReport & { readonly drift: ConfigDrift };
      readonly pods: readonly Pod[];
      readonly waiting: readonly PodInWait[];
    };

/** The answer of `GET /self`. */
export interface AgentSelf {
  readonly version: string;
  readonly kubeletVersion: string;
  readonly pid: number;
  readonly startedAt: number;
  readonly now: number;
  readonly leavesHostAlone: boolean;
  readonly health: readonly {
    readonly name: string;
    readonly health: { readonly state: "ok" | "waiting" | "failed"; readonly reason?: string };
    readonly sinceMs: number;
    readonly provenMs?: number;
  }[];
  readonly runtime?: {
    readonly name: string;
    readonly version: string;
    readonly cgroupDriver: string;
    readonly isOutdated: boolean;
    readonly problem?: string;
  };
  readonly certificates: { readonly client?: CertificateProgress; readonly server?: CertificateProgress };
  readonly events?: { readonly waiting: number; readonly lost: number };
  readonly watches: readonly {
    readonly of: string;
    readonly hasSynced: boolean;
    readonly heardMs?: number;
    readonly problem?: string;
  }[];
  /** What was left on the disk of the root directory, hour by hour, the oldest first. */
  readonly diskHistory?: readonly { readonly at: number; readonly availableBytes: number }[];
  readonly probes?: readonly ProbeCost[];
}

/** How long attempts of a probe take on average. */
export interface ProbeCost {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly type: string;
  readonly meanMs: number;
}

export interface CertificateProgress {
  readonly kept?: { readonly notBefore: number; readonly notAfter: number; readonly dueAt: number };
  readonly askingSince?: number;
  readonly failures: number;
}

/** Of the answer of `GET /waiting`. */
export interface PodInWait {
  readonly namespace: string;
  readonly name: string;
  readonly waitingFor: { readonly reason: string; readonly message: string; readonly since: number };
}

/** The agent has no such view. */
const missing = "no such view";

/** Each question has so long; an agent that hangs must not make the doctor hang. */
const usualMs = 1_000;
const longestAnswer = 16 * 1024 * 1024;

/** The agent behind the socket, and how it is asked. */
type Asked = Pick<ExaminedWorld, "socket" | "clock" | "patience">;

export async function examineAgent(asked: Asked, signal: AbortSignal): Promise<AgentFacts> {
  const { socket } = asked;
  try {
    const [config, self, pods, waiting] = await Promise.all([
      ask<ConfigReport & { readonly drift: ConfigDrift }>(asked, "/config", signal),
      ask<AgentSelf>(asked, "/self", signal),
      ask<{ readonly items: readonly Pod[] | null }>(asked, "/pods", signal),
      ask<{ readonly pods: readonly PodInWait[] }>(asked, "/waiting", signal),
    ]);
    if (config === missing || self === missing || pods === missing || waiting === missing)
      return { state: "older", socket };
    return { state: "running", socket, config, self, pods: pods.items ?? [], waiting: waiting.pods };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (hasCode(error, "ENOENT", "ECONNREFUSED", "ENOTSOCK")) return { state: "absent", socket };
    return { state: "silent", socket, problem: messageOf(error), isDenied: hasCode(error, "EACCES", "EPERM") };
  }
}

async function ask<Answer>(
  { socket, clock, patience }: Asked,
  path: string,
  signal: AbortSignal,
): Promise<Answer | typeof missing> {
  const withinMs = usualMs * patience;
  using bounded = new LinkedSignal(signal);
  const late = (): void => bounded.abort(new Error(`no answer to ${path} within ${secondsText(withinMs)}`));
  const timer = clock.after(withinMs, late);
  try {
    const { status, body } = await get(socket, path, bounded.signal);
    if (status === 404) return missing;
    if (status !== 200) throw new Error(`the agent answered ${path} with ${status}: ${body.slice(0, 200).trim()}`);
    return JSON.parse(body) as Answer;
  } catch (error) {
    throw bounded.signal.aborted ? bounded.signal.reason : error;
  } finally {
    timer.cancel();
  }
}

function get(socketPath: string, path: string, signal: AbortSignal): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request({ socketPath, path, signal, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on("error", reject);
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > longestAnswer)
          response.destroy(new Error(`${path}: the answer is longer than ${longestAnswer} bytes`));
        else chunks.push(chunk);
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString() }));
    });
    asked.on("error", reject).end();
  });
}
