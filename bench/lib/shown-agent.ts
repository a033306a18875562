// An agent with pods on a simulated runtime and real cgroups, and what it holds and takes.
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { LocalClient } from "../../src/beside/cli/local-client.ts";
import { createCgroup } from "../../src/beside/cli/machine/cgroups.ts";
import { FakeRuntime, serveRuntime } from "../../src/beside/hollow/index.ts";
import { CgroupDriver } from "../../src/connections/cri/index.ts";
import { systemClock } from "../../src/ground/base/index.ts";
import { eventually } from "../../test/support/agent.ts";
import { type Daemon, DaemonHome } from "../../test/support/daemon.ts";

const ticksPerSecond = 100;
const forever = new AbortController().signal;

/** What the process holds after its garbage is collected. */
export interface Held {
  readonly heapUsed: number;
  /** Outside the heap: buffers, and the figures of charts. */
  readonly external: number;
  /** What keeps the process going, by kind. */
  readonly active: Readonly<Record<string, number>>;
  readonly objects: { readonly timers: number };
}

export class ShownAgent implements AsyncDisposable {
  /** What has to be undone, the last first. */
  readonly #undo: (() => Promise<void>)[] = [];
  readonly fake = new FakeRuntime({ clock: systemClock, events: "offered", cgroupDriver: CgroupDriver.CGROUPFS });
  readonly home: DaemonHome;
  #daemon: Daemon | undefined;

  private constructor(home: DaemonHome) {
    this.home = home;
  }

  get daemon(): Daemon {
    if (this.#daemon === undefined) throw new Error("the agent does not run");
    return this.#daemon;
  }

  /** Its pods are named seen-0, seen-1, … */
  static async start(podCount: number, args: readonly string[] = []): Promise<ShownAgent> {
    const home = await DaemonHome.create();
    const agent = new ShownAgent(home);
    agent.#undo.push(() => home[Symbol.asyncDispose]());
    agent.fake.imageStore.preload("busybox:1");
    const served = await serveRuntime({ runtime: agent.fake.runtime, images: agent.fake.images }, home.runtimeSocket);
    agent.#undo.push(async () => served[Symbol.asyncDispose]());
    await createCgroup(home.cgroup);
    const manifests = join(home.directory, "manifests");
    mkdirSync(manifests);
    const cgroups = { cgroupsPerQOS: true, cgroupRoot: home.cgroup, enforceNodeAllocatable: ["pods"] };
    home.configure({ staticPodPath: manifests, ...cgroups });
    for (let index = 0; index < podCount; index++) {
      const spec = { containers: [{ name: "main", image: "busybox:1" }] };
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: `seen-${index}` }, spec };
      writeFileSync(join(manifests, `seen-${index}.json`), JSON.stringify(pod));
    }
    const probe = new URL("process-probe.mjs", import.meta.url);
    const env = { NODE_OPTIONS: `--import=${probe}`, NODELET_PROBE_FILE: agent.#probeFile };
    agent.#daemon = home.start({ args, env });
    agent.#undo.push(async () => {
      rmSync(manifests, { recursive: true });
      mkdirSync(manifests);
      await eventually(async () => (await agent.#pods()).length === 0, "all pods are gone", 120_000);
      agent.daemon.signal("SIGTERM");
      await agent.daemon.exited;
    });
    const isUp = async (): Promise<boolean> =>
      (await agent.#pods()).filter(({ status }) => status?.phase === "Running").length === podCount;
    await eventually(isUp, "all pods run", 120_000);
    await systemClock.sleep(5_000, forever);
    return agent;
  }

  get #probeFile(): string {
    return join(this.home.directory, "held.json");
  }

  async held(): Promise<Held> {
    rmSync(this.#probeFile, { force: true });
    this.daemon.signal("SIGUSR2");
    const isWritten = async (): Promise<boolean> => existsSync(this.#probeFile);
    await eventually(isWritten, "the agent says what it holds", 30_000);
    return JSON.parse(readFileSync(this.#probeFile, "utf8")) as Held;
  }

  /** Share of a core that it takes. */
  async cpu(ms: number): Promise<number> {
    const before = this.cpuMs();
    await systemClock.sleep(ms, forever);
    return (this.cpuMs() - before) / ms;
  }

  /** Processor time since its start. */
  cpuMs(): number {
    const fields = readFileSync(`/proc/${this.daemon.pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
    return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1000;
  }

  /** Ends the container of the pod, as a crash would. */
  crash(pod: string): void {
    const isOf = (name: string | undefined): boolean => name?.startsWith(`${pod}-`) ?? false;
    const container = this.fake.containers().find(({ sandbox }) => isOf(sandbox.config.metadata?.name));
    if (container === undefined) throw new Error(`the runtime has no container of ${pod}`);
    this.fake.exit(container.id, 1);
  }

  #pods() {
    return new LocalClient(join(this.home.rootDir, "nodelet.sock")).pods(AbortSignal.timeout(5_000));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const undo of this.#undo.reverse()) await undo();
  }
}
