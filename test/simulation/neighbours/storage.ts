import { NodeServiceCapability_RPC_Type as Capability } from "../../../src/connections/plugins/gen/csi.ts";
import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import { Dice } from "../machine/dice.ts";
import type { Machine } from "../machine/machine.ts";
import { PluginNeighbour } from "./plugin.ts";
import type { Trace } from "./trace.ts";

export const driverName = "csi.simulation.example";
export const volumeHandle = "vol-data";

interface VolumeRequest {
  readonly volumeId: string;
  readonly stagingTargetPath: string;
  readonly targetPath: string;
}

/** A storage driver: it mounts directories of its own for those who ask. */
export class StorageNeighbour extends PluginNeighbour {
  constructor(machine: Machine, seed: number, trace: Trace) {
    super(machine, new Dice(seed, "storage"), trace, {
      ...{ title: "the storage driver", type: "CSIPlugin", name: driverName, versions: ["1.0.0"] },
    });
  }

  protected override perform(operation: string, given: unknown): object {
    const request = given as VolumeRequest;
    switch (operation) {
      case "NodeGetInfo":
        return { nodeId: "sim", maxVolumesPerNode: 0n, accessibleTopology: undefined };
      case "NodeGetCapabilities":
        return { capabilities: [{ rpc: { type: Capability.STAGE_UNSTAGE_VOLUME } }] };
      case "NodeStageVolume":
        return this.#mount(request.volumeId, request.stagingTargetPath);
      case "NodeUnstageVolume":
        return this.#unstage(request);
      case "NodePublishVolume":
        return this.#publish(request);
      case "NodeUnpublishVolume":
        return this.#unmount(request.targetPath, "and its directory");
      default:
        throw new GrpcError("Unimplemented", `unknown method ${operation}`);
    }
  }

  #publish({ volumeId, stagingTargetPath, targetPath }: VolumeRequest): object {
    if (stagingTargetPath !== "" && !this.machine.disk.isMounted(stagingTargetPath))
      this.onNonsense(`volume ${volumeId} is to be published at ${targetPath}, but is not staged`);
    return this.#mount(volumeId, targetPath);
  }

  #unstage({ volumeId, stagingTargetPath }: VolumeRequest): object {
    const users = this.machine.disk.mountsOf(sourceOf(volumeId)).filter((point) => point !== stagingTargetPath);
    if (users.length > 0) this.onNonsense(`volume ${volumeId} is to be unstaged, but is in use at ${users.join(", ")}`);
    return this.#unmount(stagingTargetPath, "alone");
  }

  /** Asked twice, a driver does it once. */
  #mount(volumeId: string, path: string): object {
    const { disk } = this.machine;
    if (disk.isMounted(path)) return {};
    const source = sourceOf(volumeId);
    try {
      disk.makeDirectories(source);
      disk.makeDirectories(path);
      disk.mountBind(source, path);
    } catch (error) {
      throw new GrpcError("Internal", String(error));
    }
    this.trace.add("driver", `mounts ${volumeId} at ${path}`);
    return {};
  }

  #unmount(path: string, what: "alone" | "and its directory"): object {
    const { disk } = this.machine;
    try {
      if (disk.isMounted(path)) {
        disk.unmount(path);
        this.trace.add("driver", `unmounts ${path}`);
      }
      if (what === "and its directory" && disk.exists(path)) disk.removeDirectory(path);
    } catch (error) {
      throw new GrpcError("Internal", String(error));
    }
    return {};
  }
}

function sourceOf(volumeId: string): string {
  return `/srv/volumes/${volumeId}`;
}
