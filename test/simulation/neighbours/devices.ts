import type { ContainerAllocateResponse } from "../../../src/connections/plugins/gen/device-plugin.ts";
import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import { Dice } from "../machine/dice.ts";
import type { Machine } from "../machine/machine.ts";
import { PluginNeighbour } from "./plugin.ts";
import type { Trace } from "./trace.ts";

export const deviceResource = "simulation.example/card";
/** Where a container sees which devices it has. */
export const deviceVariable = "SIMULATION_CARDS";
/** More than pods ever ask for at the same time. */
const ids = Array.from({ length: 8 }, (_, index) => `card-${index}`);

/** A device plugin: it lists what it has, and tells how a container gets it. */
export class DeviceNeighbour extends PluginNeighbour {
  constructor(machine: Machine, seed: number, trace: Trace) {
    super(machine, new Dice(seed, "devices"), trace, {
      ...{ title: "the device plugin", type: "DevicePlugin", name: deviceResource, versions: ["v1beta1"] },
    });
  }

  protected override firstOf(operation: string): object | undefined {
    if (operation !== "ListAndWatch") return undefined;
    return { devices: ids.map((ID) => ({ ID, health: "Healthy", topology: undefined })) };
  }

  protected override perform(operation: string, given: unknown): object {
    switch (operation) {
      case "GetDevicePluginOptions":
        return { preStartRequired: false, getPreferredAllocationAvailable: false };
      case "Allocate": {
        const { containerRequests } = given as { readonly containerRequests: readonly { devicesIds: string[] }[] };
        return { containerResponses: containerRequests.map(({ devicesIds }) => this.#give(devicesIds)) };
      }
      default:
        throw new GrpcError("Unimplemented", `unknown method ${operation}`);
    }
  }

  #give(asked: readonly string[]): ContainerAllocateResponse {
    const unknown = asked.find((id) => !ids.includes(id));
    if (unknown !== undefined) this.onNonsense(`device ${unknown} is asked for, which there is not`);
    this.trace.add("devices", `gives ${asked.join(" ")}`);
    return { envs: { [deviceVariable]: asked.join(",") }, mounts: [], devices: [], annotations: {}, cdiDevices: [] };
  }
}
