import { NodeServiceCapability_RPC_Type as Capability } from "../../../src/connections/plugins/gen/csi.ts";
import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import { Dice } from "../machine/dice.ts";
import type { LocalCall, Machine } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
import { type Callee, callThrough, endCallsOf } from "./call.ts";
import type { Trace } from "./trace.ts";
import { calm, type Weather } from "./weather.ts";

export const driverName = "csi.simulation.example";
export const volumeHandle = "vol-data";

const registrationSocket = `/var/lib/kubelet/plugins_registry/${driverName}-reg.sock`;
const endpoint = `/var/lib/kubelet/plugins/${driverName}/csi.sock`;

interface VolumeRequest {
  readonly volumeId: string;
  readonly stagingTargetPath: string;
  readonly targetPath: string;
}

/** A storage driver: it comes, goes, and mounts directories of its own for those who ask. */
export class StorageNeighbour {
  weather: Weather = { ...calm };
  /** Told of what no driver should be asked for. */
  onNonsense: (what: string) => void = () => {};
  readonly #machine: Machine;
  readonly #trace: Trace;
  readonly #callee: Callee;
  #isUp = false;

  constructor(machine: Machine, seed: number, trace: Trace) {
    this.#machine = machine;
    this.#trace = trace;
    this.#callee = {
      ...{ name: "the storage driver", machine, trace, dice: new Dice(seed, "storage"), underWay: new Map() },
      weather: () => this.weather,
      errorOf: (code, _operation, text) => new GrpcError(code, text),
    };
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  start(): void {
    this.#isUp = true;
    this.#machine.disk.addSocket(registrationSocket);
  }

  /** `leaves`: what a driver that is killed does not take away. */
  stop(leaves: "its socket" | "nothing"): void {
    this.#isUp = false;
    const { disk } = this.#machine;
    if (leaves === "nothing" && disk.exists(registrationSocket)) disk.unlink(registrationSocket);
  }

  end(life: Life): void {
    endCallsOf(life, this.#callee, () => new GrpcError("Canceled", "the client is gone"));
  }

  call(socketPath: string, operation: string, request: unknown, call: LocalCall): Promise<unknown> {
    return callThrough(this.#callee, {
      ...{ ...call, operation, usualMs: [1, 30] },
      perform: async () => {
        const isKnown = socketPath === registrationSocket || socketPath === endpoint;
        if (!this.#isUp || !isKnown) throw new GrpcError("Unavailable", "connect ECONNREFUSED");
        return this.#perform(operation, request as VolumeRequest);
      },
    });
  }

  #perform(operation: string, request: VolumeRequest): object {
    switch (operation) {
      case "GetInfo":
        return { type: "CSIPlugin", name: driverName, endpoint, supportedVersions: ["1.0.0"] };
      case "NotifyRegistrationStatus":
        return {};
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
    if (stagingTargetPath !== "" && !this.#machine.disk.isMounted(stagingTargetPath))
      this.onNonsense(`volume ${volumeId} is to be published at ${targetPath}, but is not staged`);
    return this.#mount(volumeId, targetPath);
  }

  #unstage({ volumeId, stagingTargetPath }: VolumeRequest): object {
    const users = this.#machine.disk.mountsOf(sourceOf(volumeId)).filter((point) => point !== stagingTargetPath);
    if (users.length > 0) this.onNonsense(`volume ${volumeId} is to be unstaged, but is in use at ${users.join(", ")}`);
    return this.#unmount(stagingTargetPath, "alone");
  }

  /** Asked twice, a driver does it once. */
  #mount(volumeId: string, path: string): object {
    const { disk } = this.#machine;
    if (disk.isMounted(path)) return {};
    const source = sourceOf(volumeId);
    try {
      disk.makeDirectories(source);
      disk.makeDirectories(path);
      disk.mountBind(source, path);
    } catch (error) {
      throw new GrpcError("Internal", String(error));
    }
    this.#trace.add("driver", `mounts ${volumeId} at ${path}`);
    return {};
  }

  #unmount(path: string, what: "alone" | "and its directory"): object {
    const { disk } = this.#machine;
    try {
      if (disk.isMounted(path)) {
        disk.unmount(path);
        this.#trace.add("driver", `unmounts ${path}`);
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
