import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeClock, settle } from "../../../test/support/fake-clock.ts";
import { silentLogger, TaskScope } from "../../ground/base/index.ts";
import type { IdentifiedPod, PodStatus, PodUid } from "../../ground/model/index.ts";
import { ApiReports } from "./api-reports.ts";
import { StatusStore } from "./store.ts";

const running: PodStatus = { phase: "Running", containerStatuses: [] };

test("a mirror that was listed before its static pod was known learns of a status from before the agent's restart", async () => {
  await using scope = new TaskScope();
  const staticPod = podOf("s", "u1", { "kubernetes.io/config.source": "file", "kubernetes.io/config.hash": "h" });
  const mirror: IdentifiedPod = {
    ...podOf("s", "m1", { "kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "h" }),
    status: { phase: "Pending" },
  };
  const wanted: IdentifiedPod[] = [];
  const patched: string[] = [];
  const listeners: ((change: { readonly type: string; readonly object: IdentifiedPod }) => void)[] = [];
  const statuses = new StatusStore(silentLogger);
  statuses.restore("u1" as PodUid, running);
  const client = {
    patch: async (_resource: unknown, { name }: { readonly name: string }) => {
      patched.push(name);
      return { ...mirror, status: running };
    },
    delete: () => Promise.reject(new Error("nothing is to be deleted")),
  };
  const reports = new ApiReports(scope, {
    ...{ clock: new FakeClock(), log: silentLogger, statuses, wanted: () => wanted },
    client: client as never,
    apiPods: {
      list: () => [mirror],
      get: () => mirror,
      onChange: (listener) => listeners.push(listener),
      onListed: () => {},
    },
    workers: { pods: () => [], stateOf: () => undefined, onFinished: () => {} },
    onLeft: () => {},
    isMirrorOf: () => true,
    onSynced: () => {},
  });
  reports.follow();
  for (const listener of listeners) listener({ type: "added", object: mirror });
  await settle();
  assert.deepEqual(patched, [], "nobody knows yet whose mirror it is");
  wanted.push(staticPod);
  statuses.set(staticPod, { ...running });
  await settle();
  assert.deepEqual(patched, ["s"]);
});

function podOf(name: string, uid: string, annotations: Record<string, string>): IdentifiedPod {
  return { metadata: { name, namespace: "default", uid, annotations }, spec: { containers: [] } };
}
