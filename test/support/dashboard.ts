import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { type IncomingMessage, request as startRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { Dashboard } from "../../src/beside/dashboard/dashboard.ts";
import { DashboardListener, type DashboardPorts } from "../../src/beside/dashboard/index.ts";
import type { CgroupReader } from "../../src/connections/host/index.ts";
import { type Clock, Ledger, silentLogger, TaskScope } from "../../src/ground/base/index.ts";
import type { AgentConfig } from "../../src/ground/config/index.ts";
import type { Pod, PodUid, PodViewChange } from "../../src/ground/model/index.ts";
import { FakeClock } from "./fake-clock.ts";
import { freePort } from "./free-port.ts";

/** What `npm run build` has made. */
export const builtPages = join(process.cwd(), "dist", "dashboard");

/** A node of which nothing is real but the pods that a test gives it. */
export class ShownNode<Time extends Clock = FakeClock> {
  readonly clock: Time;
  readonly ledger: Ledger<PodUid>;
  readonly listeners = new Set<(change: PodViewChange) => void>();
  readonly pods = new Map<string, Pod>();
  events: ReturnType<DashboardPorts["events"]> = [];
  disk: DashboardPorts["disk"] = async () => ({ capacityBytes: 100n, usedBytes: 50n });
  foresee = async (): ReturnType<DashboardPorts["images"]["foresee"]> => ({
    goes: [],
    stays: [],
    freedBytes: 0n,
    wantedBytes: 0n,
  });
  /** What the dashboard wrote into the log as an error. */
  readonly errors: string[] = [];
  copyLog: DashboardPorts["copyLog"] = async () => {
    throw new Error("there is no log");
  };

  /** Only where a test looks at it. */
  config = {} as AgentConfig;

  constructor(clock: Time = new FakeClock() as unknown as Time) {
    this.clock = clock;
    this.ledger = new Ledger(clock);
  }

  put(pod: Pod): void {
    const uid = pod.metadata?.uid ?? "";
    const type = this.pods.has(uid) ? "MODIFIED" : "ADDED";
    this.pods.set(uid, pod);
    for (const listener of this.listeners) listener({ type, object: pod });
  }

  remove(uid: string): void {
    const object = this.pods.get(uid);
    this.pods.delete(uid);
    if (object !== undefined) for (const listener of this.listeners) listener({ type: "DELETED", object });
  }

  ports(): DashboardPorts {
    const { clock, ledger, pods, listeners } = this;
    return {
      clock,
      log: { ...silentLogger, error: (message) => this.errors.push(message) },
      facts: {
        name: "node-1",
        version: "0.1.0",
        kubeletVersion: "v1.34.0",
        kernel: "6.1",
        os: "Debian",
        architecture: "amd64",
        cgroupVersion: 2,
        cpus: 4,
        memoryBytes: 2 ** 33,
        startedAt: clock.now(),
        bootedAt: 0,
      },
      pods: {
        all: () => [...pods.values()],
        watch: (listener) => {
          listeners.add(listener);
          return () => listeners.delete(listener);
        },
        ledger: (uid) => ledger.read(uid),
        watchLedgers: (listener) => ledger.watch(listener),
        probes: () => [],
        volumes: () => [],
        measureVolumes: async () => [],
      },
      health: () => [{ name: "log", health: { state: "ok" }, sinceMs: 0, provenMs: 0 }],
      node: () => ({
        node: undefined,
        runtime: { name: "containerd", version: "2" },
        runtimeProblem: undefined,
        networkProblem: undefined,
        pressure: [],
        allocatable: new Map(),
        pidLimit: 1000,
        api: undefined,
      }),
      cgroups: noCgroups,
      naming: () => undefined,
      disk: () => this.disk(),
      events: () => this.events,
      images: {
        pulls: async () => [],
        backoffs: () => [],
        foresee: () => this.foresee(),
      },
      storage: { drivers: () => [], leftovers: async () => [], localUse: async () => [] },
      machine: { fileSystems: async () => [], numa: async () => [] },
      config: this.config,
      process: {
        pid: 1,
        memory: () => ({ rssBytes: 0, heapUsedBytes: 0, heapTotalBytes: 0 }),
        resources: () => [],
        verbosity: () => 2,
        logLines: () => [],
        metrics: async () => "",
        watches: () => [],
      },
      runDoctor: () => Promise.reject(new Error("there is no doctor")),
      copyLog: (request, sink, signal) => this.copyLog(request, sink, signal),
    };
  }
}

const noCgroups: CgroupReader = {
  exists: () => false,
  children: () => [],
  usage: () => ({ cpu: undefined, memory: undefined }),
  glance: () => ({ cpuNanoseconds: undefined, workingSetBytes: undefined }),
  memory: () => undefined,
  tasks: () => undefined,
  details: () => {
    throw new Error("there are no cgroups");
  },
  oomKills: () => undefined,
  pressures: () => undefined,
  processes: () => [],
  createdAt: () => undefined,
};

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly text: string;
}

interface Asked {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

/** The dashboard on a port of its own, as `--dashboard-address` opens it. */
export class ServedDashboard<Time extends Clock = FakeClock> implements AsyncDisposable {
  readonly node: ShownNode<Time>;
  readonly port: number;
  readonly tokenFile: string;
  readonly scope = new TaskScope();
  readonly #directory: string;
  /** How often the dashboard was loaded. */
  loaded = 0;
  /** Of the last login. */
  cookie = "";
  key = "";

  private constructor(node: ShownNode<Time>, port: number, directory: string) {
    this.node = node;
    this.port = port;
    this.#directory = directory;
    this.tokenFile = join(directory, "nodelet", "dashboard.json");
  }

  /** With `pages`, those of a build; otherwise only what is enough to be asked for. */
  static async start<Time extends Clock = FakeClock>(
    node: ShownNode<Time> = new ShownNode<Time>(),
    { pages, host = "127.0.0.1" }: { readonly pages?: string; readonly host?: string } = {},
  ): Promise<ServedDashboard<Time>> {
    const made = await mkdtemp(join(tmpdir(), "nodelet-dashboard-"));
    const served = new ServedDashboard<Time>(node, await freePort(), made);
    const assets = join(made, "assets");
    await mkdir(assets, { recursive: true });
    await writeFile(join(assets, "index.html.gz"), gzipSync("<!doctype html>"));
    await writeFile(join(assets, "app-ABC.js.gz"), gzipSync("script"));
    const { clock } = node;
    const listener = new DashboardListener(
      { host, port: served.port },
      {
        clock,
        log: silentLogger,
        tokenFile: served.tokenFile,
        bootId: "boot-1",
        dashboard: async () => {
          served.loaded++;
          return new Dashboard(node.ports(), pages ?? assets, served.scope);
        },
      },
    );
    if (!(await listener.listen())) throw new Error("the port could not be had");
    served.scope.spawn("listener", (signal) => listener.serve(signal));
    return served;
  }

  async token(): Promise<string> {
    return JSON.parse(await readFile(this.tokenFile, "utf8")).token;
  }

  async logIn(token?: string): Promise<Answer> {
    const answer = await this.ask("api/login", {
      method: "POST",
      headers: { "Content-Type": "application/json", Origin: `http://127.0.0.1:${this.port}` },
      body: JSON.stringify({ token: token ?? (await this.token()) }),
    });
    const [cookie] = answer.headers["set-cookie"] ?? [];
    if (cookie !== undefined) this.cookie = cookie.split(";")[0] ?? "";
    if (answer.status === 200) this.key = JSON.parse(answer.text).key;
    return answer;
  }

  async ask(path: string, asked: Asked = {}): Promise<Answer> {
    const response = await this.open(path, asked);
    return { status: response.statusCode ?? 0, headers: response.headers, text: await textOf(response) };
  }

  /** The answer as it begins; for what has no end. */
  open(path: string, { method = "GET", headers = {}, body = "", signal }: Asked = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const cookie = this.cookie === "" ? {} : { Cookie: this.cookie, "X-Nodelet-Key": this.key };
      const where = { host: "127.0.0.1", port: this.port, path: `/dashboard/${path}`, agent: false as const };
      const request = startRequest({ ...where, method, headers: { ...cookie, ...headers }, signal }, resolve);
      request.on("error", reject);
      request.end(body);
    });
  }

  async stop(): Promise<void> {
    await this.scope.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.#directory, { recursive: true, force: true });
  }
}

/** The text that an answer has brought so far. */
export function heard(response: IncomingMessage): { text: string } {
  const all = { text: "" };
  response.setEncoding("utf8").on("data", (piece: string) => {
    all.text += piece;
  });
  return all;
}
