import { mkdir, rm, rmdir, stat, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import {
  type handleUnaryCall,
  Server,
  ServerCredentials,
  type ServiceDefinition,
  type UntypedServiceImplementation,
} from "@grpc/grpc-js";
import { isMountPoint, loadSyscalls, mountFlags } from "../../src/connections/host/index.ts";
import {
  NodeServiceCapability_RPC_Type as Capability,
  NodeDefinition,
  type NodeExpandVolumeRequest,
  NodeGetCapabilitiesResponse,
  NodeGetInfoResponse,
  NodeGetVolumeStatsResponse,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
  type NodeUnpublishVolumeRequest,
  type NodeUnstageVolumeRequest,
} from "../../src/connections/plugins/gen/csi.ts";
import { RegistrationDefinition, type RegistrationStatus } from "../../src/connections/plugins/gen/registration.ts";
import { messageOf } from "../../src/ground/base/index.ts";

export type CsiAbility = keyof typeof abilities;

const abilities = {
  stage: Capability.STAGE_UNSTAGE_VOLUME,
  stats: Capability.GET_VOLUME_STATS,
  expand: Capability.EXPAND_VOLUME,
  mountGroup: Capability.VOLUME_MOUNT_GROUP,
  singleNodeMultiWriter: Capability.SINGLE_NODE_MULTI_WRITER,
} as const;

/** A gRPC status that a driver answers with. */
export class DriverFailure extends Error {
  readonly code: number;
  constructor(code: number, details: string) {
    super(details);
    this.code = code;
  }
}

export interface DriverCall {
  readonly method: string;
  readonly request: Readonly<Record<string, unknown>>;
}

export interface CsiDriverOptions {
  readonly name?: string;
  readonly abilities?: readonly CsiAbility[];
  readonly versions?: readonly string[];
  readonly nodeId?: string;
  readonly topology?: Readonly<Record<string, string>>;
  readonly maxVolumes?: bigint;
  /** For block volumes: the device behind a volume. */
  readonly deviceOf?: (volumeId: string) => string;
}

/**
 * A storage driver as the CSI specification wants it: a gRPC server of its own with real bind mounts, whose volumes are
 * directories that outlive it. It logs every call, is idempotent, and fails when told to.
 */
export class TestCsiDriver implements AsyncDisposable {
  readonly name: string;
  readonly calls: DriverCall[] = [];
  readonly statuses: RegistrationStatus[] = [];
  /** By method: thrown instead of doing the work, or after it. */
  readonly failures = new Map<string, { readonly error: DriverFailure; readonly when: "before" | "after" }>();
  /** By method: waited for before the work is done. */
  readonly delays = new Map<string, Promise<void>>();
  readonly #dataDir: string;
  readonly #registryDir: string;
  readonly #socketPath: string;
  readonly #options: CsiDriverOptions;
  #servers: Server[] = [];
  /** Keeps volumes mounted although it was asked to unpublish them, as a bad driver might. */
  forgetsToUnmount = false;

  constructor(directory: string, registryDir: string, options: CsiDriverOptions = {}) {
    this.name = options.name ?? "csi.example.com";
    this.#dataDir = join(directory, "volumes");
    this.#registryDir = registryDir;
    this.#socketPath = join(directory, `${this.name}.sock`);
    this.#options = options;
  }

  get registrationSocket(): string {
    return join(this.#registryDir, `${this.name}-reg.sock`);
  }

  get endpoint(): string {
    return this.#socketPath;
  }

  /** Where the data of a volume really is. */
  dataOf(volumeId: string): string {
    return join(this.#dataDir, volumeId);
  }

  /** Calls of the methods that change something, in order. */
  steps(): readonly string[] {
    const quiet = new Set(["NodeGetCapabilities", "NodeGetInfo", "GetInfo", "NotifyRegistrationStatus"]);
    return this.calls.map(({ method }) => method).filter((method) => !quiet.has(method));
  }

  lastCall(method: string): Readonly<Record<string, unknown>> {
    const call = this.calls.findLast((candidate) => candidate.method === method);
    if (call === undefined) throw new Error(`${method} was never called`);
    return call.request;
  }

  async start(): Promise<void> {
    await mkdir(this.#dataDir, { recursive: true });
    await mkdir(this.#registryDir, { recursive: true });
    await this.#serve(this.#socketPath, NodeDefinition, this.#node());
    await this.#serve(this.registrationSocket, RegistrationDefinition, this.#registration());
  }

  /** The process is gone; its mounts stay. */
  async stop(): Promise<void> {
    for (const server of this.#servers) server.forceShutdown();
    this.#servers = [];
    for (const path of [this.#socketPath, this.registrationSocket]) await rm(path, { force: true });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #serve(
    path: string,
    definition: { readonly fullName: string; readonly methods: object },
    handlers: Readonly<Record<string, (request: never) => Promise<unknown>>>,
  ): Promise<void> {
    const server = new Server({ "grpc.enable_channelz": 0 });
    const service: Record<string, unknown> = {};
    const implementation: UntypedServiceImplementation = {};
    for (const [key, method] of Object.entries(definition.methods as Record<string, GeneratedMethod>)) {
      const handler = handlers[key];
      if (handler === undefined) continue;
      service[key] = {
        path: `/${definition.fullName}/${method.name}`,
        requestStream: false,
        responseStream: false,
        requestSerialize: (message: unknown) => Buffer.from(method.requestType.encode(message).finish()),
        requestDeserialize: (bytes: Buffer) => method.requestType.decode(bytes),
        responseSerialize: (message: unknown) => Buffer.from(method.responseType.encode(message).finish()),
        responseDeserialize: (bytes: Buffer) => method.responseType.decode(bytes),
      };
      const answer: handleUnaryCall<unknown, unknown> = (call, callback) => {
        this.#answer(method.name, handler as (request: unknown) => Promise<unknown>, call.request).then(
          (value) => callback(null, value),
          (error: unknown) =>
            callback({ code: error instanceof DriverFailure ? error.code : 13, details: messageOf(error) }),
        );
      };
      implementation[key] = answer;
    }
    server.addService(service as ServiceDefinition, implementation);
    await rm(path, { force: true });
    await promisify(server.bindAsync.bind(server))(`unix:${path}`, ServerCredentials.createInsecure());
    this.#servers.push(server);
  }

  async #answer(method: string, handler: (request: unknown) => Promise<unknown>, request: unknown): Promise<unknown> {
    this.calls.push({ method, request: request as Record<string, unknown> });
    await this.delays.get(method);
    const failure = this.failures.get(method);
    if (failure?.when === "before") throw failure.error;
    const answer = await handler(request);
    if (failure?.when === "after") throw failure.error;
    return answer;
  }

  #registration() {
    const { versions = ["1.0.0"] } = this.#options;
    return {
      getInfo: async () => ({
        type: "CSIPlugin",
        name: this.name,
        endpoint: this.#socketPath,
        supportedVersions: [...versions],
      }),
      notifyRegistrationStatus: async (status: RegistrationStatus) => {
        this.statuses.push(status);
        return {};
      },
    };
  }

  #node() {
    const { nodeId = "node-1", topology = {}, maxVolumes = 0n } = this.#options;
    const can = this.#options.abilities ?? ["stage"];
    return {
      nodeGetInfo: async () =>
        NodeGetInfoResponse.fromPartial({
          nodeId,
          maxVolumesPerNode: maxVolumes,
          accessibleTopology: { segments: { ...topology } },
        }),
      nodeGetCapabilities: async () =>
        NodeGetCapabilitiesResponse.fromPartial({
          capabilities: can.map((ability) => ({ rpc: { type: abilities[ability] } })),
        }),
      nodeStageVolume: (request: NodeStageVolumeRequest) => this.#stage(request),
      nodeUnstageVolume: (request: NodeUnstageVolumeRequest) => this.#unstage(request),
      nodePublishVolume: (request: NodePublishVolumeRequest) => this.#publish(request),
      nodeUnpublishVolume: (request: NodeUnpublishVolumeRequest) => this.#unpublish(request),
      nodeExpandVolume: async ({ capacityRange }: NodeExpandVolumeRequest) => ({
        capacityBytes: capacityRange?.requiredBytes ?? 0n,
      }),
      nodeGetVolumeStats: async () =>
        NodeGetVolumeStatsResponse.fromPartial({
          usage: [
            { unit: 1, total: 1000n, used: 400n, available: 600n },
            { unit: 2, total: 100n, used: 4n, available: 96n },
          ],
        }),
    };
  }

  async #stage({ volumeId, stagingTargetPath, volumeCapability }: NodeStageVolumeRequest): Promise<object> {
    await mkdir(this.dataOf(volumeId), { recursive: true });
    // Block devices are made at publishing; there is nothing to mount here.
    if (volumeCapability?.block !== undefined || (await isMountPoint(stagingTargetPath))) return {};
    (await loadSyscalls()).mount(this.dataOf(volumeId), stagingTargetPath, "", mountFlags.bind);
    return {};
  }

  async #unstage({ stagingTargetPath }: NodeUnstageVolumeRequest): Promise<object> {
    if (await isMountPoint(stagingTargetPath)) await (await loadSyscalls()).unmount(stagingTargetPath, 0);
    return {};
  }

  async #publish(request: NodePublishVolumeRequest): Promise<object> {
    const { volumeId, targetPath, stagingTargetPath, volumeCapability, readonly } = request;
    if (await isMountPoint(targetPath)) return {};
    const calls = await loadSyscalls();
    if (volumeCapability?.block !== undefined) {
      await writeFile(targetPath, "");
      calls.mount(this.#options.deviceOf?.(volumeId) ?? "/dev/null", targetPath, "", mountFlags.bind);
      return {};
    }
    await stat(dirname(targetPath));
    await mkdir(targetPath, { recursive: true });
    await mkdir(this.dataOf(volumeId), { recursive: true });
    const source = stagingTargetPath === "" ? this.dataOf(volumeId) : stagingTargetPath;
    calls.mount(source, targetPath, "", mountFlags.bind);
    if (readonly) calls.mount("none", targetPath, "", mountFlags.bind | mountFlags.remount | mountFlags.readOnly);
    return {};
  }

  async #unpublish({ targetPath }: NodeUnpublishVolumeRequest): Promise<object> {
    if (this.forgetsToUnmount) return {};
    if (await isMountPoint(targetPath)) await (await loadSyscalls()).unmount(targetPath, 0);
    const found = await stat(targetPath).catch(() => undefined);
    if (found?.isDirectory()) await rmdir(targetPath);
    else if (found !== undefined) await unlink(targetPath);
    return {};
  }
}

interface GeneratedMethod {
  readonly name: string;
  readonly requestType: Codec;
  readonly responseType: Codec;
}

interface Codec {
  encode(message: unknown): { finish(): Uint8Array };
  decode(bytes: Uint8Array): unknown;
}
