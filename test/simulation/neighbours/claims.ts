import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import { Dice } from "../machine/dice.ts";
import type { Machine } from "../machine/machine.ts";
import { PluginNeighbour } from "./plugin.ts";
import type { Trace } from "./trace.ts";

export const claimDriver = "claims.simulation.example";

interface Claim {
  readonly uid: string;
  readonly name: string;
}

/** A driver of resource claims, which keeps what it has prepared, whatever becomes of others. */
export class ClaimNeighbour extends PluginNeighbour {
  /** By the uid of the claim: its name. */
  readonly prepared = new Map<string, string>();
  /** Told of what is given back, before it is. */
  onReturn: (claim: string) => void = () => {};

  constructor(machine: Machine, seed: number, trace: Trace) {
    super(machine, new Dice(seed, "claims"), trace, {
      ...{ title: "the claim driver", type: "DRAPlugin", name: claimDriver, versions: ["v1.DRAPlugin"] },
    });
  }

  protected override perform(operation: string, given: unknown): object {
    const { claims } = given as { readonly claims: readonly Claim[] };
    const answers = (answer: (claim: Claim) => object): object => ({
      claims: Object.fromEntries(claims.map((claim) => [claim.uid, answer(claim)])),
    });
    switch (operation) {
      case "NodePrepareResources":
        return answers((claim) => this.#prepare(claim));
      case "NodeUnprepareResources":
        return answers((claim) => this.#takeBack(claim));
      default:
        throw new GrpcError("Unimplemented", `unknown method ${operation}`);
    }
  }

  #prepare({ uid, name }: Claim): object {
    this.prepared.set(uid, name);
    this.trace.add("claims", `prepares ${name}`);
    const device = { requestNames: ["one"], poolName: "sim", deviceName: name, cdiDeviceIds: [cdiName(name)] };
    return { error: "", devices: [device] };
  }

  #takeBack({ uid, name }: Claim): object {
    this.onReturn(name);
    this.prepared.delete(uid);
    this.trace.add("claims", `takes ${name} back`);
    return { error: "" };
  }
}

/** By which a container has what was claimed. */
export function cdiName(claim: string): string {
  return `${claimDriver}/claim=${claim}`;
}
