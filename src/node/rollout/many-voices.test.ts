// Files, a config map and a person who tries things out, all at once, on a machine that loses its power.
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileHeader } from "../../../test/support/load-config.ts";
import { RolloutWorld } from "../../../test/support/rollout-world.ts";
import { seededRandom } from "../../../test/support/seeded-random.ts";
import { readState } from "./state-file.ts";
import { type ConfigVersion, versionOf } from "./version.ts";

const minute = 60_000;
/** Others: NODELET_SEED=100 npm test -- src/node/rollout/many-voices */
const firstSeed = Number(process.env["NODELET_SEED"] ?? 1);
const deeds = ["write", "write", "assign", "unassign", "try", "begin", "keep", "back"] as const;
const faults = ["kill", "stop", "a while", "a while", "power", "full disk", "quiet times"] as const;

class Voices {
  readonly world: RolloutWorld;
  readonly done: string[] = [];
  readonly #random: () => number;
  #texts = 0;
  #accepted: { begin(): Promise<void> } | undefined;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.world = new RolloutWorld(this.#random);
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#random() * items.length)] as Item;
  }

  #text(): string {
    const count = ++this.#texts;
    const rest = this.pick([
      `maxPods: ${100 + count}`,
      `maxPods: ${100 + count}`,
      `imageGCHighThresholdPercent: ${86 + (count % 10)}`,
      `maxPods: -${count}`,
      `cgroupRoot: /x${count}`,
      `port: 666\nmaxPods: ${200 + count}`,
      `containerRuntimeEndpoint: unix:///run/wrong.sock\nmaxPods: ${200 + count}`,
      `maxPods: 13\npodsPerCore: ${count}`,
    ]);
    return `${fileHeader}${rest}\n`;
  }

  /** Whatever is refused is refused: only what comes of it counts. */
  async do(deed: (typeof deeds)[number]): Promise<void> {
    const text = this.#text();
    this.done.push(`${deed} ${text.slice(fileHeader.length)}`);
    await this.#attempt(deed, text).catch((error: unknown) => this.done.push(`  ${error}`));
    await this.world.settle();
  }

  async #attempt(deed: (typeof deeds)[number], text: string): Promise<void> {
    const { keeper, config } = this.world;
    const accepted = this.#accepted;
    switch (deed) {
      case "write":
        return await this.world.write(text);
      case "assign":
        return await keeper.proposeAssigned(configMap(text, this.#texts), "node");
      case "unassign":
        return await keeper.unassign();
      case "try":
        this.#accepted = await keeper.tryOut({ path: "/root/new.yaml", text, forMs: 2 * minute });
        return;
      case "begin":
        this.#accepted = undefined;
        return await accepted?.begin();
      case "keep":
        // Who keeps what kills the agent has it so.
        return config !== undefined && this.world.characterOf(config) === "works" ? await keeper.keep() : undefined;
      case "back":
        return await keeper.back();
    }
  }

  async suffer(fault: (typeof faults)[number]): Promise<void> {
    const { world } = this;
    this.done.push(fault);
    this.#accepted = undefined;
    if (fault === "power") world.disk.failsAfter = Math.floor(this.#random() * 4);
    if (fault === "full disk") world.disk.isFull = !world.disk.isFull;
    if (fault === "a while") await world.pass(20_000);
    if (fault === "kill") await world.kill();
    if (fault === "stop") await world.stop();
    if (fault === "quiet times") await this.#rest();
    if (world.disk.isDead) await world.kill();
    if (!world.isUp) await world.start();
  }

  async #rest(): Promise<void> {
    const { world } = this;
    world.disk.isFull = false;
    await world.pass(7 * minute);
    world.disk.failsAfter = Number.POSITIVE_INFINITY;
    if (world.disk.isDead || !world.isUp) await world.pass(6 * minute);
    const where = this.done.splice(0).join("\n");
    assert.equal(world.isUp, true, where);
    assert.equal(world.config && world.characterOf(world.config), "works", where);
    assert.deepEqual(this.#lost(), [], where);
  }

  /** What the newest state on disk names and nobody could find. */
  #lost(): readonly string[] {
    const { files } = this.world.disk;
    const [newest] = ["/store/state-a.json", "/store/state-b.json"]
      .flatMap((path) => readState(files.get(path) ?? "") ?? [])
      .sort((a, b) => b.sequence - a.sequence);
    const { good, kept, trial, assigned } = newest?.state ?? {};
    const named = [good, kept, trial, assigned].flatMap((each) => (each === undefined ? [] : [each.version]));
    return named.filter((id) => !files.has(`/store/versions/${id}.json`));
  }
}

function configMap(text: string, resourceVersion: number): ConfigVersion {
  const path = `/store/checkpoints/u/${resourceVersion}/kubelet`;
  const source = { namespace: "n", name: "m", key: "kubelet", uid: "u", resourceVersion: `${resourceVersion}` };
  return versionOf({
    source: { from: "configMap", ...source },
    words: [`--config=${path}`],
    snapshot: { files: { [path]: Buffer.from(text).toString("base64") }, directories: {}, kinds: {} },
  });
}

for (const seed of [firstSeed, firstSeed + 1, firstSeed + 2]) {
  test(`files, config maps and trials by hand at random, seed ${seed}: a node that worked works in quiet times`, async () => {
    const voices = new Voices(seed);
    await voices.world.start();
    await voices.world.pass(20_000);
    for (let step = 0; step < 60; step++) {
      await voices.do(voices.pick(deeds));
      if (voices.pick([true, false])) await voices.suffer(voices.pick(faults));
    }
    await voices.suffer("quiet times");
  });
}
