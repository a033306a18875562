// What the agent relies on in a Kubernetes API server, as tests that any server must pass: ours, and a real one.
import { after, before, describe } from "node:test";
import { applyContract } from "./api/applying.ts";
import { identityContract } from "./api/identities.ts";
import { nodeObjectContract } from "./api/node-objects.ts";
import { objectContract } from "./api/objects.ts";
import { patchContract } from "./api/patches.ts";
import { podContract } from "./api/pods.ts";
import { type ApiSubject, Cluster } from "./api/subject.ts";
import { watchContract } from "./api/watching.ts";

export function apiContract(name: string, start: () => Promise<ApiSubject>): void {
  describe(`API contract: ${name}`, () => {
    const cluster = new Cluster();
    before(async () => await cluster.start(await start()));
    after(async () => await cluster.stop());
    objectContract(cluster);
    watchContract(cluster);
    patchContract(cluster);
    applyContract(cluster);
    podContract(cluster);
    nodeObjectContract(cluster);
    identityContract(cluster);
  });
}
