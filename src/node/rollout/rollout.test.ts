import assert from "node:assert/strict";
import { test } from "node:test";
import { fileHeader } from "../../../test/support/load-config.ts";
import { RolloutWorld } from "../../../test/support/rollout-world.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { type ConfigVersion, versionOf } from "./version.ts";

const minute = 60_000;
/** Another one: NODELET_SEED=7 npm test -- src/node/rollout */
const seedOfToday = Number(process.env["NODELET_SEED"] ?? 1);
const good = (pods: number) => `${fileHeader}maxPods: ${pods}\n`;
const harmful = {
  "a port in use": `${fileHeader}port: 666\n`,
  "a wrong runtime": `${fileHeader}containerRuntimeEndpoint: unix:///run/wrong.sock\n`,
  "one that kills the process": `${fileHeader}maxPods: 13\n`,
} as const;

function configMap(text: string, resourceVersion = "1"): ConfigVersion {
  const path = `/store/checkpoint/${resourceVersion}`;
  return versionOf({
    source: { from: "configMap", namespace: "n", name: "m", key: "kubelet", uid: "u", resourceVersion },
    words: [`--config=${path}`],
    snapshot: { files: { [path]: Buffer.from(text).toString("base64") }, directories: {}, kinds: {} },
  });
}

async function started(file = good(100), seed = 1): Promise<RolloutWorld> {
  const world = new RolloutWorld(seededRandom(seed));
  world.file = file;
  await world.start();
  await world.pass(2 * minute);
  assert.notEqual(world.keeper.state.good, undefined, "the first one is known to be good after its trial");
  return world;
}

test("a change is tried, and becomes the good one when its time is over", async () => {
  const world = await started();
  await world.write(good(50));
  assert.equal(world.config?.kubelet.maxPods, 50);
  assert.equal(world.keeper.state.trial?.version, world.keeper.running.id);
  assert.deepEqual(
    world.events.splice(0).map((text) => text.split(" ")[0]),
    ["KubeletConfigChanged"],
  );
  await world.pass(2 * minute);
  assert.equal(world.keeper.state.trial, undefined);
  assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
  assert.equal(world.processes, 1, "in the same process");
});

test("an agent whose start is slow but gets on is not taken back, one that gets stuck in it is", async () => {
  const world = await started();
  world.slowStart = { stages: ["home", "runtime", "server", "volumes", "pods"], eachMs: 20_000 };
  await world.write(good(50));
  await world.pass(4 * minute);
  assert.deepEqual([world.config?.kubelet.maxPods, world.keeper.report?.error], [50, ""]);
  world.slowStart = { stages: ["home", "volumes"], eachMs: 50_000 };
  await world.write(good(60));
  await world.pass(40_000);
  assert.equal(world.config?.kubelet.maxPods, 50);
  assert.match(world.keeper.report?.error ?? "", /the agent has not started, it is at "home", for 30 s/);
});

test("settings that may change at once need no other turn", async () => {
  const world = await started();
  await world.write(`${good(100)}imageGCHighThresholdPercent: 90\n`);
  assert.equal(world.config?.kubelet.imageGCHighThresholdPercent, 90);
  assert.match(world.events.join(), /Kubelet uses local config/);
  await world.write(good(100));
  assert.equal(world.config?.kubelet.imageGCHighThresholdPercent, 85, "and back");
});

for (const [name, file] of Object.entries(harmful)) {
  test(`${name} is taken back by itself, also after the power was lost, and does not come again`, async () => {
    const world = await started();
    await world.write(file);
    await world.pass(5 * minute);
    assert.equal(world.config?.kubelet.maxPods, 100);
    assert.equal(world.config?.kubelet.port, 10250);
    assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
    assert.match(world.events.join(), /KubeletConfigRolledBack/);
    await world.kill();
    await world.start();
    await world.pass(3 * minute);
    assert.equal(world.config?.kubelet.maxPods, 100);
    assert.equal(world.config?.kubelet.port, 10250);
    const { processes } = world;
    await world.write(good(70));
    assert.equal(world.config?.kubelet.maxPods, 70, "the next one is tried all the same");
    assert.equal(world.processes, processes);
  });
}

test("one that is invalid changes nothing, and the report says what is wrong", async () => {
  const world = await started();
  await world.write(`${fileHeader}maxPods: -3\n`);
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.match(world.keeper.report?.error ?? "", /^failed to validate config: .*maxPods/);
  await world.kill();
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 100, "nor does it keep the agent from starting");
  await world.write(good(100));
  assert.equal(world.keeper.report?.error, "");
});

test("of files that can't be read it is said why, at the start and later", async () => {
  const world = await started();
  world.unreadable = new Error('"/etc/kubelet.yaml" can be written to by others than its owner (mode 666)');
  await world.look();
  assert.match(world.keeper.report?.error ?? "", /can be written to by others/);
  world.unreadable = new Error("EIO: i/o error, read");
  await world.look();
  assert.match(world.keeper.report?.error ?? "", /EIO/, "the reason of today");
  const fresh = new RolloutWorld(seededRandom(1), false);
  fresh.unreadable = world.unreadable;
  await fresh.start();
  const { outcome } = fresh;
  assert.ok(outcome !== "killed" && outcome?.kind === "invalid");
  assert.match(outcome.loaded.message, /EIO/);
});

test("what containers that run depend on is refused until the process is started again", async () => {
  const world = await started();
  await world.write(`${fileHeader}cgroupRoot: /other\n`);
  assert.equal(world.config?.kubelet.cgroupRoot, "");
  assert.match(world.keeper.report?.error ?? "", /cgroupRoot: containers that run/);
  await world.stop();
  await world.start();
  assert.equal(world.config?.kubelet.cgroupRoot, "/other");
});

test("a directory of static pods that is not there is not taken while their pods run", async () => {
  const world = await started(`${fileHeader}staticPodPath: /etc/pods\n`);
  await world.write(`${fileHeader}staticPodPath: /etc/pots\n`);
  assert.equal(world.config?.kubelet.staticPodPath, "/etc/pods");
  assert.match(world.keeper.report?.error ?? "", /staticPodPath: \/etc\/pots is not there/);
  await world.write(`${fileHeader}staticPodPath: ""\n`);
  assert.equal(world.config?.kubelet.staticPodPath, "", "to have none can only be meant");
  world.directories = ["/etc/pots"];
  await world.write(`${fileHeader}staticPodPath: /etc/pots\n`);
  assert.equal(world.config?.kubelet.staticPodPath, "/etc/pots", "by now it is there");
});

test("a directory of static pods on a dead file server holds up no configuration after it", async () => {
  const world = await started(`${fileHeader}staticPodPath: /etc/pods\n`);
  world.deadPlace = "/mnt/dead";
  const looking = world.write(`${fileHeader}staticPodPath: /mnt/dead\n`);
  await world.pass(minute);
  await looking;
  assert.equal(world.config?.kubelet.staticPodPath, "/etc/pods");
  assert.match(world.keeper.report?.error ?? "", /staticPodPath: \/mnt\/dead does not answer within 10 s/);
  await world.write(`${fileHeader}staticPodPath: /etc/pods\nmaxPods: 51\n`);
  await world.pass(minute);
  assert.equal(world.config?.kubelet.maxPods, 51);
});

test("a runtime that is down for everybody is not the fault of the new configuration", async () => {
  const world = await started();
  world.runtimeIsDown = true;
  await world.write(good(50));
  await world.pass(5 * minute);
  assert.equal(world.config?.kubelet.maxPods, 100, "the known good one waits for it");
  world.runtimeIsDown = false;
  await world.pass(minute);
  assert.equal(world.config?.kubelet.maxPods, 50, "and the new one has another chance");
  await world.pass(2 * minute);
  assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
});

test("without anything to go back to, the agent runs with what there is", async () => {
  const world = new RolloutWorld(seededRandom(1));
  world.file = harmful["a wrong runtime"];
  await world.start();
  await world.pass(3 * minute);
  assert.equal(world.isUp, true);
  assert.equal(world.keeper.state.good, undefined, "but it is not called good");
  world.file = `${fileHeader}maxPods: -1\n`;
  await world.stop();
  await world.start();
  assert.equal(world.outcome !== "killed" && world.outcome?.kind, "invalid", "as a kubelet");
});

for (const [name, file] of Object.entries(harmful)) {
  test(`${name} that comes before anything is known to be good is taken back to what worked until then`, async () => {
    const world = new RolloutWorld(seededRandom(1));
    await world.start();
    await world.pass(20_000);
    assert.equal(world.keeper.state.good, undefined, "the first trial is not over");
    await world.keeper.proposeAssigned(configMap(file), "flag");
    await world.settle();
    await world.pass(5 * minute);
    assert.equal(world.isUp, true);
    assert.equal(world.config && world.characterOf(world.config), "works");
    assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
  });
}

test("files that break before anything is known to be good do not end an agent that goes back from a trial", async () => {
  const world = new RolloutWorld(seededRandom(1));
  await world.start();
  await world.pass(20_000);
  await world.write(`${fileHeader}maxPods: -1\n`);
  await (await world.keeper.tryOut({ path: "/new.yaml", text: good(20), forMs: 2 * minute })).begin();
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 20);
  await world.keeper.back();
  await world.settle();
  assert.equal(world.isUp, true);
  assert.equal(world.config?.kubelet.maxPods, 100);
});

for (const isFollowed of [true, false]) {
  test(`a trial by hand goes back by itself, and stays when it is kept (files followed: ${isFollowed})`, async () => {
    const world = new RolloutWorld(seededRandom(1), isFollowed);
    await world.start();
    await world.pass(minute);
    const tryOut = async (text: string) => {
      const { begin } = await world.keeper.tryOut({ path: "/root/new.yaml", text, forMs: 2 * minute });
      await begin();
      await world.settle();
    };
    await tryOut(good(20));
    assert.equal(world.config?.kubelet.maxPods, 20);
    await world.pass(3 * minute);
    assert.equal(world.config?.kubelet.maxPods, 100, "nobody kept it");
    await tryOut(good(20));
    await world.kill();
    await world.start();
    assert.equal(world.config?.kubelet.maxPods, 100, "nor after a loss of power");
    await tryOut(harmful["a port in use"]);
    assert.equal(world.config?.kubelet.port, 10250);
    await tryOut(good(30));
    await world.keeper.keep();
    await world.pass(3 * minute);
    await world.kill();
    await world.start();
    assert.equal(world.config?.kubelet.maxPods, 30, "kept over a restart");
    world.file = good(40);
    await world.stop();
    await world.start();
    assert.equal(world.config?.kubelet.maxPods, 40, "until the files say something new");
    await assert.rejects(tryOut(`${fileHeader}maxPods: -1\n`), /maxPods/);
    await assert.rejects(tryOut(`${fileHeader}cgroupRoot: /x\n`), /cgroupRoot/);
    if (!isFollowed) await assert.rejects(world.keeper.keep(), /nothing is being tried/);
  });
}

test("a config map that worked for long is given up for the files", async () => {
  const world = await started();
  await world.keeper.proposeAssigned(configMap(good(50)), "node");
  await world.settle();
  await world.pass(3 * minute);
  assert.equal(world.config?.kubelet.maxPods, 50);
  assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
  await world.keeper.unassign();
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.equal(world.keeper.report?.error, "");
});

test("a config map that was taken back does not come again with a label, nor does one that was made anew", async () => {
  const world = await started();
  await world.keeper.proposeAssigned(configMap(harmful["a wrong runtime"]), "node");
  await world.pass(5 * minute);
  assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
  const { turns } = world;
  for (const resourceVersion of ["2", "3"]) {
    await world.keeper.proposeAssigned(configMap(harmful["a wrong runtime"], resourceVersion), "node");
    await world.settle();
    assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
  }
  assert.equal(world.turns, turns, "nothing was tried");
  await world.kill();
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.match(world.keeper.report?.error ?? "", /^rolled back: /);
  await world.keeper.proposeAssigned(configMap(good(60), "4"), "node");
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 60);
});

test("what does harm is taken back although somebody goes on writing to it", async () => {
  const world = await started();
  for (let count = 0; count < 12; count++) {
    await world.write(`${harmful["a wrong runtime"]}# ${count}\n`);
    await world.pass(20_000);
  }
  assert.match(world.events.join(), /KubeletConfigRolledBack/);
});

test("a config map that is lost with the disk, or that nobody can read, does not keep the agent from its files", async () => {
  const world = await started();
  await world.keeper.proposeAssigned(configMap(good(50)), "node");
  await world.pass(3 * minute);
  await world.stop();
  for (const path of world.disk.files.keys()) if (path.includes("/versions/")) world.disk.files.delete(path);
  await world.start();
  assert.equal(world.isUp, true);
  assert.equal(world.config?.kubelet.maxPods, 100);
  await world.keeper.proposeAssigned(configMap(good(50)), "node");
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 50, "it counts again as soon as it is there again");
});

test("what one process refuses as invalid is checked anew by the next, which may know more", async () => {
  const world = await started();
  await world.write(`${good(60)}crashLoopBackOff: {maxContainerRestartPeriod: 10s}\n`);
  assert.match(world.keeper.report?.error ?? "", /^failed to validate config: .*KubeletCrashLoopBackOffMax/);
  world.flags = ["--feature-gates=KubeletCrashLoopBackOffMax=true"];
  await world.stop();
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 60);
});

test("on a disk that is full nothing changes, the report says why, and it is made up for", async () => {
  const world = await started();
  world.disk.isFull = true;
  await assert.rejects(world.write(good(50)), /can't be saved: ENOSPC/);
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.match(world.keeper.report?.error ?? "", /can't be saved: ENOSPC/);
  await world.stop();
  await world.startWithFailingDisk();
  assert.equal(world.config?.kubelet.maxPods, 100, "nor does another process begin with it");
  assert.match(world.keeper.report?.error ?? "", /can't be saved: ENOSPC/);
  const assigned = world.keeper.proposeAssigned(configMap(good(40)), "node");
  await assert.rejects(assigned, /ENOSPC/);
  world.disk.isFull = false;
  await world.look();
  assert.equal(world.config?.kubelet.maxPods, 50);
  assert.equal(world.keeper.report?.error, "");
  await world.keeper.proposeAssigned(configMap(good(40)), "node");
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 40);
});

test("on a disk that is full there is a way back to what is known to be good", async () => {
  const world = await started();
  await world.write(good(50));
  world.disk.isFull = true;
  await world.write(good(100));
  assert.equal(world.config?.kubelet.maxPods, 100);
  await world.kill();
  await world.startWithFailingDisk();
  assert.equal(world.config?.kubelet.maxPods, 100);
});

test("a trial by hand on a disk that is full says so, and what can't be kept is not said to be", async () => {
  const world = await started();
  const tryOut = () => world.keeper.tryOut({ path: "/root/new.yaml", text: good(20), forMs: 2 * minute });
  world.disk.isFull = true;
  const refused = await tryOut();
  await assert.rejects(refused.begin(), /ENOSPC/);
  assert.match(world.keeper.state.refused.at(-1)?.why ?? "", /ENOSPC/, "for whoever waits for the trial");
  assert.equal(world.config?.kubelet.maxPods, 100);
  world.disk.isFull = false;
  await (await tryOut()).begin();
  await world.settle();
  world.disk.isFull = true;
  await assert.rejects(world.keeper.keep(), /can't be saved: ENOSPC/);
  world.disk.isFull = false;
  await world.keeper.keep();
  await world.kill();
  await world.start();
  assert.equal(world.config?.kubelet.maxPods, 20);
});

test("what could not be saved at its start is there to go back to once it is known to be good", async () => {
  const world = new RolloutWorld(seededRandom(1));
  world.disk.isFull = true;
  await world.start();
  world.disk.isFull = false;
  await world.pass(2 * minute);
  assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
  await world.kill();
  world.file = harmful["a port in use"];
  await world.start();
  assert.equal(world.isUp, true);
  assert.equal(world.config?.kubelet.maxPods, 100);
});

test("nothing is removed that the state on disk goes back to, while another can't be saved", async () => {
  const world = await started();
  await world.write(good(50));
  world.disk.isFull = true;
  await world.pass(2 * minute);
  assert.equal(world.keeper.state.good?.version, world.keeper.running.id);
  await world.kill();
  world.disk.isFull = false;
  world.file = harmful["a port in use"];
  await world.start();
  assert.equal(world.isUp, true);
  assert.equal(world.config?.kubelet.maxPods, 100, "what the disk knows to be good");
});

test("a trial that begins after something else has come is measured by that", async () => {
  const world = await started();
  const live = `${good(100)}imageGCHighThresholdPercent: 90\n`;
  const tryOut = (text: string) => world.keeper.tryOut({ path: "/root/new.yaml", text, forMs: 2 * minute });
  const first = await tryOut(live);
  const second = await tryOut(good(20));
  assert.equal(first.effect, "at once");
  await world.write(good(50));
  const turns = world.turns;
  await first.begin();
  await world.settle();
  assert.equal(world.config?.kubelet.maxPods, 100);
  assert.equal(world.turns, turns + 1, "another turn, since that of the files has other parts");
  await assert.rejects(second.begin(), /a trial is under way/);
  assert.equal(world.config?.kubelet.maxPods, 100);
});

test("what was kept is over with the next change of the files, also when they go back to what they were", async () => {
  const world = await started();
  await (await world.keeper.tryOut({ path: "/new.yaml", text: good(20), forMs: 2 * minute })).begin();
  await world.settle();
  await world.keeper.keep();
  await world.write(good(30));
  await world.write(good(100));
  assert.equal(world.config?.kubelet.maxPods, 100);
});

test("changes that never become good leave no heap of versions behind", async () => {
  const world = await started();
  for (let change = 1; change <= 8; change++) await world.write(good(100 + change));
  const versions = [...world.disk.files.keys()].filter((path) => path.includes("/versions/"));
  assert.ok(versions.length <= 4, versions.join());
});

for (const seed of [seedOfToday]) {
  test(`100 changes with faults, seed ${seed}: the agent ends on one that is valid and known to work`, async () => {
    const random = seededRandom(seed);
    const pick = <Item>(items: readonly Item[]): Item => items[Math.floor(random() * items.length)] as Item;
    const world = new RolloutWorld(random);
    world.file = good(100);
    await world.start();
    await world.pass(2 * minute);
    for (let change = 0; change < 100; change++) {
      const file = pick([
        good(101 + change),
        good(101 + change),
        `${good(100)}imageGCHighThresholdPercent: ${86 + (change % 10)}\n`,
        `${fileHeader}maxPods: -${change + 1}\n`,
        `${fileHeader}: [${change}`,
        `${harmful["a port in use"]}maxPods: ${200 + change}\n`,
        `${harmful["a wrong runtime"]}maxPods: ${200 + change}\n`,
        `${harmful["one that kills the process"]}podsPerCore: ${change + 1}\n`,
      ]);
      const fault = pick(["none", "none", "power", "power", "power at start", "kill", "stop", "early change"] as const);
      if (fault === "power") world.disk.failsAfter = Math.floor(random() * 6);
      await world.write(file);
      if (fault === "kill") {
        await world.pass(Math.floor(random() * 3) * minute);
        await world.kill();
        await world.start();
      }
      if (fault === "power at start") {
        await world.kill();
        world.disk.failsAfter = Math.floor(random() * 4);
        await world.startWithFailingDisk();
      }
      if (fault === "stop") {
        await world.stop();
        await world.start();
      }
      if (fault === "early change") continue;
      await world.pass(3 * minute);
      if (world.disk.isDead || !world.isUp) await world.pass(minute);
      world.disk.failsAfter = Number.POSITIVE_INFINITY;
      const where = `change ${change} with fault ${fault}:\n${file}`;
      assert.equal(world.isUp, true, where);
      const { config } = world;
      assert.ok(config, where);
      assert.equal(world.characterOf(config), "works", where);
      const { good: known, trial } = world.keeper.state;
      const { id } = world.keeper.running;
      assert.ok(id === known?.version || id === trial?.version, where);
      await world.pass(2 * minute);
      assert.equal(world.keeper.state.good?.version, world.keeper.running.id, where);
      if (file.startsWith(good(101 + change))) assert.equal(world.config?.kubelet.maxPods, 101 + change, where);
    }
  });
}
