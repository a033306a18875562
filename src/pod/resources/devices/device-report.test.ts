import assert from "node:assert/strict";
import { test } from "node:test";
import type { Pod, PodUid } from "../../../ground/model/index.ts";
import { DeviceInventory } from "./device-inventory.ts";
import { deviceReport } from "./device-report.ts";
import { nobody, withGrant } from "./device-state.ts";

const gpu = "vendor.com/gpu";
const device = (id: string, isHealthy = true, ...numaNodes: number[]) => ({ id, isHealthy, numaNodes });
const place = (uid: string, container: string) => ({ uid: uid as PodUid, container, resource: gpu });
const grant = (ids: readonly string[], byNode: readonly (readonly [number, readonly string[]])[] = [[-1, ids]]) => ({
  ids,
  byNode: new Map(byNode),
  response: new Uint8Array(),
});
const limits = { resources: { limits: { [gpu]: "1" } } };
const pod = {
  metadata: { name: "p", namespace: "n", uid: "u" },
  spec: { initContainers: [{ name: "init", ...limits }], containers: [{ name: "main", ...limits }] },
} as Pod;

test("each device with its health, its place and who has it", () => {
  const inventory = new DeviceInventory();
  inventory.list(gpu, [device("a", true, 0), device("b", false, 1), device("c")]);
  let state = withGrant(nobody, place("u", "init"), grant(["a"]));
  state = withGrant(state, place("u", "main"), { ...grant(["a"]), response: undefined });
  state = withGrant(state, place("gone", "x"), grant(["was"], [[1, ["was"]]]));
  const unknown = "the pod is not known any more; what it had is free when its source has spoken";
  assert.deepEqual(deviceReport(inventory, state, [pod]), [
    {
      resource: gpu,
      plugin: "registered",
      listed: 3,
      healthy: 2,
      given: 2,
      free: 1,
      notShown: 0,
      devices: [
        {
          id: "a",
          health: "Healthy",
          nodes: [0],
          holders: [
            {
              uid: "u",
              container: "init",
              namespace: "n",
              pod: "p",
              why: "asks for 1; later containers of the pod use it again",
            },
            {
              uid: "u",
              container: "main",
              namespace: "n",
              pod: "p",
              why: "asks for 1; its plugin has yet to say how it is used",
            },
          ],
        },
        { id: "was", health: "Unknown", nodes: [1], holders: [{ uid: "gone", container: "x", why: unknown }] },
        { id: "b", health: "Unhealthy", nodes: [1], holders: [] },
        { id: "c", health: "Healthy", nodes: [], holders: [] },
      ],
    },
  ]);
});

test("of a plugin that is away or gone, what is still held is shown; of very many devices, as many as help", () => {
  const inventory = new DeviceInventory();
  inventory.list(
    gpu,
    Array.from({ length: 100_000 }, (_, index) => device(`d${index}`)),
  );
  const state = withGrant(nobody, place("u", "main"), grant(["d99999"]));
  const [listed] = deviceReport(inventory, state, []) as readonly [Record<string, unknown> & { devices: unknown[] }];
  assert.deepEqual([listed.devices.length, listed["notShown"], listed["free"]], [101, 99_899, 99_999]);
  inventory.lose(gpu, 0);
  const [away] = deviceReport(inventory, state, []) as readonly [Record<string, unknown>];
  assert.deepEqual([away["plugin"], away["healthy"], away["free"], away["given"]], ["awaited", 0, 0, 1]);
  inventory.giveUp(10 ** 9);
  const [gone] = deviceReport(inventory, state, []) as readonly [Record<string, unknown> & { devices: unknown[] }];
  assert.deepEqual([gone["plugin"], gone["listed"], gone.devices.length], ["gone", 0, 1]);
});
