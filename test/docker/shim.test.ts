// The shim as a process of its own, where the CRI contract says nothing: streams, kills at any moment, leftovers.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { buildBusyboxImage } from "../../src/beside/cli/machine/index.ts";
import { Engine } from "../../src/beside/dockershim/engine/index.ts";
import {
  ContainerConfig,
  CriClient,
  PodSandboxConfig,
  PodSandboxState,
  PullImageRequest,
} from "../../src/connections/cri/index.ts";
import { runTool } from "../../src/connections/host/index.ts";
import { never, systemClock } from "../../src/ground/base/index.ts";
import type { ContractSubject } from "../contract/cri-contract.ts";
import { eventually, type Pod, Pods } from "../contract/pods.ts";
import { nodelet } from "../support/daemon.ts";
import { startDocker, type TestDocker } from "../support/dockerd.ts";
import { registryCredentials, startRegistry } from "../support/registry.ts";
import { openSpdy, remoteCommand } from "../support/spdy.ts";
import { ChannelSocket } from "../support/websocket.ts";

const untilTold = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"];

describe("the shim before docker", () => {
  let docker: TestDocker;
  let shim: ChildProcess | undefined;
  let client: CriClient;
  let engine: Engine;
  const pods = new Pods();

  const start = async (): Promise<void> => {
    shim = spawn(nodelet, ["dockershim", ...docker.shimFlags], { stdio: ["ignore", "inherit", "inherit"] });
    await eventually(async () => {
      const { status } = await client.runtime.status({ verbose: false }).catch(() => ({ status: undefined }));
      return status?.conditions.every((condition) => condition.status) || undefined;
    });
  };
  const end = async (signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
    if (shim === undefined) return;
    const exited = once(shim, "exit");
    shim.kill(signal);
    await exited;
    shim = undefined;
  };

  before(async () => {
    docker = await startDocker();
    const { layout } = docker;
    client = new CriClient({ runtimeEndpoint: layout.shimEndpoint, requestTimeoutMs: 120_000 }, { clock: systemClock });
    engine = new Engine({ socketPath: layout.dockerSocket, requestTimeoutMs: 60_000 }, systemClock);
    const directory = join(layout.stateDir, "pods");
    await mkdir(directory);
    const subject: ContractSubject = {
      runtime: client.runtime,
      images: client.images,
      image: docker.images.busybox,
      directory,
      cgroupParent: layout.cgroupRoot,
      [Symbol.asyncDispose]: async () => {},
    };
    pods.use(subject);
    await start();
  });
  after(async () => {
    await end("SIGTERM");
    client?.close();
    engine?.close();
    await docker?.[Symbol.asyncDispose]();
  });

  const target = (url: string) => {
    const { port, pathname } = new URL(url);
    return { port: Number(port), path: pathname, secure: false };
  };
  const leases = async (): Promise<string[]> => {
    const { cniIpamDir, network } = docker.layout;
    return (await readdir(join(cniIpamDir, network)).catch(() => [])).filter((name) => /^\d/.test(name));
  };
  const sandboxCount = async (): Promise<number> =>
    (await engine.listContainers(["io.kubernetes.docker.type"], never)).length;

  test("exec streams: input, both outputs, code, a terminal and its size; each address is good once", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, untilTold);
    const exec = async (cmd: string[], more: object = {}) =>
      (await pods.runtime.exec({ containerId, cmd, tty: false, stdin: false, stdout: true, stderr: true, ...more }))
        .url;
    const url = await exec(["sh", "-c", "cat; echo err >&2; exit 3"], { stdin: true });
    const command = await remoteCommand(target(url), { stdin: true });
    await command.stdin?.write("in");
    await command.stdin?.end();
    assert.equal(await command.exitCode(), 3);
    assert.deepEqual([command.stdout.text, command.stderr?.text], ["in", "err\n"]);
    await assert.rejects(remoteCommand(target(url)), /404/);
    const terminal = await remoteCommand(
      target(
        await exec(["sh", "-c", "read x; until stty size | grep '25 81'; do sleep 0.1; done; read y"], {
          tty: true,
          stdin: true,
          stderr: false,
        }),
      ),
      { tty: true, stdin: true },
    );
    await terminal.resize?.write('{"Width":81,"Height":25}\n');
    await terminal.stdin?.write("go\n");
    // What a program says last may be lost with its terminal, so it stays until it was heard.
    await eventually(async () => /25 81/.test(terminal.stdout.text) || undefined);
    await terminal.stdin?.write("bye\n");
    assert.equal(await terminal.exitCode(), 0);
    await pods.remove(pod);
  });

  test("exec by WebSocket: channels, and the code at the end", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, untilTold);
    const { url } = await pods.runtime.exec({
      containerId,
      cmd: ["sh", "-c", "head -c 2; exit 4"],
      tty: false,
      stdin: true,
      stdout: true,
      stderr: true,
    });
    using socket = await ChannelSocket.open(target(url), "v4.channel.k8s.io");
    socket.send(0, "hi");
    await socket.closed;
    assert.equal(socket.text(1), "hi");
    assert.match(socket.text(3), /"ExitCode","message":"4"/);
    await pods.remove(pod);
  });

  test("a client that leaves takes its command along; attach sees what comes", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, ["sh", "-c", "while :; do echo tick; sleep 0.1; done"]);
    const { url } = await pods.runtime.exec({
      containerId,
      cmd: ["sleep", "4711"],
      tty: false,
      stdin: false,
      stdout: true,
      stderr: true,
    });
    const command = await remoteCommand(target(url));
    const running = async (): Promise<boolean> => {
      const { stdout } = await pods.runtime.execSync({ containerId, cmd: ["ps"], timeout: 20n });
      return stdout.toString().includes("sleep 4711");
    };
    await eventually(async () => (await running()) || undefined);
    command.connection[Symbol.dispose]();
    await eventually(async () => !(await running()) || undefined);
    const attached = await pods.runtime.attach({ containerId, tty: false, stdin: false, stdout: true, stderr: true });
    const seen = await remoteCommand(target(attached.url));
    await eventually(async () => seen.stdout.text.includes("tick") || undefined);
    seen.connection[Symbol.dispose]();
    await pods.remove(pod);
  });

  test("port-forward reaches what listens on the pod's loopback only; a closed port is said to be", async () => {
    const pod = await pods.run();
    await pods.startListening(pod, [
      "sh",
      "-c",
      "mkdir /w; echo here >/w/index.html; httpd -p 127.0.0.1:8080 -h /w; echo ready; sleep 1000",
    ]);
    const { url } = await pods.runtime.portForward({ podSandboxId: pod.id, port: [8080] });
    using connection = await openSpdy(target(url), "portforward.k8s.io");
    const open = async (port: number, requestid: string) => {
      const error = await connection.stream({ streamtype: "error", port: String(port), requestid });
      const data = await connection.stream({ streamtype: "data", port: String(port), requestid });
      return { error, data };
    };
    const good = await open(8080, "0");
    await good.data.write("GET / HTTP/1.0\r\n\r\n");
    await good.data.end();
    await good.data.ended;
    assert.match(good.data.text, /200 OK[\s\S]*here/);
    const bad = await open(8081, "1");
    await bad.error.ended;
    assert.match(bad.error.text, /8081.*ECONNREFUSED/);
    // As many as a page in a browser makes in an afternoon.
    for (let count = 2; count < 520; count++) {
      const { data, error } = await open(8080, String(count));
      await error.end();
      await data.write("GET / HTTP/1.0\r\n\r\n");
      assert.equal(await data.ended, "finished");
      await data.end();
    }
    const again = await pods.runtime.portForward({ podSandboxId: pod.id, port: [8080] });
    using socket = await ChannelSocket.open(target(again.url), "v4.channel.k8s.io");
    socket.send(0, "GET / HTTP/1.0\r\n\r\n");
    await socket.closed;
    assert.match(socket.text(0), /200 OK[\s\S]*here/);
    await pods.remove(pod);
  });

  test("a command that outlasts its timeout leaves no process", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, untilTold);
    await assert.rejects(
      pods.runtime.execSync({ containerId, cmd: ["sleep", "4712"], timeout: 1n }),
      /timeout 1s exceeded/,
    );
    await eventually(async () => {
      const { stdout } = await pods.runtime.execSync({ containerId, cmd: ["ps"], timeout: 20n });
      return !stdout.toString().includes("sleep 4712") || undefined;
    });
    await pods.remove(pod);
  });

  test("pod and container see names, servers and limits as asked", async () => {
    const config = PodSandboxConfig.fromPartial({
      ...(await pods.config()),
      hostname: "asked-for",
      dnsConfig: { servers: ["192.0.2.53"], searches: ["a.example", "b.example"], options: ["ndots:5"] },
    });
    const { podSandboxId } = await pods.runtime.runPodSandbox({ config, runtimeHandler: "" });
    const pod: Pod = { id: podSandboxId, config };
    const container = ContainerConfig.fromPartial({
      ...pods.containerConfig([
        "sh",
        "-c",
        "cat /etc/resolv.conf; hostname; id; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null; grep NoNewPrivs /proc/self/status; touch /x || echo read-only",
      ]),
      linux: {
        resources: { memoryLimitInBytes: 64n * 1024n * 1024n, cpuShares: 2n },
        securityContext: {
          runAsUser: { value: 1000n },
          runAsGroup: { value: 1000n },
          supplementalGroups: [2000n],
          noNewPrivs: true,
          readonlyRootfs: true,
        },
      },
    });
    const { containerId } = await pods.runtime.createContainer({
      podSandboxId,
      config: container,
      sandboxConfig: config,
    });
    await pods.runtime.startContainer({ containerId });
    const { logPath, exitCode } = await pods.untilExited(containerId);
    const log = (await readFile(logPath, "utf8")).replaceAll(/^\S+ \S+ F /gm, "");
    assert.equal(exitCode, 0);
    assert.match(
      log,
      /^nameserver 192\.0\.2\.53\nsearch a\.example b\.example\noptions ndots:5\nasked-for\nuid=1000.*2000/,
    );
    assert.match(log, /67108864\n/);
    assert.match(log, /NoNewPrivs:\s+1\n/);
    assert.match(log, /read-only/);
    await pods.remove(pod);
  });

  test("images are pulled with a login, refused without, and removed", async () => {
    await using registry = await startRegistry({ auth: "basic" });
    const image = await registry.push(
      await buildBusyboxImage({ name: "localhost/team/app:1", command: ["sh"] }),
      "team/app",
      "1",
    );
    const request = (auth: object | undefined) =>
      PullImageRequest.fromPartial({ image: { image }, ...(auth && { auth }) });
    await assert.rejects(
      pods.images.pullImage(request(undefined)),
      /no basic auth credentials|unauthorized|authentication required/,
    );
    const { imageRef } = await pods.images.pullImage(request(registryCredentials));
    const spec = { image, annotations: {}, userSpecifiedImage: "", runtimeHandler: "" };
    const { image: found } = await pods.images.imageStatus({ image: spec, verbose: false });
    assert.deepEqual([found?.repoTags, found?.id], [[image], imageRef]);
    assert.match(found?.repoDigests[0] ?? "", /^127\.0\.0\.1:\d+\/team\/app@sha256:[0-9a-f]{64}$/);
    await pods.images.removeImage({ image: { ...spec, image: found?.id ?? "" } });
    assert.equal((await pods.images.imageStatus({ image: spec, verbose: false })).image, undefined);
  });

  test("a shim killed and started again finds its pods, addresses and logs", async () => {
    const pod = await pods.run();
    const script = "i=0; while :; do i=$((i+1)); echo line $i; sleep 0.05; done";
    const id = await pods.start(pod, ["sh", "-c", script]);
    const { network } = await pods.sandboxStatus(pod.id);
    const { startedAt, logPath } = await pods.status(id);
    const lines = async (): Promise<string[]> =>
      (await readFile(logPath, "utf8"))
        .trim()
        .split("\n")
        .map((line) => line.split(" ").slice(3).join(" "));
    for (let kill = 0; kill < 3; kill++) {
      await eventually(async () => (await lines().catch(() => [])).length > 3 || undefined);
      await end("SIGKILL");
      await start();
    }
    const length = (await lines()).length;
    await eventually(async () => (await lines()).length > length || undefined);
    const all = await lines();
    assert.deepEqual(
      all,
      all.map((_, index) => `line ${index + 1}`),
      "no line is lost, and none is there twice",
    );
    assert.equal((await pods.sandboxStatus(pod.id)).network?.ip, network?.ip);
    assert.equal((await pods.status(id)).startedAt, startedAt);
    await pods.remove(pod);
  });

  test("killed at any moment of making a pod: what is left is not ready, goes when asked, and takes its address along", async () => {
    const countBefore = await sandboxCount();
    const leasesBefore = await leases();
    const networks = join(docker.layout.shimRoot, "network");
    await writeFile(join(networks, ".torn"), "{");
    for (let round = 0; round < 6; round++) {
      const name = `cut-${round}`;
      const config = await pods.config(name);
      const making = pods.runtime.runPodSandbox({ config, runtimeHandler: "" }).catch(() => undefined);
      await systemClock.sleep(40 + round * 90, never);
      await end("SIGKILL");
      await start();
      const answered = await making;
      const { items } = await pods.runtime.listPodSandbox({ filter: undefined });
      const mine = items.filter(({ metadata }) => metadata?.name === name);
      assert.ok(mine.length <= 1);
      for (const { id, state } of mine) {
        if (state === PodSandboxState.SANDBOX_READY) assert.notEqual((await pods.sandboxStatus(id)).network?.ip, "");
        else assert.equal(answered, undefined);
        await pods.runtime.stopPodSandbox({ podSandboxId: id });
        await pods.runtime.removePodSandbox({ podSandboxId: id });
      }
    }
    assert.equal(await sandboxCount(), countBefore);
    assert.deepEqual(await leases(), leasesBefore);
    assert.deepEqual(await readdir(networks), []);
  });

  test("a sandbox that docker has lost is listed until it is removed, and its address is given back", async () => {
    const pod = await pods.run();
    const containerId = await pods.start(pod, untilTold);
    const before = await leases();
    await engine.removeContainer(pod.id, never);
    const listed = async () =>
      (await pods.runtime.listPodSandbox({ filter: undefined })).items.find(({ id }) => id === pod.id);
    assert.equal((await listed())?.state, PodSandboxState.SANDBOX_NOTREADY);
    await assert.rejects(pods.sandboxStatus(pod.id), { code: "NotFound" });
    await pods.runtime.stopPodSandbox({ podSandboxId: pod.id });
    await pods.runtime.removePodSandbox({ podSandboxId: pod.id });
    assert.equal(await listed(), undefined);
    assert.equal((await leases()).length, before.length - 1);
    await assert.rejects(pods.status(containerId), { code: "NotFound" });
  });

  test("pods of another shim go on under this one: with their address, and a log of their own", async () => {
    const names = {
      "io.kubernetes.pod.name": "moved",
      "io.kubernetes.pod.namespace": "contract",
      "io.kubernetes.pod.uid": "uid-moved",
    };
    const make = async (name: string, labels: object, host: object, cmd: readonly string[]): Promise<string> => {
      const Labels = { ...names, ...labels };
      const HostConfig = { CgroupParent: docker.layout.cgroupRoot, ...host };
      const body = { Image: docker.images.busybox, Cmd: cmd, Labels, HostConfig };
      const id = await engine.createContainer(`k8s_${name}_moved_contract_uid-moved_0`, body, never);
      await engine.startContainer(id, never);
      return id;
    };
    await end("SIGTERM");
    const sandbox = { "io.kubernetes.docker.type": "podsandbox", "io.kubernetes.container.name": "POD" };
    const sandboxId = await make("POD", sandbox, { NetworkMode: "none" }, untilTold);
    const { state } = await engine.inspectContainer(sandboxId, never);
    for (const command of ["link add eth0 type veth peer name e1", "addr add 10.9.9.9/24 dev eth0"])
      await runTool("nsenter", ["-t", String(state.pid), "-n", "ip", ...command.split(" ")], never);
    const logPath = join(docker.layout.stateDir, "pods", "moved.log");
    const container = {
      "io.kubernetes.docker.type": "container",
      "io.kubernetes.container.name": "main",
      "io.kubernetes.sandbox.id": sandboxId,
      "io.kubernetes.container.logpath": logPath,
    };
    const talk = [
      "sh",
      "-c",
      "trap 'exit 0' TERM; i=0; while :; do i=$((i+1)); echo line $i; sleep 0.2 & wait $!; done",
    ];
    const id = await make("main", container, { NetworkMode: `container:${sandboxId}` }, talk);
    const engineLog = join(docker.layout.dockerRoot, "containers", id, `${id}-json.log`);
    await symlink(engineLog, logPath);
    await start();
    const status = await pods.sandboxStatus(sandboxId);
    assert.deepEqual([status.state, status.network?.ip], [PodSandboxState.SANDBOX_READY, "10.9.9.9"]);
    const lines = async () => (await readFile(logPath, "utf8")).trim().split("\n");
    await eventually(async () => (await lines()).length > 5 || undefined);
    const said = (await lines()).map((line) => line.split(" F ")[1]);
    assert.deepEqual(
      said,
      said.map((_, index) => `line ${index + 1}`),
    );
    assert.ok((await readFile(engineLog, "utf8")).split("\n").every((line) => line === "" || line.startsWith("{")));
    // Its network is none of a plugin's, which could not take it away.
    for (const made of [id, sandboxId]) await engine.removeContainer(made, never);
  });

  test("a damaged checkpoint is in nobody's way; other people's containers are nobody of ours", async () => {
    await writeFile(join(docker.layout.shimRoot, "sandbox", "f".repeat(64)), "{torn");
    await pods.runtime.listPodSandbox({ filter: undefined });
    assert.ok(!(await readdir(join(docker.layout.shimRoot, "sandbox"))).includes("f".repeat(64)));
    const stranger = await engine.createContainer(
      "k8s_main_pod-x_contract_uid-pod-x_0",
      { Image: docker.images.busybox, Cmd: ["true"] },
      never,
    );
    await assert.rejects(pods.status(stranger), { code: "NotFound" });
    await pods.runtime.removeContainer({ containerId: stranger });
    assert.equal((await engine.inspectContainer(stranger, never)).id, stranger, "it is still there");
    // Its name is one of ours, so it has to go when we need it.
    const pod = await pods.run({ name: "pod-x" });
    await pods.create(pod, ["true"]);
    await pods.remove(pod);
  });

  test("dockerd killed and started again: pods run on, the shim says so meanwhile and afterwards", async () => {
    const pod = await pods.run();
    const id = await pods.start(pod, untilTold);
    const { startedAt } = await pods.status(id);
    await docker.kill9();
    const { status } = await pods.runtime.status({ verbose: false });
    assert.deepEqual([status?.conditions[0]?.status, status?.conditions[0]?.reason], [false, "DockerDaemonNotReady"]);
    await docker.restart();
    await eventually(
      async () => (await pods.runtime.status({ verbose: false })).status?.conditions[0]?.status || undefined,
    );
    assert.equal((await pods.status(id)).startedAt, startedAt);
    assert.equal(
      (await pods.runtime.execSync({ containerId: id, cmd: ["echo", "on"], timeout: 20n })).stdout.toString(),
      "on\n",
    );
    assert.equal((await pods.sandboxStatus(pod.id)).state, PodSandboxState.SANDBOX_READY);
    await pods.remove(pod);
    await rm(join(docker.layout.stateDir, "pods"), { recursive: true });
  });
});
