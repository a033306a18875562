import type { Container, IdentifiedPod } from "../../src/ground/model/index.ts";
import { ClaimWorld } from "./claim-world.ts";
import { FakeClock } from "./fake-clock.ts";

export const gpu = "gpu.example.com";
export const nic = "nic.example.com";

export async function inWorld(run: (world: ClaimWorld) => Promise<void>): Promise<void> {
  const world = new ClaimWorld(new FakeClock());
  try {
    await run(world);
  } finally {
    await world.stop();
  }
}

export const main = ({ spec }: IdentifiedPod): Container => spec.containers[0] as Container;
