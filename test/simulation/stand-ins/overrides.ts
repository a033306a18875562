// Functions of Node's modules that are simulated one by one; the names are `module name`.
import { Buffer } from "node:buffer";
import { machine, uuid } from "../machine/machine.ts";

function randomBytes(size: number): Buffer {
  return Buffer.from(machine().ids.hex(size * 2), "hex");
}

export const overrides: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  "node:crypto": {
    randomUUID: () => uuid(machine().ids),
    randomBytes,
    randomInt: (low: number, high?: number) =>
      high === undefined ? machine().ids.whole(0, low - 1) : machine().ids.whole(low, high - 1),
  },
  "node:os": {
    hostname: () => "sim",
    tmpdir: () => "/tmp",
    release: () => "6.8.0",
    arch: () => "x64",
    networkInterfaces: () => ({
      eth0: [
        {
          ...{ address: "10.0.0.10", netmask: "255.255.255.0", family: "IPv4", mac: "02:00:00:00:00:01" },
          ...{ internal: false, cidr: "10.0.0.10/24" },
        },
      ],
    }),
  },
  "node:process": { kill: () => true },
  "node:perf_hooks": {
    performance: {
      now: () => machine().timeline.now,
      eventLoopUtilization: () => ({ idle: 0, active: 0, utilization: 0 }),
    },
  },
};
