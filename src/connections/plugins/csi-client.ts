import type { Clock } from "../../ground/base/index.ts";
import {
  NodeServiceCapability_RPC_Type as Capability,
  NodeDefinition,
  type NodeExpandVolumeRequest,
  type NodeGetInfoResponse,
  type NodeGetVolumeStatsResponse,
  type NodePublishVolumeRequest,
  type NodeStageVolumeRequest,
} from "./gen/csi.ts";
import { callPlugin } from "./rpc.ts";

const callMs = 2 * 60_000;

/** What a driver says it can do on a node. */
export interface CsiCapabilities {
  readonly stage: boolean;
  readonly stats: boolean;
  readonly expand: boolean;
  readonly mountGroup: boolean;
  readonly singleNodeMultiWriter: boolean;
}

/** The node service of a storage driver. */
export class CsiClient {
  readonly #socketPath: string;
  readonly #clock: Clock;

  constructor(socketPath: string, clock: Clock) {
    this.#socketPath = socketPath;
    this.#clock = clock;
  }

  nodeInfo(signal: AbortSignal): Promise<NodeGetInfoResponse> {
    return this.#call("nodeGetInfo", {}, signal);
  }

  /** Asked anew before each use: a driver may have been replaced by another version meanwhile. */
  async capabilities(signal: AbortSignal): Promise<CsiCapabilities> {
    const { capabilities } = await this.#call("nodeGetCapabilities", {}, signal);
    const has = (wanted: number): boolean => capabilities.some(({ rpc }) => rpc?.type === wanted);
    return {
      stage: has(Capability.STAGE_UNSTAGE_VOLUME),
      stats: has(Capability.GET_VOLUME_STATS),
      expand: has(Capability.EXPAND_VOLUME),
      mountGroup: has(Capability.VOLUME_MOUNT_GROUP),
      singleNodeMultiWriter: has(Capability.SINGLE_NODE_MULTI_WRITER),
    };
  }

  async stage(request: NodeStageVolumeRequest, signal: AbortSignal): Promise<void> {
    await this.#call("nodeStageVolume", request, signal);
  }

  async unstage(volumeId: string, stagingTargetPath: string, signal: AbortSignal): Promise<void> {
    await this.#call("nodeUnstageVolume", { volumeId, stagingTargetPath }, signal);
  }

  async publish(request: NodePublishVolumeRequest, signal: AbortSignal): Promise<void> {
    await this.#call("nodePublishVolume", request, signal);
  }

  async unpublish(volumeId: string, targetPath: string, signal: AbortSignal): Promise<void> {
    await this.#call("nodeUnpublishVolume", { volumeId, targetPath }, signal);
  }

  async expand(request: NodeExpandVolumeRequest, signal: AbortSignal): Promise<bigint> {
    return (await this.#call("nodeExpandVolume", request, signal)).capacityBytes;
  }

  stats(
    volumeId: string,
    volumePath: string,
    stagingTargetPath: string,
    signal: AbortSignal,
  ): Promise<NodeGetVolumeStatsResponse> {
    return this.#call("nodeGetVolumeStats", { volumeId, volumePath, stagingTargetPath }, signal);
  }

  #call<Name extends keyof typeof NodeDefinition.methods>(
    name: Name,
    request: Parameters<(typeof NodeDefinition.methods)[Name]["requestType"]["encode"]>[0],
    signal: AbortSignal,
  ): Promise<ReturnType<(typeof NodeDefinition.methods)[Name]["responseType"]["decode"]>> {
    const deadline = this.#clock.now() + callMs;
    const options = { deadline, signal };
    return callPlugin(
      this.#socketPath,
      NodeDefinition.fullName,
      NodeDefinition.methods[name],
      request as never,
      options,
    ) as never;
  }
}
