import { randomBytes } from "node:crypto";
import type { TaskScope } from "../../../ground/base/index.ts";
import { apiTime } from "../../../ground/model/index.ts";
import { stringAt } from "../json.ts";
import { events } from "../kinds/index.ts";
import { type ApiObject, keyOfObject } from "../object.ts";
import { createObject } from "../rest/create.ts";
import type { World } from "../rest/world.ts";
import { serverOptions } from "./namespaces.ts";

export function recordPodEvent(world: World, pod: ApiObject, type: string, reason: string, message: string): void {
  const { namespace = "", name = "", uid, resourceVersion } = pod.metadata;
  const now = apiTime(world.clock.now());
  const event = {
    metadata: { name: `${name}.${randomBytes(8).toString("hex")}` },
    involvedObject: { kind: "Pod", apiVersion: "v1", namespace, name, uid, resourceVersion },
    type,
    reason,
    message,
    source: { component: "default-scheduler" },
    reportingComponent: "default-scheduler",
    firstTimestamp: now,
    lastTimestamp: now,
    count: 1,
  };
  createObject(world, events, namespace, event, serverOptions);
}

const lifetimeMs = 60 * 60_000;
const sweepEveryMs = 60_000;

/** Events are news: they go an hour after they were last written. */
export function runEventExpiry(world: World, scope: TaskScope): void {
  scope.spawn("local API event expiry", async (signal) => {
    for (;;) {
      await world.clock.sleep(sweepEveryMs, signal);
      if (!world.store.isWritable) continue;
      const oldest = world.clock.now() - lifetimeMs;
      for (const event of world.store.list(events.storage)) {
        if (lastWritten(event) < oldest) world.store.delete(events.storage, keyOfObject(event));
      }
    }
  });
}

function lastWritten(event: ApiObject): number {
  const times = [
    event.metadata.creationTimestamp,
    stringAt(event, "lastTimestamp"),
    stringAt(event, "series", "lastObservedTime"),
  ];
  return Math.max(...times.map((time) => Date.parse(time ?? "")).filter((ms) => !Number.isNaN(ms)));
}
