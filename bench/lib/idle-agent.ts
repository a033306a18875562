// An agent with pods on a simulated runtime, and what it costs while nothing happens.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import { FakeRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { CgroupDriver } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import type { Pod } from "../../src/ground/model/index.ts";
import { eventually } from "../../test/support/agent.ts";
import { type Daemon, DaemonHome } from "../../test/support/daemon.ts";

/** Right after a start the agent looks more often whether it has missed something. */
const settleMs = 65_000;
const ticksPerSecond = 100;
const forever = new AbortController().signal;

export interface IdleCost {
  /** Calls of the runtime. */
  readonly calls: number;
  readonly cpuSeconds: number;
  readonly rssMb: number;
}

export class IdleAgent implements AsyncDisposable {
  readonly #home: DaemonHome;
  readonly #fake: FakeRuntime;
  readonly #served: AsyncDisposable;
  readonly #daemon: Daemon;

  private constructor(home: DaemonHome, fake: FakeRuntime, served: AsyncDisposable, daemon: Daemon) {
    this.#home = home;
    this.#fake = fake;
    this.#served = served;
    this.#daemon = daemon;
  }

  /** Resolves when all pods have run for a while. */
  static async start(podCount: number, config: Readonly<Record<string, unknown>> = {}): Promise<IdleAgent> {
    const home = await DaemonHome.create();
    const fake = new FakeRuntime({ clock: systemClock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
    fake.imageStore.preload("busybox:1");
    const served = await serveRuntime({ runtime: fake.runtime, images: fake.images }, home.runtimeSocket);
    const manifests = join(home.directory, "manifests");
    mkdirSync(manifests);
    home.configure({ staticPodPath: manifests, ...config });
    for (let index = 0; index < podCount; index++) {
      const spec = { containers: [{ name: "main", image: "busybox:1" }] };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `idle-${index}` }, spec };
      writeFileSync(join(manifests, `idle-${index}.json`), JSON.stringify(pod));
    }
    const agent = new IdleAgent(home, fake, served, home.start());
    const isUp = async (): Promise<boolean> =>
      (await agent.#pods()).filter(({ status }) => status?.phase === "Running").length === podCount;
    await eventually(isUp, "all pods run", 120_000);
    await systemClock.sleep(settleMs, forever);
    return agent;
  }

  /** What the next seconds cost. */
  async measure(seconds: number): Promise<IdleCost> {
    const before = { calls: this.#countCalls(), ticks: this.#cpuTicks() };
    await systemClock.sleep(seconds * 1000, forever);
    const status = readFileSync(`/proc/${this.#daemon.pid}/status`, "utf8");
    return {
      calls: this.#countCalls() - before.calls,
      cpuSeconds: (this.#cpuTicks() - before.ticks) / ticksPerSecond,
      rssMb: Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    rmSync(join(this.#home.directory, "manifests"), { recursive: true });
    mkdirSync(join(this.#home.directory, "manifests"));
    await eventually(async () => (await this.#pods()).length === 0, "all pods are gone", 120_000);
    this.#daemon.signal("SIGTERM");
    await this.#daemon.exited;
    await this.#served[Symbol.asyncDispose]();
    await this.#home[Symbol.asyncDispose]();
  }

  #pods(): Promise<readonly Pod[]> {
    const client = new LocalClient(join(this.#home.rootDir, "nodelet.sock"));
    return client.pods(AbortSignal.timeout(5_000));
  }

  #countCalls(): number {
    return [...this.#fake.callCounts().values()].reduce((sum, count) => sum + count, 0);
  }

  /** User and system time of the agent's process. */
  #cpuTicks(): number {
    const fields = readFileSync(`/proc/${this.#daemon.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return Number(fields[11]) + Number(fields[12]);
  }
}
