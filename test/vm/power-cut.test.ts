// The power fails at any moment: no state file is torn, nothing that was acknowledged is lost, every pod comes back.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { systemClock } from "../../src/base/index.ts";
import { seededRandom } from "../support/seeded-random.ts";
import { acknowledgedObjects, installChurn, startChurn, storedObjects } from "./machine/churn.ts";
import { busyboxPod, GuestAgent, idleScript } from "./machine/guest-agent.ts";
import { VirtualMachine } from "./machine/machine.ts";
import { progress } from "./machine/progress.ts";
import { checkStateFilesAtBoot, stateFilesReport } from "./machine/state-files.ts";

const cuts = Number(process.env["NODELET_VM_POWER_CUTS"] ?? 2);
const seed = Number(process.env["NODELET_VM_SEED"] ?? 1);
const random = seededRandom(seed);
const never = new AbortController().signal;
/** Long enough for several pods to come and go while everything is being written. */
const longestChurnMs = 25_000;
const staticPods = ["first", "second", "third"];

let machine: VirtualMachine;
let agent: GuestAgent;
before(async () => {
  machine = await VirtualMachine.start({ name: "power cuts" });
});
after(() => machine?.[Symbol.asyncDispose]());

test("a file is there, whole, when the power fails right after it was saved", async () => {
  const entry = fileURLToPath(new URL("../../src/base/saved-file.ts", import.meta.url));
  const { outputFiles } = await build({
    entryPoints: [entry],
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    write: false,
  });
  await machine.putFile("/root/saved-file.mjs", Buffer.from(outputFiles[0]?.contents ?? []));
  const save = `
    import { saveFile, savePrivateFile } from "/root/saved-file.mjs";
    await savePrivateFile("/var/lib/new/directories/here/private", "private ".repeat(1000));
    await saveFile("/var/lib/replaced", "old ".repeat(1000), 0o644);
    await saveFile("/var/lib/replaced", "new ".repeat(1000), 0o644);`;
  await machine.putFile("/root/save.mjs", save);
  await machine.run("sync");
  await machine.run("node /root/save.mjs");
  await machine.powerCut();
  await machine.boot();
  assert.equal(await machine.run("cat /var/lib/new/directories/here/private"), "private ".repeat(1000).trimEnd());
  assert.equal(await machine.run("cat /var/lib/replaced"), "new ".repeat(1000).trimEnd());
});

test(`${cuts} power cuts while pods come and go (seed ${seed})`, async () => {
  agent = await GuestAgent.start(machine, { api: true });
  await installChurn(machine);
  await checkStateFilesAtBoot(machine);
  await agent.putStaticPods(staticPods.map((name) => busyboxPod(name, idleScript)));
  await agent.untilReady(staticPods.map((name) => `${name}-vm`));
  let files = 0;
  let objects = 0;
  for (let cut = 1; cut <= cuts; cut++) {
    // One in three hits the machine while it comes up from the cut before.
    if (cut === 1 || random() > 1 / 3) await startChurn(machine, cut);
    const afterMs = random() * longestChurnMs;
    await systemClock.sleep(afterMs, never);
    await machine.powerCut();
    progress(`cut ${cut} of ${cuts}, ${(afterMs / 1000).toFixed(1)} s into it`);
    await machine.boot();
    const checked = await assertUnharmed();
    files += checked.files;
    objects += checked.objects;
  }
  progress(`${cuts} cuts, ${files} state files read, ${objects} acknowledged objects looked for, none lost`);
});

async function assertUnharmed(): Promise<{ readonly files: number; readonly objects: number }> {
  const { count, problems } = await stateFilesReport(machine);
  assert.deepEqual(problems, [], "state files that can't be read");
  assert.ok(count > 0, "there are state files");
  await machine.until("agent and API server run", "systemctl is-active nodelet nodelet-api");
  const stored = await storedObjects(machine);
  const expected = await acknowledgedObjects(machine);
  assert.deepEqual(
    expected.filter((object) => !stored.has(object)),
    [],
    "objects that were acknowledged and are gone",
  );
  const podsOfApi = [...stored].flatMap((object) => /^pods (churn-.*)/.exec(object)?.[1] ?? []);
  const hasFlip = (await machine.attempt("test -e /etc/kubernetes/manifests/flip.json")).code === 0;
  const names = [...staticPods, ...(hasFlip ? ["flip"] : [])].map((name) => `${name}-vm`);
  await agent.untilReady([...names, ...podsOfApi]);
  // One sandbox and one container each: none was started twice.
  assert.equal((await agent.tasks()).size, 2 * (names.length + podsOfApi.length));
  assert.equal(await agent.property("NRestarts"), "0", "the agent started at the first try");
  return { files: count, objects: expected.length };
}
