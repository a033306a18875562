import { FakeRuntime, type ServedRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { CgroupDriver } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";

/** The simulated runtime on a socket, for an agent in another process. */
export async function serveFakeRuntime(socketPath: string): Promise<ServedRuntime> {
  const traits = { name: "simulated", version: "1.2.3", cgroupDriver: CgroupDriver.CGROUPFS };
  const { runtime, images } = new FakeRuntime({ clock: systemClock, ...traits });
  return await serveRuntime({ runtime, images }, socketPath);
}
