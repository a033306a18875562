// `nodelet up` and `nodelet down` with a real containerd and an agent that only claims things: what the commands
// themselves do, in the cases a real agent rarely shows.
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { downCommand } from "../../src/beside/cli/down.ts";
import { layoutOf, processOf, run, signalProcess } from "../../src/beside/cli/machine/index.ts";
import { upCommand } from "../../src/beside/cli/up.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { recordIo } from "../support/command-io.ts";
import { startContainerd } from "../support/containerd.ts";
import { runRawPod } from "../support/raw-pod.ts";
import { claimSlot, releaseSlot, type Slot } from "../support/slots.ts";
import { leftSince, takeTraces } from "../support/traces.ts";

const home = fileURLToPath(new URL("../support/stand-in-home", import.meta.url));

interface Machine extends AsyncDisposable {
  readonly stateDir: string;
  readonly up: (...options: string[]) => readonly string[];
  readonly down: readonly string[];
}

/** A place for a machine whose manifests have the given fates. */
async function machineFor(fates: Readonly<Record<string, string>>): Promise<Machine> {
  const slot: Slot = await claimSlot();
  const manifests = join(slot.directory, "manifests");
  await mkdir(manifests);
  for (const [name, fate] of Object.entries(fates)) {
    const metadata = { name, annotations: { "stand-in": fate } };
    const spec = { containers: [{ name: "main", image: "localhost/nodelet/busybox:1" }] };
    await writeFile(join(manifests, `${name}.json`), JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata, spec }));
  }
  const stateDir = slot.machineDir;
  return {
    stateDir,
    up: (...options) => ["--no-api", "--state-dir", stateDir, "--manifests", manifests, ...options],
    down: ["--state-dir", stateDir, "--grace", "0"],
    [Symbol.asyncDispose]: () => releaseSlot(slot),
  };
}

test("up --detach returns when all pods are ready or completed; down leaves nothing; both may be repeated", async () => {
  const before = await takeTraces();
  {
    await using machine = await machineFor({ web: "ready", job: "succeeded" });
    const layout = layoutOf(machine.stateDir);
    for (const round of ["first", "second"]) {
      const { io, stdout, stderr } = recordIo(home);
      assert.equal(await upCommand(machine.up("--detach"), io), 0, stderr());
      assert.match(stdout(), /web: Running, 0\/1 ready, ip 10\.0\.0\.9\n/);
      assert.match(stdout(), /All 2 pods are ready or completed.*"npm run down -- --state-dir \/var\/lib/);
      assert.match(stderr(), round === "first" ? /starting containerd\n/ : /already running/);
      // This agent has none, which stops nobody.
      assert.match(stderr(), /there is no dashboard; .*agent\.log says why\n/);
    }
    assert.ok(await processOf(layout, "agent"));

    // A pod of this containerd must go as well.
    await runRawPod({
      endpoint: layout.endpoint,
      name: "raw",
      image: "localhost/nodelet/busybox:1",
      command: ["sleep", "3600"],
      cgroupParent: `${layout.cgroupRoot}/kubepods/raw`,
    });
    const first = recordIo(home);
    assert.equal(await downCommand(machine.down, first.io), 0, first.stderr());
    assert.equal(first.stdout(), "Everything is removed.\n");
    const again = recordIo(home);
    assert.equal(await downCommand(machine.down, again.io), 0);
    assert.match(again.stdout(), /Nothing to remove/);
  }
  assert.deepEqual(await leftSince(before), []);
});

test("up starts again what was killed, and down removes what is left of it", async () => {
  const before = await takeTraces();
  {
    await using machine = await machineFor({ web: "ready" });
    const layout = layoutOf(machine.stateDir);
    assert.equal(await upCommand(machine.up("--detach"), recordIo(home).io), 0);
    for (const role of ["agent", "containerd"] as const) {
      const victim = await processOf(layout, role);
      assert.ok(victim);
      await signalProcess(victim, "SIGKILL");
    }
    const { io, stderr } = recordIo(home);
    // The killed agent's socket is in the way; the real agent removes it, the stand-in leaves that to us.
    await run("rm", [join(layout.agentRoot, "nodelet.sock")]);
    assert.equal(await upCommand(machine.up("--detach"), io), 0, stderr());
    const containerd = await processOf(layout, "containerd");
    assert.ok(containerd);
    await signalProcess(containerd, "SIGKILL");
    assert.equal(await downCommand(machine.down, recordIo(home).io), 0);
  }
  assert.deepEqual(await leftSince(before), []);
});

for (const { title, fates, options, message } of [
  {
    title: "a pod fails",
    fates: { web: "ready", bad: "failed" },
    options: [],
    message: /failed: bad \(Evicted, 0\/1 ready\)/,
  },
  {
    title: "a pod is not ready in time",
    fates: { web: "ready", slow: "pending" },
    options: ["--timeout", "0.5"],
    message: /not ready after 0\.5 s: slow \(Pending, 0\/1 ready\)\. The agent goes on/,
  },
  {
    title: "the agent ends",
    fates: { web: "exit" },
    options: [],
    message: /the agent ended[\s\S]*stand-in agent: told to exit/,
  },
]) {
  test(`up --detach says what is missing and exits with 1: ${title}`, async () => {
    await using machine = await machineFor(fates);
    const { io, stderr } = recordIo(home);
    assert.equal(await upCommand(machine.up("--detach", ...options), io), 1);
    assert.match(stderr(), message);
  });
}

test("up in the foreground shows pods until Ctrl-C, which stops the agent and leaves the runtime", async () => {
  await using machine = await machineFor({ web: "ready" });
  const layout = layoutOf(machine.stateDir);
  const { io, stdout, stderr, interrupt } = recordIo(home);
  const ended = upCommand(machine.up(), io);
  const giveUp = AbortSignal.timeout(60_000);
  while (!stdout().includes("web: Running")) await systemClock.sleep(50, giveUp);
  interrupt();
  assert.equal(await ended, 0, stderr());
  assert.match(stdout(), /The pods go on running\. "npm run down/);
  assert.equal(await processOf(layout, "agent"), undefined);
  assert.ok(await processOf(layout, "containerd"));
});

test("up in the foreground ends with 1 when the agent dies", async () => {
  await using machine = await machineFor({ web: "ready" });
  const { io, stdout, stderr } = recordIo(home);
  const ended = upCommand(machine.up(), io);
  const giveUp = AbortSignal.timeout(60_000);
  while (!stdout().includes("web: Running")) await systemClock.sleep(50, giveUp);
  const agent = await processOf(layoutOf(machine.stateDir), "agent");
  assert.ok(agent);
  await signalProcess(agent, "SIGKILL");
  assert.equal(await ended, 1);
  assert.match(stderr(), /the agent ended/);
});

test("with a runtime that was there before, down removes the agent's pods and nothing else", async () => {
  await using containerd = await startContainerd();
  const { endpoint, images, cgroupRoot } = containerd;
  await using machine = await machineFor({ ours: "ready" });
  const runtime = ["--container-runtime-endpoint", endpoint];
  const { io, stderr } = recordIo(home);
  assert.equal(await upCommand(machine.up("--detach", ...runtime), io), 0, stderr());
  assert.equal(await processOf(layoutOf(machine.stateDir), "containerd"), undefined);
  const pod = { endpoint, image: images.busybox, command: ["sleep", "3600"], cgroupParent: cgroupRoot };
  const ours = await runRawPod({ ...pod, name: "ours" });
  const theirs = await runRawPod({ ...pod, name: "theirs" });

  const other = recordIo(home);
  assert.equal(await upCommand(machine.up("--detach"), other.io), 1);
  assert.match(
    other.stderr(),
    /an agent already runs .* asked for were .*containerd\.sock without an API server; remove it first/,
  );

  assert.equal(await downCommand(machine.down, recordIo(home).io), 0);
  const left = await run("ctr", ["--address", containerd.socketPath, "-n", "k8s.io", "containers", "ls", "-q"]);
  assert.ok(left.includes(theirs.sandboxId));
  assert.ok(!left.includes(ours.sandboxId));
});

for (const { title, args, code, message } of [
  {
    title: "an unknown option",
    args: ["--frob"],
    code: 2,
    message: /there is no option --frob[\s\S]*usage: nodelet up/,
  },
  {
    title: "a timeout that is no number",
    args: ["--timeout", "soon"],
    code: 2,
    message: /--timeout wants a number of seconds, .*found "soon"/,
  },
  {
    title: "an endpoint that is no socket",
    args: ["--container-runtime-endpoint", "tcp://x"],
    code: 2,
    message: /wants unix:\/\/\/PATH/,
  },
  {
    title: "a directory without manifests",
    args: ["--manifests", "/proc/self/task/empty"],
    code: 1,
    message: /there is no directory /,
  },
  { title: "a manifest with a mistake", args: ["--manifests", `${home}/bin`], code: 1, message: /bin\/nodelet: / },
]) {
  test(`up refuses ${title} before it starts anything`, async () => {
    const { io, stderr } = recordIo(home);
    assert.equal(await upCommand(["--state-dir", "/nowhere/nodelet", ...args], io), code);
    assert.match(stderr(), message);
  });
}
