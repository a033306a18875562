import assert from "node:assert/strict";
import { test } from "node:test";
import { splitArguments } from "./in-process.ts";
import { settingsOf } from "./options.ts";

test("an old kubelet's command line is parted: docker's flags to the shim, the rest to the agent", () => {
  const split = splitArguments([
    ...["--root-dir=/r", "--container-runtime", "docker", "--docker_endpoint=unix:///d.sock", "--cni-bin-dir=/a,/b"],
    ...[
      "--pod-infra-container-image=pause:1",
      "--cni-cache-dir=/c",
      "-v=2",
      "--container-runtime-endpoint=unix:///s.sock",
    ],
  ]);
  assert.deepEqual(split?.agent, ["--root-dir=/r", "--pod-infra-container-image=pause:1", "-v=2"]);
  assert.deepEqual(split?.shim, {
    "docker-endpoint": "unix:///d.sock",
    "cni-bin-dir": "/a,/b",
    "pod-infra-container-image": "pause:1",
    "container-runtime-endpoint": "unix:///s.sock",
  });
  assert.ok(
    split?.warnings.includes("Flag --docker-endpoint has been deprecated, will be removed along with dockershim."),
  );
  assert.equal(splitArguments(["--container-runtime=remote"]), undefined);
  const { agent } = splitArguments(["--container-runtime=docker", "--docker-disable-shared-pid", "--v=2"]) ?? {};
  assert.deepEqual(agent, ["--v=2"], "a switch has no word of its own");
});

test("flags become settings; what is wrong with them is said", () => {
  const settings = settingsOf({ "network-plugin": "", "image-pull-progress-deadline": "30s" });
  assert.ok(!("problem" in settings));
  assert.deepEqual([settings.network, settings.pullProgressDeadlineMs], [{ plugin: "docker" }, 30_000]);
  for (const { flags, problem } of [
    { flags: { "docker-endpoint": "tcp://x" }, problem: /only support unix socket endpoint/ },
    { flags: { "network-plugin": "kubenet" }, problem: /network plugin "kubenet" not found/ },
    { flags: { "cgroup-driver": "other" }, problem: /wants cgroupfs or systemd/ },
    { flags: { "runtime-request-timeout": "soon" }, problem: /wants a duration/ },
    { flags: { "streaming-bind-addr": "here" }, problem: /wants HOST:PORT/ },
  ]) {
    const found = settingsOf(flags);
    assert.ok("problem" in found);
    assert.match(found.problem, problem);
  }
});
