// kubectl on one machine with nothing but what `nodelet up` starts.
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, stat } from "node:fs/promises";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { downCommand } from "../../src/beside/cli/down.ts";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import {
  layoutOf,
  type MachineLayout,
  machineProcesses,
  processOf,
  signalProcess,
} from "../../src/beside/cli/machine/index.ts";
import { upCommand } from "../../src/beside/cli/up.ts";
import { eventually } from "../support/agent.ts";
import { recordIo } from "../support/command-io.ts";
import { Kubectl, withoutKubectl } from "../support/kubectl.ts";
import { claimSlot, releaseSlot, type Slot } from "../support/slots.ts";
import { soon } from "../support/until.ts";

const home = fileURLToPath(new URL("../..", import.meta.url));

describe("kubectl beside nodelet up", { skip: withoutKubectl }, () => {
  let slot: Slot;
  let layout: MachineLayout;
  let kubectl: Kubectl;
  const up = async (): Promise<string> => {
    const { io, stdout, stderr } = recordIo(home);
    assert.equal(await upCommand(["--detach", "--state-dir", layout.stateDir], io), 0, stdout() + stderr());
    return stderr();
  };

  before(async () => {
    slot = await claimSlot();
    layout = layoutOf(slot.machineDir);
    const userHome = join(slot.directory, "home");
    await mkdir(userHome);
    kubectl = new Kubectl(layout.adminKubeconfig, userHome);
  });
  after(() => releaseSlot(slot));

  test("up says how to use kubectl, with credentials that only root can read", async () => {
    assert.match(
      await up(),
      new RegExp(`^nodelet: kubectl works with: export KUBECONFIG=${layout.adminKubeconfig}$`, "m"),
    );
    assert.equal((await stat(layout.adminKubeconfig)).mode & 0o777, 0o600);
    assert.equal((await stat(layout.apiDir)).mode & 0o777, 0o700);
    assert.match(await kubectl.succeed("get", "nodes"), / Ready /);
  });

  test("the pods of the manifests are there to get, read and enter", async () => {
    const shown = await eventually(
      async () => {
        const rows = (await kubectl.succeed("get", "pods", "--no-headers")).trim().split("\n");
        const states = rows.map((row) => row.split(/ +/).slice(0, 3).join(" "));
        return states.filter((state) => / (1\/1|2\/2) Running$| 0\/1 Completed$/.test(state)).length === 4 && states;
      },
      "four mirror pods",
      30_000,
    );
    assert.deepEqual(shown.map((row) => row.split("-")[0]).sort(), ["clock", "greeter", "job", "web"]);
    const name = shown.find((row) => row.startsWith("web-"))?.split(" ")[0] ?? "";
    assert.equal(await kubectl.succeed("exec", name, "--", "echo", "inside"), "inside\n");
    assert.match(await kubectl.succeed("logs", shown[1]?.split(" ")[0] ?? "", "--tail=1"), /\S/);
    assert.match(await kubectl.succeed("describe", "pod", name), /Controlled By: {2}Node\//);
  });

  test("the agent hears nobody but the API server", async () => {
    const [node = ""] = (await kubectl.succeed("get", "nodes", "-o", "name")).trim().split("\n");
    const path = "{.status.daemonEndpoints.kubeletEndpoint.Port}";
    const port = await kubectl.succeed("get", node, "-o", `jsonpath=${path}`);
    assert.match(
      await kubectl.succeed("get", "--raw", `/api/v1/nodes/${node.replace("node/", "")}/proxy/pods`),
      /"PodList"/,
    );
    const asked = request(`https://127.0.0.1:${port}/pods`, { rejectUnauthorized: false, agent: false }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    response.destroy();
    assert.equal(response.statusCode, 401);
  });

  test("a pod given to kubectl runs, survives the death of the API server, and goes when it is deleted", async () => {
    const main = {
      name: "main",
      image: "localhost/nodelet/busybox:1",
      command: ["sh", "-c", "echo hello; exec sleep 1000"],
    };
    const spec = { terminationGracePeriodSeconds: 0, containers: [main] };
    await kubectl.apply({ apiVersion: "v1", kind: "Pod", metadata: { name: "mine" }, spec });
    await kubectl.succeed("wait", "--for=condition=Ready", "pod/mine", "--timeout=60s");
    const ofContainer = [
      "get",
      "pod",
      "mine",
      "-o",
      "jsonpath={.status.containerStatuses[0].containerID} {.metadata.uid}",
    ];
    const before = await kubectl.succeed(...ofContainer);
    const server = await processOf(layout, "api");
    assert.ok(server);
    await signalProcess(server, "SIGKILL");
    assert.equal(await eventually(() => kubectl.succeed(...ofContainer), "the server is back", 60_000), before);
    assert.notEqual((await processOf(layout, "api"))?.pid, server.pid);
    assert.equal(await kubectl.succeed("logs", "mine"), "hello\n");
    await kubectl.succeed("delete", "pod", "mine", "--timeout=60s");
    const client = new LocalClient(`${layout.agentRoot}/nodelet.sock`);
    await eventually(
      async () => {
        const left = await client.pods(soon());
        return !left.some(({ metadata }) => metadata?.name === "mine");
      },
      "the agent knows it no more",
      30_000,
    );
  });

  test("up again starts what was killed, with the same credentials and objects", async () => {
    await kubectl.succeed("create", "configmap", "kept", "--from-literal=a=1");
    for (const { role, ...identity } of await machineProcesses(layout)) {
      if (role !== "shim" && role !== "containerd") await signalProcess(identity, "SIGKILL");
    }
    await up();
    assert.equal(await kubectl.succeed("get", "configmap", "kept", "-o", "jsonpath={.data.a}"), "1");
  });

  test("down leaves nothing", async () => {
    const { io, stderr } = recordIo(home);
    assert.equal(await downCommand(["--state-dir", layout.stateDir], io), 0, stderr());
    assert.deepEqual(await machineProcesses(layout), []);
    // What there may be elsewhere is looked for in up-down.test.ts.
    await assert.rejects(stat(layout.stateDir), { code: "ENOENT" });
  });
});
