import type { Clock } from "../../ground/base/index.ts";
import { type MethodDefinition, UnixChannel } from "../../ground/grpc/index.ts";
import {
  type Claim,
  DRAPluginDefinition,
  type NodePrepareResourcesResponse,
  type NodeUnprepareResourcesResponse,
} from "./gen/dra.ts";
import { DRAResourceHealthDefinition, HealthStatus, type NodeWatchResourcesResponse } from "./gen/dra-health.ts";
import { callPlugin, toPluginError, watchPlugin } from "./rpc.ts";

/** Which claim a driver is asked about. */
export type ClaimRef = Readonly<Claim>;

/** A device of a claim as its driver describes it. */
export interface PreparedDevice {
  /** Requests of the claim that it is for; none: all. */
  readonly requests: readonly string[];
  readonly pool: string;
  readonly device: string;
  readonly cdiIds: readonly string[];
}

/** What a driver says of one claim; with an `error`, nothing was done. */
export interface ClaimAnswer {
  readonly error: string;
  readonly devices: readonly PreparedDevice[];
}

export interface ReportedHealth {
  readonly pool: string;
  readonly device: string;
  readonly health: "Healthy" | "Unhealthy" | "Unknown";
}

/** The services that we can ask, as plugins name them among their versions. */
export const draServices = ["v1.DRAPlugin", "v1beta1.DRAPlugin"] as const;
export type DraService = (typeof draServices)[number];

/** As long as the kubelet waits; dialling is part of it. */
const callMs = 45_000;
/** All claims of a pod at once: a claim has at most 32 devices, a device a few names. */
const answerBytes = 512 * 1024;
const healthBytes = 1024 * 1024;
/** More would be rubbish. */
const mostReported = 16_384;

/** One plugin of a DRA driver, asked through its socket. Every answer has a bound in bytes and time. */
export class DraClient {
  readonly endpoint: string;
  readonly #service: string;
  readonly #clock: Clock;

  constructor(endpoint: string, service: DraService, clock: Clock) {
    this.endpoint = endpoint;
    this.#service = `k8s.io.kubelet.pkg.apis.dra.${service}`;
    this.#clock = clock;
  }

  /** By the uid of the claim. */
  async prepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>> {
    const method = DRAPluginDefinition.methods.nodePrepareResources;
    const answer: NodePrepareResourcesResponse = await this.#call(method, claims, signal);
    return new Map(
      Object.entries(answer.claims).map(([uid, { error, devices }]) => [
        uid,
        {
          error,
          devices: devices.map(({ requestNames, poolName, deviceName, cdiDeviceIds }) => ({
            requests: requestNames,
            pool: poolName,
            device: deviceName,
            cdiIds: cdiDeviceIds,
          })),
        },
      ]),
    );
  }

  async unprepare(claims: readonly ClaimRef[], signal: AbortSignal): Promise<ReadonlyMap<string, ClaimAnswer>> {
    const method = DRAPluginDefinition.methods.nodeUnprepareResources;
    const answer: NodeUnprepareResourcesResponse = await this.#call(method, claims, signal);
    return new Map(Object.entries(answer.claims).map(([uid, { error }]) => [uid, { error, devices: [] }]));
  }

  /** Every message is about all devices; ends, or throws, when the plugin does or has no such service. */
  async *health(signal: AbortSignal): AsyncGenerator<readonly ReportedHealth[], void> {
    const { fullName, methods } = DRAResourceHealthDefinition;
    const bounds = { signal, maxBytes: healthBytes };
    for await (const message of watchPlugin(this.endpoint, fullName, methods.nodeWatchResources, {}, bounds)) {
      yield healthIn(message);
    }
  }

  /** Stays connected until disposed of, and says whether the plugin is there. */
  watchPresence(onChange: (isThere: boolean) => void): Disposable {
    const channel = new UnixChannel(this.endpoint, toPluginError, "kept", answerBytes);
    channel.watchPresence(onChange);
    return { [Symbol.dispose]: () => channel.close() };
  }

  #call<Answer>(method: MethodDefinition, claims: readonly ClaimRef[], signal: AbortSignal): Promise<Answer> {
    const options = { deadline: this.#clock.now() + callMs, signal, maxBytes: answerBytes };
    return callPlugin(this.endpoint, this.#service, method, { claims }, options) as Promise<Answer>;
  }
}

const healthTexts = {
  [HealthStatus.UNKNOWN]: "Unknown",
  [HealthStatus.HEALTHY]: "Healthy",
  [HealthStatus.UNHEALTHY]: "Unhealthy",
} as const;

function healthIn({ devices }: NodeWatchResourcesResponse): readonly ReportedHealth[] {
  return devices.slice(0, mostReported).map(({ device, health }) => ({
    pool: device?.poolName ?? "",
    device: device?.deviceName ?? "",
    health: healthTexts[health] ?? "Unknown",
  }));
}
