// What the agent relies on in a CRI runtime, as tests that any runtime must pass: the simulated one, the simulated one
// behind gRPC, and real containerd.

import { after, before, describe } from "node:test";
import type { ImageService, RuntimeEventPorts, RuntimeService } from "../../src/connections/cri/index.ts";
import { containerContract } from "./containers.ts";
import { execContract } from "./exec.ts";
import { imageContract } from "./images.ts";
import { logContract } from "./logs.ts";
import { Pods } from "./pods.ts";
import { hintContract } from "./runtime-events.ts";
import { sandboxContract } from "./sandboxes.ts";
import { stopContract } from "./stopping.ts";

/** A runtime under test, and what the tests need to use it. */
export interface ContractSubject extends AsyncDisposable {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly containerdEvents?: NonNullable<RuntimeEventPorts["containerdEvents"]>;
  /** An image with a shell, present on the node. */
  readonly image: string;
  /** An existing directory that the tests may fill. */
  readonly directory: string;
  readonly cgroupParent: string;
}

export function criContract(name: string, start: () => Promise<ContractSubject>): void {
  describe(`CRI contract: ${name}`, () => {
    const pods = new Pods();
    let subject: ContractSubject | undefined;
    before(async () => {
      subject = await start();
      pods.use(subject);
    });
    after(async () => {
      await subject?.[Symbol.asyncDispose]();
    });
    sandboxContract(pods);
    containerContract(pods);
    stopContract(pods);
    execContract(pods);
    logContract(pods);
    imageContract(pods);
    hintContract(pods);
  });
}
