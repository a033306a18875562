import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { silentLogger } from "../../ground/base/index.ts";
import { checkpointText, checksum, parseCheckpoint } from "./checkpoint-form.ts";
import { Checkpoints } from "./checkpoints.ts";

const web = { protocol: "tcp", containerPort: 80, hostPort: 8080, hostIp: "" };
const dns = { protocol: "udp", containerPort: 53, hostPort: 5353, hostIp: "127.0.0.1" };
const pod = { pod: "web", namespace: "team" };

for (const { hostNetwork, ports, sum } of [
  { hostNetwork: false, ports: [], sum: 815459779 },
  { hostNetwork: true, ports: [], sum: 996107268 },
  { hostNetwork: false, ports: [web], sum: 928727533 },
  { hostNetwork: false, ports: [web, dns], sum: 3859825999 },
]) {
  test(`a checkpoint with ${ports.length} ports has the sum that dockershim gives it, and is read back`, () => {
    const checkpoint = { ...pod, hostNetwork, ports };
    assert.equal(checksum(checkpoint), sum);
    assert.deepEqual(parseCheckpoint(checkpointText(checkpoint)), checkpoint);
  });
}

test("what cri-dockerd wrote is read too; what is damaged is not", () => {
  const fields = { version: "v1", name: "web", namespace: "team", data: {} };
  assert.deepEqual(parseCheckpoint(JSON.stringify({ ...fields, checksum: 2305795928 })), {
    ...pod,
    hostNetwork: false,
    ports: [],
  });
  for (const content of ["", "{", "[]", JSON.stringify({ ...fields, checksum: 1 })]) {
    assert.equal(parseCheckpoint(content), undefined, content);
  }
});

test("a note that is removed leaves nothing, also where it was never finished", async () => {
  const directory = await mkdtemp(join(tmpdir(), "shim-notes-"));
  try {
    const checkpoints = new Checkpoints(directory, silentLogger);
    const [whole = "", torn = ""] = ["a", "b"].map((letter) => letter.repeat(64));
    await checkpoints.save(whole, { pod: "p", namespace: "n", hostNetwork: false, ports: [] });
    await writeFile(join(directory, `${torn}.tmp`), "");
    assert.deepEqual(await checkpoints.list(), [whole]);
    for (const id of [whole, torn]) await checkpoints.remove(id);
    assert.deepEqual(await readdir(directory), []);
  } finally {
    await rm(directory, { recursive: true });
  }
});
