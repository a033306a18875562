// `nodelet up --runtime docker`: the examples on a dockerd of the machine's own, used through kubectl, through kills.
import assert from "node:assert/strict";
import { mkdir, readdir, stat } from "node:fs/promises";
import { createConnection } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { downCommand } from "../../src/beside/cli/down.ts";
import {
  endsWithin,
  layoutOf,
  type MachineLayout,
  type MachineRole,
  machineProcesses,
  processOf,
  signalProcess,
} from "../../src/beside/cli/machine/index.ts";
import { upCommand } from "../../src/beside/cli/up.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { eventually } from "../support/agent.ts";
import { recordIo } from "../support/command-io.ts";
import { freePort } from "../support/free-port.ts";
import { Kubectl } from "../support/kubectl.ts";
import { claimSlot, releaseSlot, type Slot } from "../support/slots.ts";

const home = fileURLToPath(new URL("../..", import.meta.url));
const patienceMs = 120_000;

describe("nodelet up --runtime docker", () => {
  let slot: Slot;
  let layout: MachineLayout;
  let kubectl: Kubectl;
  const up = async (): Promise<string> => {
    const { io, stdout, stderr } = recordIo(home);
    const words = ["--runtime", "docker", "--detach", "--state-dir", layout.stateDir];
    assert.equal(await upCommand(words, io), 0, stdout() + stderr());
    return stderr();
  };
  /** Id and restarts of every container that runs, by pod. */
  const running = async (): Promise<string> => {
    const path =
      "{range .items[*]}{.metadata.name} {range .status.containerStatuses[?(@.state.running)]}{.containerID}={.restartCount} {end}\n{end}";
    return (await kubectl.succeed("get", "pods", "-o", `jsonpath=${path}`)).trim().split("\n").sort().join("\n");
  };
  const ticks = async (): Promise<string[]> => (await kubectl.succeed("logs", "mine", "-c", "tick")).trim().split("\n");
  const kill9 = async (role: MachineRole): Promise<void> => {
    const found = await processOf(layout, role);
    assert.ok(found !== undefined, `there is a ${role}`);
    await signalProcess(found, "SIGKILL");
    assert.ok(await endsWithin(found, 20_000, systemClock));
  };

  before(async () => {
    slot = await claimSlot();
    layout = layoutOf(slot.machineDir);
    const userHome = join(slot.directory, "home");
    await mkdir(userHome);
    kubectl = new Kubectl(layout.adminKubeconfig, userHome);
  });
  after(() => releaseSlot(slot));

  test("the examples run, and the node says that it is docker's", async () => {
    assert.match(await up(), /starting docker\n/);
    assert.match(await kubectl.succeed("get", "nodes", "-o", "wide"), /docker:\/\/\d/);
    const shown = await eventually(
      async () => {
        const rows = (await kubectl.succeed("get", "pods", "--no-headers")).trim().split("\n");
        return rows.filter((row) => / (1\/1|2\/2) +Running | 0\/1 +Completed /.test(row)).length === 4 && rows;
      },
      "four mirror pods",
      patienceMs,
    );
    assert.deepEqual(shown.map((row) => row.split("-")[0]).sort(), ["clock", "greeter", "job", "web"]);
  });

  test("kubectl logs, exec with input and code, attach, port-forward", async () => {
    const script = "trap 'exit 0' TERM; echo begun; while read -r line; do echo \"got $line\"; done; sleep 1000 & wait";
    const main = { name: "main", image: "localhost/nodelet/busybox:1", stdin: true, command: ["sh", "-c", script] };
    const web = {
      name: "web",
      image: "localhost/nodelet/busybox:1",
      command: ["sh", "-c", "mkdir -p /w; echo local >/w/index.html; exec httpd -f -p 127.0.0.1:8080 -h /w"],
      readinessProbe: { exec: { command: ["wget", "-qO-", "http://127.0.0.1:8080"] }, periodSeconds: 1 },
    };
    const count = "trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo tick $i; sleep 0.2; done";
    const tick = { name: "tick", image: "localhost/nodelet/busybox:1", command: ["sh", "-c", count] };
    const spec = { terminationGracePeriodSeconds: 1, containers: [main, web, tick] };
    await kubectl.apply({ apiVersion: "v1", kind: "Pod", metadata: { name: "mine" }, spec });
    await kubectl.succeed("wait", "--for=condition=Ready", "pod/mine", "--timeout=120s");
    assert.equal(await kubectl.succeed("logs", "mine", "-c", "main"), "begun\n");
    const big = Buffer.alloc(3_000_000, "0123456789abcdef\n");
    const echoed = await kubectl.pipe(big, "exec", "-i", "mine", "-c", "main", "--", "cat");
    assert.ok(echoed.equals(big), `${echoed.length} bytes came back`);
    assert.equal((await kubectl.run("exec", "mine", "-c", "main", "--", "sh", "-c", "exit 5")).code, 5);
    assert.match((await kubectl.run("exec", "mine", "-c", "main", "--", "/no/such")).stderr, /\/no\/such/);
    await kubectl.pipe(Buffer.from("hello\n"), "attach", "-i", "mine", "-c", "main");
    await eventually(
      async () => /got hello/.test(await kubectl.succeed("logs", "mine", "-c", "main")),
      "its input",
      patienceMs,
    );
    const port = await freePort();
    await using _forwarding = kubectl.start("port-forward", "pod/mine", `${port}:8080`);
    const answer = await eventually(
      () => httpGet(port).catch(() => undefined),
      "what listens on loopback only",
      patienceMs,
    );
    assert.match(answer, /local/);
  });

  test("a container that ends is started again; a probe that fails ends one", async () => {
    const crash = { name: "crash", image: "localhost/nodelet/busybox:1", command: ["sh", "-c", "sleep 1; exit 3"] };
    const sick = {
      name: "sick",
      image: "localhost/nodelet/busybox:1",
      command: ["sh", "-c", "trap 'exit 0' TERM; touch /ok; sleep 1000 & wait"],
      startupProbe: { exec: { command: ["test", "-e", "/ok"] }, periodSeconds: 1, failureThreshold: 60 },
      livenessProbe: { exec: { command: ["false"] }, periodSeconds: 1, failureThreshold: 1 },
    };
    const spec = { terminationGracePeriodSeconds: 1, containers: [crash, sick] };
    await kubectl.apply({ apiVersion: "v1", kind: "Pod", metadata: { name: "unsteady" }, spec });
    await eventually(
      async () => {
        const path = "{.status.containerStatuses[*].restartCount}";
        const counts = (await kubectl.succeed("get", "pod", "unsteady", "-o", `jsonpath=${path}`))
          .split(" ")
          .map(Number);
        return counts.length === 2 && counts.every((count) => count >= 1);
      },
      "both were started again",
      patienceMs,
    );
    const path = "{.status.containerStatuses[0].lastState.terminated.exitCode}";
    assert.equal(await kubectl.succeed("get", "pod", "unsteady", "-o", `jsonpath=${path}`), "3");
    await kubectl.succeed("delete", "pod", "unsteady", "--timeout=120s");
  });

  for (const { name, roles } of [
    { name: "the agent, and the shim in it", roles: ["agent"] as const },
    { name: "dockerd", roles: ["dockerd"] as const },
    { name: "both at once", roles: ["agent", "dockerd"] as const },
  ]) {
    test(`kill -9 of ${name}: nothing is started anew, and logs go on`, async () => {
      const before = await running();
      assert.match(before, /docker:\/\/[0-9a-f]{64}=0/);
      for (const role of roles) await kill9(role);
      const old = await processOf(layout, "agent");
      // One that lives on must be ended first, or nobody would start dockerd.
      if (old !== undefined) await kill9("agent");
      await up();
      await eventually(
        async () => / Ready /.test(await kubectl.succeed("get", "nodes")),
        "the node is ready",
        patienceMs,
      );
      assert.equal(await kubectl.succeed("exec", "mine", "-c", "main", "--", "echo", "alive"), "alive\n");
      assert.equal(await running(), before);
      const before9 = await ticks();
      await eventually(async () => (await ticks()).length > before9.length + 2, "the log goes on", patienceMs);
      const all = await ticks();
      assert.deepEqual(
        all,
        all.map((_, index) => `tick ${index + 1}`),
        "no line is lost, and none is there twice",
      );
    });
  }

  test("no sandbox is left over: docker has as many as there are pods, and each address is somebody's", async () => {
    await kubectl.succeed("delete", "pod", "mine", "--timeout=120s");
    await eventually(
      async () => {
        const leases = (await readdir(join(layout.cniIpamDir, layout.network))).filter((name) => /^\d/.test(name));
        return leases.length <= 4;
      },
      "addresses are given back",
      patienceMs,
    );
  });

  test("down leaves nothing", async () => {
    const { io, stderr } = recordIo(home);
    assert.equal(await downCommand(["--state-dir", layout.stateDir], io), 0, stderr());
    assert.deepEqual(await machineProcesses(layout), []);
    await assert.rejects(stat(layout.stateDir), { code: "ENOENT" });
  });
});

/** Undefined for an empty answer: nobody is there yet. */
async function httpGet(port: number): Promise<string | undefined> {
  const socket = createConnection({ host: "127.0.0.1", port });
  return await new Promise((resolve, reject) => {
    let text = "";
    socket
      .on("data", (chunk) => (text += chunk))
      .on("error", reject)
      .on("end", () => resolve(text || undefined));
    socket.write("GET / HTTP/1.0\r\n\r\n");
  });
}
