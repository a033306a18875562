import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { recordIo } from "../../../../test/support/command-io.ts";
import { systemClock } from "../../../ground/base/index.ts";
import { machineAt } from "../command.ts";
import { run } from "./command.ts";
import { containerdConfig } from "./containerd-config.ts";
import { layoutOf } from "./layout.ts";
import { claimStateDir, readMarker } from "./marker.ts";
import { chooseSubnet, cniConfig, subnetNumber } from "./network.ts";
import { endsWithin, identify, isRunning, machineProcesses, roleOf, stopProcess } from "./processes.ts";
import { removeMachine } from "./teardown.ts";

const layout = layoutOf("/var/lib/nodelet");

test("what a machine makes outside its directory is named after the directory", () => {
  const other = layoutOf("/srv/other");
  for (const name of ["network", "bridge", "cgroupRoot"] as const) {
    assert.equal(layoutOf("/var/lib/nodelet")[name], layout[name]);
    assert.notEqual(other[name], layout[name]);
  }
  assert.ok(layout.bridge.length <= 15);
});

test("a state directory too long for a socket is refused with the limit", () => {
  const limit = 107 - "/containerd.sock.ttrpc".length;
  assert.equal(layoutOf(`/${"x".repeat(limit - 1)}`).stateDir.length, limit);
  assert.throws(() => layoutOf(`/${"x".repeat(limit)}`), /found 86 bytes, at most 85 are possible/);
});

test("only an absent or empty directory is taken", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-marker-"));
  try {
    const runtime = { type: "private", subnet: "10.214.0.0/22" } as const;
    const fresh = layoutOf(join(directory, "fresh"));
    assert.equal(await readMarker(fresh), undefined);
    await claimStateDir(fresh, runtime);
    assert.deepEqual(await readMarker(fresh), { nodeletMachine: 1, runtime });
    const foreign = layoutOf(join(directory, "foreign"));
    await mkdir(foreign.stateDir);
    await writeFile(join(foreign.stateDir, "letters"), "");
    await assert.rejects(claimStateDir(foreign, runtime), /holds files that nodelet did not make \(letters\)/);
    await writeFile(foreign.markerFile, '{"name":"somebody else"}');
    await assert.rejects(readMarker(foreign), /not the marker of a nodelet machine/);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a claim that was interrupted is made again, and of two at once one fails", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-claim-"));
  try {
    const runtime = { type: "private", subnet: "10.214.0.0/22" } as const;
    const torn = layoutOf(join(directory, "torn"));
    await mkdir(torn.stateDir);
    await writeFile(torn.markerFile, "");
    await writeFile(`${torn.markerFile}.tmp`, '{"nodelet');
    assert.equal(await readMarker(torn), undefined);
    assert.equal(await removeMachine(torn, { graceMs: 0, report: () => {} }, systemClock), false);
    await claimStateDir(torn, runtime);
    assert.deepEqual(await readMarker(torn), { nodeletMachine: 1, runtime });
    const wanted = layoutOf(join(directory, "wanted"));
    const claims = await Promise.allSettled([1, 2, 3].map(() => claimStateDir(wanted, runtime)));
    assert.equal(claims.filter(({ status }) => status === "fulfilled").length, 1);
    assert.deepEqual(await readMarker(wanted), { nodeletMachine: 1, runtime });
    await writeFile(wanted.markerFile, '{"nodeletMachine":1,"run');
    await assert.rejects(readMarker(wanted), /not the marker of a nodelet machine.*choose another --state-dir/s);
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a machine is the same whatever links lead to it", async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "nodelet-link-")));
  try {
    await mkdir(join(directory, "real"));
    await symlink(join(directory, "real"), join(directory, "link"));
    const { io } = recordIo("/");
    for (const rest of ["", "/not/there/yet"]) {
      const { stateDir, bridge } = await machineAt(io, join(directory, `link${rest}`));
      assert.equal(stateDir, join(directory, `real${rest}`));
      assert.equal(bridge, layoutOf(join(directory, `real${rest}`)).bridge);
    }
  } finally {
    await rm(directory, { recursive: true });
  }
});

test("a process that only calls itself ours is not believed", async () => {
  const mine = layoutOf(`/nowhere/impostor-${process.pid}`);
  const liars = [
    spawn("sh", ["-c", "echo up; read x", "--", `--root-dir=${mine.agentRoot}`], { argv0: "node" }),
    spawn("sh", ["-c", "echo up; read x", "--config", mine.containerdConfig], { argv0: "containerd" }),
    spawn("sh", ["-c", "echo up; read x", "--", `--dir=${mine.apiDir}`], { argv0: "node" }),
  ];
  try {
    for (const liar of liars) await once(liar.stdout, "data");
    assert.deepEqual(await machineProcesses(mine), []);
  } finally {
    for (const child of liars) child.kill("SIGKILL");
  }
});

test("removing a machine that is not there removes nothing", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-foreign-"));
  try {
    await writeFile(join(directory, "letters"), "dear");
    assert.equal(await removeMachine(layoutOf(directory), { graceMs: 0, report: () => {} }, systemClock), false);
    assert.equal(await readFile(join(directory, "letters"), "utf8"), "dear");
  } finally {
    await rm(directory, { recursive: true });
  }
});

for (const { argv, role } of [
  { argv: ["containerd", "--config", layout.containerdConfig, ""], role: "containerd" },
  { argv: ["/usr/bin/containerd", "--config", layout.containerdConfig], role: "containerd" },
  { argv: ["containerd", "--config", "/etc/containerd/config.toml"], role: undefined },
  { argv: ["vi", "--config", layout.containerdConfig], role: undefined },
  { argv: ["containerd-shim-runc-v2", "-namespace", "k8s.io", "-address", layout.containerdSocket], role: "shim" },
  { argv: ["containerd-shim-runc-v2", "-address", "/run/containerd/containerd.sock"], role: undefined },
  { argv: ["node", "--enable-source-maps", "dist/nodelet.mjs", `--root-dir=${layout.agentRoot}`], role: "agent" },
  { argv: ["grep", `--root-dir=${layout.agentRoot}`], role: undefined },
  { argv: ["node", "dist/nodelet.mjs", `--root-dir=${layout.agentRoot}-2`], role: undefined },
  { argv: ["node", "dist/nodelet.mjs", "api-server", `--dir=${layout.apiDir}`], role: "api" },
  { argv: ["/bin/sh", "/opt/bin/keep-running", "nodelet", "api-server", `--dir=${layout.apiDir}`], role: "api-keeper" },
  { argv: ["/bin/sh", "/opt/bin/nodelet", "api-server", `--dir=${layout.apiDir}`], role: undefined },
  { argv: ["node", "dist/nodelet.mjs", "api-server", `--dir=${layout.apiDir}-2`], role: undefined },
  { argv: [""], role: undefined },
]) {
  test(`"${argv.join(" ")}" is ${role ?? "not ours"}`, () => assert.equal(roleOf(argv, layout), role));
}

test("a process is found by its command line and known by its start time", async () => {
  const mine = layoutOf(`/nowhere/${process.pid}`);
  const args = ["-e", "process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)"];
  const child = spawn(process.execPath, [...args, "--", `--root-dir=${mine.agentRoot}`]);
  await once(child.stdout, "data");
  const [found] = await machineProcesses(mine);
  assert.equal(found?.pid, child.pid);
  assert.equal(found?.role, "agent");
  assert.ok(found && (await isRunning(found)));
  assert.equal(await isRunning({ pid: found.pid, startTicks: "1" }), false);
  assert.equal(await endsWithin(found, 0, systemClock), false);
  const exited = once(child, "exit");
  await stopProcess(found, 0, systemClock);
  assert.deepEqual(await exited, [null, "SIGKILL"]);
  assert.equal(await identify(found.pid), undefined);
});

test("subnets differ, hold 1022 pods each and stay within 10.212.0.0/14", () => {
  const all = Array.from({ length: 256 }, (_, n) => subnetNumber(n));
  assert.equal(new Set(all).size, 256);
  assert.equal(all[0], "10.212.0.0/22");
  assert.equal(all[255], "10.215.252.0/22");
});

test("the chosen subnet is of the half for people, and stable", async () => {
  const chosen = await chooseSubnet(5);
  assert.match(chosen, /^10\.21[45]\.\d+\.0\/22$/);
  assert.equal(await chooseSubnet(5), chosen);
});

test("the CNI network carries its name, bridge, subnet and host ports", () => {
  const text = JSON.stringify(cniConfig(layout, "10.214.4.0/22"));
  for (const part of [layout.network, layout.bridge, layout.cniIpamDir, "10.214.4.0/22", "portMappings"]) {
    assert.ok(text.includes(part), part);
  }
});

test("containerd accepts its configuration and keeps to the state directory", async () => {
  const directory = await mkdtemp(join(tmpdir(), "nodelet-toml-"));
  try {
    const mine = layoutOf(directory);
    await writeFile(mine.containerdConfig, containerdConfig(mine, "overlayfs", "/usr/lib/cni", "127.0.0.1"));
    const dump = await run("containerd", ["--config", mine.containerdConfig, "config", "dump"]);
    const paths = [...dump.matchAll(/^\s*(?:root|state|address|Root|conf_dir|config_path) = "(\/.*)"$/gm)].map(
      (m) => m[1],
    );
    assert.ok(paths.length >= 6, dump);
    for (const path of paths) assert.ok(path?.startsWith(`${directory}/`), path);
    assert.match(dump, /restrict_oom_score_adj = true/);
  } finally {
    await rm(directory, { recursive: true });
  }
});
