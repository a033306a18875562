import { join } from "node:path";
import { CloudSync, cloudProviderOf } from "../node/cloud/index.ts";
import type { Foundation } from "./foundation.ts";

/** The shortest time between two questions: clouds count them. */
const shortestEveryMs = 60_000;

/** Who asks the cloud about this machine; undefined where none is named. */
export function buildCloud({ config, rootDir, clock, log, wakes }: Foundation): CloudSync | undefined {
  const { flags, kubelet } = config;
  if (flags.cloudInstance === "") return undefined;
  const sync = new CloudSync({
    provider: cloudProviderOf(flags.cloudInstance, clock),
    path: join(rootDir, "nodelet", "cloud.json"),
    everyMs: Math.max(kubelet.nodeStatusUpdateFrequencyMs, shortestEveryMs),
    clock,
    log: log.named("cloud"),
  });
  sync.changed.on(wakes.node.tell);
  return sync;
}
