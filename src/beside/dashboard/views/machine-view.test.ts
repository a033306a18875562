import assert from "node:assert/strict";
import { test } from "node:test";
import { ShownNode } from "../../../../test/support/dashboard.ts";
import { testPod } from "../../../../test/support/pods.ts";
import { MachineLook } from "./machine-view.ts";

test("cgroups of containers have their names, and no others have", async () => {
  const node = new ShownNode();
  const id = "ab".repeat(32);
  const statuses = [{ name: "waits" }, { name: "web", containerID: `containerd://${id}` }];
  node.put({ ...testPod(), status: { phase: "Running", containerStatuses: statuses } } as never);
  const ports = node.ports();
  const details = () => ({ io: [], tasks: 1 }) as never;
  const children = (path: string) => (path === "/" ? [`cri-containerd-${id}.scope`, "system.slice"] : []);
  const look = new MachineLook({ ...ports, cgroups: { ...ports.cgroups, details, children } });
  const { cgroups } = await look.view(new AbortController().signal);
  assert.deepEqual(
    cgroups.map(({ container }) => container),
    [undefined, "web", undefined],
  );
});
