import { setMaxListeners } from "node:events";
import { KubeClients, type KubeClientsSettings, parseKubeconfig } from "../../src/connections/kube/index.ts";
import { type Clock, type Logger, silentLogger, systemClock } from "../../src/ground/base/index.ts";
import { ApiStandIn, type Protocol, type ServerTls } from "./api-stand-in.ts";
import type { FakeClock } from "./fake-clock.ts";
import { TestAuthority } from "./test-certificates.ts";
import { soon } from "./until.ts";

export const never = new AbortController().signal;
setMaxListeners(0, never);

export const generous: KubeClientsSettings = {
  userAgent: "kubelet/v1.34.11 (linux/amd64) nodelet/test",
  main: { qps: 1_000, burst: 1_000 },
  events: { qps: 1_000, burst: 1_000 },
  heartbeatTimeoutMs: 10_000,
};

export interface ClientOptions {
  readonly user?: object;
  readonly cluster?: object;
  readonly settings?: Partial<KubeClientsSettings>;
  readonly clock?: Clock;
  readonly log?: Logger;
  readonly environment?: Record<string, string>;
}

/** Scripted API servers and clients that trust them, for one test file. */
export class ClientLab {
  readonly authority = new TestAuthority();

  async clients(url: string, options: ClientOptions = {}): Promise<KubeClients> {
    const ca = Buffer.from(this.authority.certificate).toString("base64");
    const cluster = { server: url, ...(url.startsWith("https") && { "certificate-authority-data": ca }) };
    const access = await parseKubeconfig(
      JSON.stringify({
        "current-context": "c",
        contexts: [{ name: "c", context: { cluster: "k", user: "u" } }],
        clusters: [{ name: "k", cluster: options.cluster ?? cluster }],
        users: [{ name: "u", user: options.user ?? { token: "open-sesame" } }],
      }),
      "kubeconfig",
    );
    const { clock = systemClock, log = silentLogger, environment = {} } = options;
    return new KubeClients(access, { ...generous, ...options.settings }, { clock, log, environment });
  }

  server(protocol: Protocol = "h2", tls: Partial<ServerTls> = {}): Promise<ApiStandIn> {
    return ApiStandIn.start({ protocol, tls: { ...this.authority.server(), ...tls } });
  }

  remove(): void {
    this.authority.remove();
  }
}

/** Moves virtual time in steps, leaving real time in between for sockets. */
export async function advanceUntil(clock: FakeClock, stepMs: number, condition: () => boolean): Promise<void> {
  const giveUp = soon();
  while (!condition()) {
    giveUp.throwIfAborted();
    await clock.advance(stepMs);
    await realTime(5);
  }
}

export async function settled(clock: FakeClock): Promise<void> {
  await realTime(20);
  await clock.advance(0);
}

export function realTime(ms: number): Promise<void> {
  return systemClock.sleep(ms, never);
}

export function openPromise(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
