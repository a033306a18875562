import { CriError } from "../../../connections/cri/index.ts";
import type { Clock } from "../../../ground/base/index.ts";
import { Tokens } from "./one-time-tokens.ts";

export interface CommandStreamsAsked {
  readonly containerId: string;
  readonly tty: boolean;
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
}

export type StreamRequest =
  | ({ readonly type: "exec"; readonly cmd: readonly string[] } & CommandStreamsAsked)
  | ({ readonly type: "attach" } & CommandStreamsAsked)
  | { readonly type: "portforward"; readonly podSandboxId: string; readonly ports: readonly number[] };

/** Gives out addresses of streams, and the requests back to whoever calls them. */
export class StreamRequests {
  readonly #tokens: Tokens<StreamRequest>;
  readonly #baseUrl: () => string;

  constructor(clock: Clock, baseUrl: () => string) {
    this.#tokens = new Tokens(clock);
    this.#baseUrl = baseUrl;
  }

  exec(request: CommandStreamsAsked & { readonly cmd: readonly string[] }): string {
    requireStreams("exec", request);
    return this.#url("exec", { ...request, type: "exec" });
  }

  attach(request: CommandStreamsAsked): string {
    const { tty, stderr } = request;
    const asked = { ...request, stderr: stderr && !tty };
    requireStreams("attach", asked);
    return this.#url("attach", { ...asked, type: "attach" });
  }

  portForward({ podSandboxId, port }: { readonly podSandboxId: string; readonly port: readonly number[] }): string {
    return this.#url("portForward", { type: "portforward", podSandboxId, ports: port });
  }

  redeem(token: string): StreamRequest | undefined {
    return this.#tokens.redeem(token);
  }

  #url(operation: string, request: StreamRequest): string {
    return `${this.#baseUrl()}/${request.type}/${this.#tokens.grant(operation, request)}`;
  }
}

function requireStreams(operation: string, { tty, stdin, stdout, stderr }: CommandStreamsAsked): void {
  const invalid = (what: string): CriError => new CriError("InvalidArgument", operation, what);
  if (tty && stderr) throw invalid("tty and stderr cannot both be true");
  if (!stdin && !stdout && !stderr) throw invalid("one of stdin, stdout, or stderr must be set");
}
