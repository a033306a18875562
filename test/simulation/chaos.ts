import { Dice } from "./machine/dice.ts";
import { mebibyte, wantedMemory } from "./machine/pressure.ts";
import type { PluginNeighbour } from "./neighbours/plugin.ts";
import { calm, type Weather } from "./neighbours/weather.ts";
import { type Extras, makePod, noExtras, ruledCode } from "./pod-maker.ts";
import type { Simulation } from "./simulation.ts";

const mostPods = 7;
/** Each has one; there are more than twice as many, for those that are on their way out. */
const mostDevicePods = 3;

/** What an agent asks the runtime before it does anything, and what it asks for the sake of pods. */
const askedAtStart: readonly string[] = ["listPodSandbox", "listContainers", "listImages", "status"];
const askedForPods: readonly string[] = [
  ...["runPodSandbox", "stopPodSandbox", "removePodSandbox", "podSandboxStatus", "createContainer", "startContainer"],
  ...["startContainer", "stopContainer", "removeContainer", "containerStatus", "execSync", "execSync", "pullImage"],
];

/**
 * How often each trouble comes, as a multiple of its usual pace. Half of the seeds mix most troubles; the others have few
 * that come thick, for what shows only when nothing else (the death of the agent, above all) wipes it out.
 */
function pacesOf(dice: Dice, count: number): readonly number[] {
  const alwaysUsed = 2;
  if (dice.chance(0.5))
    return Array.from({ length: count }, (_, index) => (index < alwaysUsed || dice.chance(0.6) ? 1 : 0));
  const few = new Set(Array.from({ length: dice.whole(2, 5) }, () => dice.whole(alwaysUsed, count - 1)));
  return Array.from({ length: count }, (_, index) => (index < alwaysUsed ? 1 : few.has(index) ? 3 : 0));
}

function someTrouble(dice: Dice, strength: number): Weather {
  return {
    refused: dice.number() * strength,
    lost: dice.number() * strength,
    hung: dice.number() * strength * 0.2,
    slow: dice.number() * strength,
    dropped: dice.number() * strength,
    doubled: dice.number() * strength,
  };
}

/** What people, programs and bad luck do to a node, for as long as it lasts; all of it by chance. */
export class Chaos {
  readonly #simulation: Simulation;
  readonly #dice: Dice;
  readonly #until: number;
  readonly #extras: Dice;
  /** In few seeds single calls of the runtime ail: it is hard on whatever else there is to see. */
  readonly #ailments: Dice | undefined;
  #versions = 0;

  constructor(simulation: Simulation, lastsMs: number) {
    this.#simulation = simulation;
    this.#dice = new Dice(simulation.seed, "chaos");
    this.#extras = new Dice(simulation.seed, "extras");
    const ailments = new Dice(simulation.seed, "ailments");
    this.#ailments = ailments.chance(0.2) ? ailments : undefined;
    this.#until = simulation.machine.timeline.now + lastsMs;
  }

  begin(): void {
    const dice = this.#dice;
    const troubles: readonly (readonly [number, () => void])[] = [
      [45, () => this.#add()],
      [80, () => this.#remove()],
      [120, () => this.#crash()],
      [400, () => this.#loseSandbox()],
      [90, () => this.#toggleReadiness()],
      [300, () => this.#sicken()],
      [400, () => this.#changeImage()],
      [200, () => this.#resize()],
      [250, () => this.#simulation.kill("out of the blue")],
      [250, () => this.#simulation.killSoon()],
      [400, () => this.#startBlindly()],
      [900, () => this.#simulation.stop()],
      [2400, () => this.#simulation.losePower()],
      [700, () => this.#runtimeDown()],
      [500, () => this.#runtimeWeather()],
      [700, () => this.#apiDown()],
      [500, () => this.#apiWeather()],
      [900, () => this.#apiSilence()],
      [600, () => this.#simulation.api.compact()],
      [600, () => this.#pluginDown(this.#simulation.storage, "the storage driver", this.#dice)],
      [600, () => this.#pluginWeather(this.#simulation.storage, "the storage driver", this.#dice)],
      [1200, () => this.#diskTrouble()],
      [900, () => this.#clockJump()],
      [200, () => this.#simulation.releaseFinalizers()],
    ];
    const paces = pacesOf(dice, troubles.length);
    troubles.forEach(([meanSeconds, act], index) => {
      const pace = paces[index] ?? 0;
      if (pace > 0) this.#repeat((meanSeconds * 1000) / pace, act);
    });
    this.#beginShortages();
    this.#beginPluginTroubles();
    const ailments = this.#ailments;
    if (ailments !== undefined) this.#repeat(60_000, () => this.#callAils(ailments), ailments);
    for (let count = dice.whole(1, 5); count > 0; count--) this.#later(dice.between(0, 20_000), () => this.#add());
  }

  /** With dice of their own, so that what else happens stays as it is. */
  #beginShortages(): void {
    const dice = new Dice(this.#simulation.seed, "shortages");
    if (dice.chance(0.4)) this.#repeat(dice.pick([150_000, 600_000]), () => this.#memoryShort(dice), dice);
    if (dice.chance(0.25)) this.#repeat(dice.pick([300_000, 900_000]), () => this.#diskShort(dice), dice);
  }

  /** A device plugin that refuses has its pods refused, as upstream: it only comes and goes. */
  #beginPluginTroubles(): void {
    const { seed, devices, claims } = this.#simulation;
    const dice = new Dice(seed, "plugin troubles");
    if (dice.chance(0.4)) this.#repeat(400_000, () => this.#pluginDown(devices, "the device plugin", dice), dice);
    if (dice.chance(0.4)) this.#repeat(400_000, () => this.#pluginDown(claims, "the claim driver", dice), dice);
    if (dice.chance(0.4)) this.#repeat(500_000, () => this.#pluginWeather(claims, "the claim driver", dice), dice);
  }

  /** Everything works again, whatever did not. */
  end(): void {
    const { runtime, api, plugins, machine, unready, dead, pressure, witness } = this.#simulation;
    this.#simulation.trace.add("world", "calm");
    if (pressure.othersBytes > 0) witness.shortages.ends();
    if (pressure.isDiskShort || machine.disk.isFull) witness.shortages.diskIsBack();
    pressure.othersBytes = 0;
    pressure.isDiskShort = false;
    runtime.weather = { ...calm };
    runtime.ailing = undefined;
    api.weather = { ...calm };
    for (const plugin of plugins) {
      plugin.weather = { ...calm };
      if (!plugin.isUp) plugin.start();
    }
    if (!runtime.fake.isUp) runtime.fake.start();
    api.isUp = true;
    api.isCutOff = false;
    machine.disk.isFull = false;
    machine.disk.isBroken = false;
    machine.pace.slowMs = 0;
    unready.clear();
    dead.clear();
    this.#simulation.releaseFinalizers();
  }

  #repeat(meanMs: number, act: () => void, dice = this.#dice): void {
    this.#later(dice.interval(meanMs), () => {
      act();
      this.#repeat(meanMs, act, dice);
    });
  }

  #later(ms: number, act: () => void): void {
    const { timeline } = this.#simulation.machine;
    if (timeline.now + ms >= this.#until) return;
    timeline.after(ms, undefined, act);
  }

  #say(what: string): void {
    this.#simulation.trace.add("world", what);
  }

  #add(): void {
    const { wanted } = this.#simulation;
    const dice = this.#dice;
    if (wanted.size >= mostPods) return;
    const source = dice.chance(0.25) ? "file" : "api";
    const name = `${source === "api" ? "p" : "s"}${dice.whole(1, 8)}`;
    if (wanted.has(name)) return;
    // What is still on its way out keeps its name in the API.
    if (source === "api" && this.#simulation.isNameTaken(name)) return;
    const extras = source === "api" ? this.#extrasNow() : noExtras;
    this.#simulation.addPod(makePod(dice, name, ++this.#versions, source, extras));
    this.#maybeKill();
  }

  #extrasNow(): Extras {
    const dice = this.#extras;
    const [device, claim, asAWhole] = [dice.chance(0.25), dice.chance(0.2), dice.chance(0.15)];
    const { offersDevices, devicePods } = this.#simulation;
    return {
      device: device && offersDevices && devicePods < mostDevicePods,
      claim,
      asAWhole,
      hooks: this.#ailments?.chance(0.5) ?? false,
    };
  }

  #remove(): void {
    const { wanted } = this.#simulation;
    const dice = this.#dice;
    if (wanted.size === 0) return;
    const name = dice.pick([...wanted.keys()]);
    this.#simulation.removePod(name, dice.pick([undefined, undefined, undefined, 0, 1, 120]));
    this.#maybeKill();
    // A static pod is often replaced by another version of it.
    if (name.startsWith("s") && dice.chance(0.5)) {
      this.#simulation.addPod(makePod(dice, name, ++this.#versions, "file"));
    }
  }

  #maybeKill(): void {
    if (this.#dice.chance(0.15)) this.#simulation.killSoon();
  }

  /** The agent starts while the others on whom its decisions rest are away. */
  #startBlindly(): void {
    if (this.#dice.chance(0.7)) this.#apiDown();
    else this.#runtimeDown();
    this.#simulation.kill("with others", this.#dice.pick([10, 1_000]));
  }

  #running(): readonly string[] {
    return this.#simulation.runtime.fake
      .containers()
      .flatMap(({ life, config }) => (life.step === "running" ? [config.metadata?.name ?? ""] : []));
  }

  #crash(): void {
    const running = this.#running();
    if (running.length === 0) return;
    const name = this.#dice.pick(running);
    this.#say(`${name} crashes`);
    this.#simulation.runtime.fake.exit(name, this.#dice.pick([0, 1, 137, ruledCode]));
  }

  #loseSandbox(): void {
    const ready = this.#simulation.runtime.fake.sandboxes().filter(({ state }) => state === "ready");
    if (ready.length === 0) return;
    const sandbox = this.#dice.pick(ready);
    this.#say(`the sandbox of ${sandbox.config.metadata?.name} dies`);
    this.#simulation.witness.lostSandboxOf(sandbox.id);
    this.#simulation.runtime.fake.killSandbox(sandbox.id);
  }

  #toggleReadiness(): void {
    const { unready, witness } = this.#simulation;
    const names = [...this.#simulation.containers.keys()];
    if (names.length === 0) return;
    const name = this.#dice.pick(names.slice(-20));
    this.#say(`${name} is not ready for a while`);
    unready.add(name);
    witness.ailments.isUnready(name);
    this.#later(this.#dice.between(1_000, 90_000), () => {
      unready.delete(name);
      witness.ailments.isUnready(name);
    });
  }

  #sicken(): void {
    const { dead, witness } = this.#simulation;
    const running = this.#running();
    if (running.length === 0) return;
    const name = this.#dice.pick(running);
    this.#say(`${name} hangs for a while`);
    dead.add(name);
    witness.ailments.isSick(name);
    this.#later(this.#dice.between(1_000, 120_000), () => {
      dead.delete(name);
      witness.ailments.isSick(name);
    });
  }

  #changeImage(): void {
    const names = [...this.#simulation.wanted.keys()];
    if (names.length > 0) this.#simulation.changeImage(this.#dice.pick(names));
  }

  #resize(): void {
    const dice = this.#dice;
    const names = [...this.#simulation.wanted.keys()];
    if (names.length === 0) return;
    const amounts = { cpu: dice.pick(["10m", "20m", "50m"]), memory: dice.pick(["16Mi", "24Mi", "32Mi"]) };
    this.#simulation.resize(dice.pick(names), amounts, dice.whole(0, 2));
    this.#maybeKill();
  }

  #runtimeDown(): void {
    const { fake } = this.#simulation.runtime;
    if (!fake.isUp) return;
    this.#say("the runtime stops");
    fake.kill();
    this.#simulation.machine.timeline.after(this.#dice.between(10, 60_000), undefined, () => {
      if (fake.isUp) return;
      this.#say("the runtime is back");
      fake.start();
    });
  }

  #runtimeWeather(): void {
    const { runtime } = this.#simulation;
    const dice = this.#dice;
    const strength = dice.pick([0.02, 0.1, 0.4]);
    runtime.weather = { ...someTrouble(dice, strength), dropped: dice.number() * strength * 2 };
    this.#say(`the runtime is unreliable (${strength})`);
    this.#later(dice.between(1_000, 120_000), () => {
      this.#say("the runtime is reliable");
      runtime.weather = { ...calm };
    });
  }

  /** One thing that the runtime does goes wrong nearly always, for long enough that tries and back-offs add up. */
  #callAils(dice: Dice): void {
    const { runtime, machine } = this.#simulation;
    if (runtime.ailing !== undefined) return;
    const operation = dice.pick(dice.chance(0.3) ? askedAtStart : askedForPods);
    const how = dice.pick(["refused", "refused", "lost", "hung"] as const);
    const ailing = { operation, weather: { ...calm, [how]: 0.9 } };
    runtime.ailing = ailing;
    this.#say(`of the runtime's calls ${operation} is ${how}`);
    if (askedAtStart.includes(operation)) this.#simulation.kill("with others", dice.pick([10, 1_000]));
    const lastsMs = dice.between(2_000, 120_000);
    // What fails to begin or end shows most when there is something to begin again.
    for (let count = dice.whole(0, 4); count > 0; count--) this.#later(dice.between(0, lastsMs), () => this.#crash());
    machine.timeline.after(lastsMs, undefined, () => {
      if (runtime.ailing !== ailing) return;
      this.#say(`${operation} is well`);
      runtime.ailing = undefined;
    });
  }

  /** Plugins are pods: they end, are replaced, and now and then leave their socket behind. */
  #pluginDown(plugin: PluginNeighbour, title: string, dice: Dice): void {
    if (!plugin.isUp) return;
    const leaves = dice.pick(["its socket", "nothing"] as const);
    this.#say(`${title} stops and leaves ${leaves}`);
    plugin.stop(leaves);
    this.#simulation.machine.timeline.after(dice.between(10, 120_000), undefined, () => {
      if (plugin.isUp) return;
      this.#say(`${title} is back`);
      plugin.start();
    });
  }

  #pluginWeather(plugin: PluginNeighbour, title: string, dice: Dice): void {
    const strength = dice.pick([0.1, 0.4, 0.8]);
    plugin.weather = { ...calm, ...someTrouble(dice, strength), hung: dice.number() * strength };
    this.#say(`${title} is unreliable (${strength})`);
    this.#later(dice.between(1_000, 120_000), () => {
      this.#say(`${title} is reliable`);
      plugin.weather = { ...calm };
    });
  }

  #apiDown(): void {
    const { api } = this.#simulation;
    if (!api.isUp) return;
    this.#say("the API server stops");
    api.isUp = false;
    api.cut("the server stops");
    this.#simulation.machine.timeline.after(this.#dice.between(10, 180_000), undefined, () => {
      if (api.isUp) return;
      this.#say("the API server is back");
      api.restart();
    });
  }

  #apiWeather(): void {
    const { api } = this.#simulation;
    const dice = this.#dice;
    const strength = dice.pick([0.02, 0.1, 0.4]);
    api.weather = someTrouble(dice, strength);
    this.#say(`the API is unreliable (${strength})`);
    this.#later(dice.between(1_000, 120_000), () => {
      this.#say("the API is reliable");
      api.weather = { ...calm };
    });
  }

  #apiSilence(): void {
    const { api } = this.#simulation;
    if (this.#dice.chance(0.5)) {
      this.#say("watches fall silent");
      api.stall();
      return;
    }
    this.#say("the way to the API is cut off");
    api.isCutOff = true;
    this.#simulation.machine.timeline.after(this.#dice.between(1_000, 120_000), undefined, () => {
      this.#say("the way to the API is open");
      api.isCutOff = false;
    });
  }

  #diskTrouble(): void {
    const { machine, witness } = this.#simulation;
    const dice = this.#dice;
    const kind = dice.pick(["full", "full", "slow", "broken"] as const);
    this.#say(`the disk is ${kind}`);
    if (kind === "full") machine.disk.isFull = true;
    if (kind === "broken") machine.disk.isBroken = true;
    if (kind === "slow") machine.pace.slowMs = dice.pick([100, 3_000, 20_000]);
    witness.diskTroubleAt = Number.POSITIVE_INFINITY;
    machine.timeline.after(dice.between(1_000, 90_000), undefined, () => {
      this.#say("the disk is well");
      if (machine.disk.isFull) witness.shortages.diskIsBack();
      machine.disk.isFull = false;
      machine.disk.isBroken = false;
      machine.pace.slowMs = 0;
      witness.diskTroubleAt = machine.timeline.now;
    });
  }

  #memoryShort(dice: Dice): void {
    const { machine, pressure, witness } = this.#simulation;
    if (pressure.othersBytes > 0) return;
    const left = dice.between(0, dice.pick([wantedMemory.atOnce, wantedMemory.afterAWhile]));
    this.#say(`memory gets short: ${Math.round(left / mebibyte)} MiB are left`);
    pressure.takeAllBut(left);
    witness.shortages.begins();
    machine.timeline.after(dice.between(2_000, 90_000), undefined, () => {
      if (pressure.othersBytes === 0) return;
      this.#say("there is memory again");
      witness.shortages.ends();
      pressure.othersBytes = 0;
    });
  }

  #diskShort(dice: Dice): void {
    const { machine, pressure, witness } = this.#simulation;
    this.#say("the disk gets short");
    pressure.isDiskShort = true;
    machine.timeline.after(dice.between(2_000, 60_000), undefined, () => {
      if (!pressure.isDiskShort) return;
      this.#say("the disk has room again");
      pressure.isDiskShort = false;
      witness.shortages.diskIsBack();
    });
  }

  #clockJump(): void {
    const { timeline } = this.#simulation.machine;
    const ms = this.#dice.pick([-7_200_000, -7_200_000, -7_200_000, -60_000, -1_000, 60_000, 7_200_000]);
    this.#say(`the time of day jumps by ${ms / 1000} s`);
    timeline.wallOffsetMs += ms;
  }
}
