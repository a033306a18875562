// In place of ground/base/system-names.ts: the names of the simulated network, none of which outlives its question.
import type { LookupFunction } from "node:net";
import { machine } from "../machine/machine.ts";

export class SystemNames {
  readonly lookup: LookupFunction = (_hostname, _options, callback) => callback(null, "10.0.0.10", 4);

  resolve(hostname: string): Promise<readonly { readonly address: string; readonly family: number }[]> {
    return machine().soon(() => {
      if (hostname === "sim") return [{ address: "10.0.0.10", family: 4 }];
      throw Object.assign(new Error(`cannot find an address of ${hostname}`), { code: "ENOTFOUND" });
    });
  }
}

export const systemNames = new SystemNames();
