import { Dice } from "./machine/dice.ts";
import { calm, type Weather } from "./neighbours/weather.ts";
import { makePod, ruledCode } from "./pod-maker.ts";
import type { Simulation } from "./simulation.ts";

const mostPods = 7;

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
  #versions = 0;

  constructor(simulation: Simulation, lastsMs: number) {
    this.#simulation = simulation;
    this.#dice = new Dice(simulation.seed, "chaos");
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
      [600, () => this.#driverDown()],
      [600, () => this.#driverWeather()],
      [1200, () => this.#diskTrouble()],
      [900, () => this.#clockJump()],
      [200, () => this.#simulation.releaseFinalizers()],
    ];
    const paces = pacesOf(dice, troubles.length);
    troubles.forEach(([meanSeconds, act], index) => {
      const pace = paces[index] ?? 0;
      if (pace > 0) this.#repeat((meanSeconds * 1000) / pace, act);
    });
    for (let count = dice.whole(1, 5); count > 0; count--) this.#later(dice.between(0, 20_000), () => this.#add());
  }

  /** Everything works again, whatever did not. */
  end(): void {
    const { runtime, api, storage, machine, unready, dead } = this.#simulation;
    this.#simulation.trace.add("world", "calm");
    runtime.weather = { ...calm };
    api.weather = { ...calm };
    storage.weather = { ...calm };
    if (!storage.isUp) storage.start();
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

  #repeat(meanMs: number, act: () => void): void {
    this.#later(this.#dice.interval(meanMs), () => {
      act();
      this.#repeat(meanMs, act);
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
    this.#simulation.addPod(makePod(dice, name, ++this.#versions, source));
    this.#maybeKill();
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
    witness.isUnready(name);
    this.#later(this.#dice.between(1_000, 90_000), () => {
      unready.delete(name);
      witness.isUnready(name);
    });
  }

  #sicken(): void {
    const { dead, witness } = this.#simulation;
    const running = this.#running();
    if (running.length === 0) return;
    const name = this.#dice.pick(running);
    this.#say(`${name} hangs for a while`);
    dead.add(name);
    witness.isSick(name);
    this.#later(this.#dice.between(1_000, 120_000), () => {
      dead.delete(name);
      witness.isSick(name);
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

  /** Drivers are pods: they end, are replaced, and now and then leave their socket behind. */
  #driverDown(): void {
    const { storage } = this.#simulation;
    if (!storage.isUp) return;
    const leaves = this.#dice.pick(["its socket", "nothing"] as const);
    this.#say(`the storage driver stops and leaves ${leaves}`);
    storage.stop(leaves);
    this.#simulation.machine.timeline.after(this.#dice.between(10, 120_000), undefined, () => {
      if (storage.isUp) return;
      this.#say("the storage driver is back");
      storage.start();
    });
  }

  #driverWeather(): void {
    const { storage } = this.#simulation;
    const dice = this.#dice;
    const strength = dice.pick([0.1, 0.4, 0.8]);
    storage.weather = { ...calm, ...someTrouble(dice, strength), hung: dice.number() * strength };
    this.#say(`the storage driver is unreliable (${strength})`);
    this.#later(dice.between(1_000, 120_000), () => {
      this.#say("the storage driver is reliable");
      storage.weather = { ...calm };
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
      machine.disk.isFull = false;
      machine.disk.isBroken = false;
      machine.pace.slowMs = 0;
      witness.diskTroubleAt = machine.timeline.now;
    });
  }

  #clockJump(): void {
    const { timeline } = this.#simulation.machine;
    const ms = this.#dice.pick([-7_200_000, -7_200_000, -7_200_000, -60_000, -1_000, 60_000, 7_200_000]);
    this.#say(`the time of day jumps by ${ms / 1000} s`);
    timeline.wallOffsetMs += ms;
  }
}
