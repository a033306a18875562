import { GrpcError } from "../../../src/ground/grpc/grpc-error.ts";
import type { Dice } from "../machine/dice.ts";
import type { LocalCall, Machine } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
import { type Callee, callThrough, endCallsOf, wireMs } from "./call.ts";
import type { Trace } from "./trace.ts";
import { calm, type Weather } from "./weather.ts";

export interface PluginFacts {
  /** As the trace calls it. */
  readonly title: string;
  readonly type: "CSIPlugin" | "DevicePlugin" | "DRAPlugin";
  readonly name: string;
  readonly versions: readonly string[];
}

/** What a plugin goes on telling somebody. */
interface Stream {
  readonly life: Life | undefined;
  push(item: object): void;
  fail(error: Error): void;
}

/** A plugin of the agent's: it registers by a socket, comes, goes, and comes back. */
export abstract class PluginNeighbour {
  weather: Weather = { ...calm };
  /** Told of what no plugin should be asked for. */
  onNonsense: (what: string) => void = () => {};
  protected readonly machine: Machine;
  protected readonly trace: Trace;
  readonly #facts: PluginFacts;
  readonly #callee: Callee;
  readonly #registrationSocket: string;
  readonly #endpoint: string;
  readonly #streams = new Set<Stream>();
  readonly #watchers = new Set<{ readonly life: Life | undefined; readonly onChange: (isThere: boolean) => void }>();
  #isUp = false;

  constructor(machine: Machine, dice: Dice, trace: Trace, facts: PluginFacts) {
    this.machine = machine;
    this.trace = trace;
    this.#facts = facts;
    const file = facts.name.replaceAll("/", "-");
    this.#registrationSocket = `/var/lib/kubelet/plugins_registry/${file}-reg.sock`;
    this.#endpoint = `/var/lib/kubelet/plugins/${file}/${facts.type === "CSIPlugin" ? "csi" : "plugin"}.sock`;
    this.#callee = {
      ...{ name: facts.title, machine, trace, dice, underWay: new Map() },
      weather: () => this.weather,
      errorOf: (code, _operation, text) => new GrpcError(code, text),
    };
  }

  /** Carries out a call; what it throws is what the caller gets. */
  protected abstract perform(operation: string, request: unknown): object;

  /** What a stream begins with; undefined: there is no such stream. */
  protected firstOf(_operation: string): object | undefined {
    return undefined;
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  owns(socketPath: string): boolean {
    return socketPath === this.#registrationSocket || socketPath === this.#endpoint;
  }

  start(): void {
    this.#isUp = true;
    this.machine.disk.addSocket(this.#registrationSocket);
    this.#tellWatchers(true);
  }

  /** `leaves`: what a plugin that is killed does not take away. */
  stop(leaves: "its socket" | "nothing"): void {
    this.#isUp = false;
    const { disk } = this.machine;
    if (leaves === "nothing" && disk.exists(this.#registrationSocket)) disk.unlink(this.#registrationSocket);
    for (const stream of this.#streams) stream.fail(new GrpcError("Unavailable", "Connection dropped"));
    this.#tellWatchers(false);
  }

  /** The process that called is gone. */
  end(life: Life): void {
    endCallsOf(life, this.#callee, () => new GrpcError("Canceled", "the client is gone"));
    for (const watcher of this.#watchers) if (watcher.life === life) this.#watchers.delete(watcher);
    for (const stream of this.#streams) if (stream.life === life) this.#streams.delete(stream);
  }

  call(socketPath: string, operation: string, request: unknown, call: LocalCall): Promise<unknown> {
    return callThrough(this.#callee, {
      ...{ ...call, operation, usualMs: [1, 30] },
      perform: async () => {
        if (!this.#isUp || !this.owns(socketPath)) throw new GrpcError("Unavailable", "connect ECONNREFUSED");
        return this.#answer(operation, request);
      },
    });
  }

  async *stream(operation: string, { signal }: LocalCall): AsyncGenerator<unknown> {
    const { timeline, life } = this.machine;
    const queue: ({ readonly item: object } | { readonly error: Error })[] = [];
    let wake = (): void => {};
    const arrive = (what: (typeof queue)[number]): void =>
      void timeline.after(wireMs(this.#callee.dice), life, () => {
        queue.push(what);
        wake();
      });
    const stream: Stream = {
      life,
      push: (item) => arrive({ item }),
      fail: (error) => {
        this.#streams.delete(stream);
        arrive({ error });
      },
    };
    const first = this.firstOf(operation);
    if (!this.#isUp) stream.fail(new GrpcError("Unavailable", "connect ECONNREFUSED"));
    else if (first === undefined) stream.fail(new GrpcError("Unimplemented", `unknown method ${operation}`));
    else {
      this.#streams.add(stream);
      stream.push(first);
    }
    const onAbort = (): void => wake();
    signal?.addEventListener("abort", onAbort);
    try {
      for (;;) {
        signal?.throwIfAborted();
        const next = queue.shift();
        if (next === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if ("error" in next) throw next.error;
        else yield next.item;
      }
    } finally {
      signal?.removeEventListener("abort", onAbort);
      this.#streams.delete(stream);
    }
  }

  /** Tells whether somebody answers at the socket, now and whenever that changes; returns how to stop it. */
  watchPresence(onChange: (isThere: boolean) => void): () => void {
    const watcher = { life: this.machine.life, onChange };
    this.#watchers.add(watcher);
    this.#tell(watcher, this.#isUp);
    return () => void this.#watchers.delete(watcher);
  }

  #tellWatchers(isThere: boolean): void {
    for (const watcher of this.#watchers) this.#tell(watcher, isThere);
  }

  #tell(watcher: { readonly life: Life | undefined; onChange(isThere: boolean): void }, isThere: boolean): void {
    this.machine.timeline.after(wireMs(this.#callee.dice), watcher.life, () => {
      if (this.#watchers.has(watcher)) watcher.onChange(isThere);
    });
  }

  #answer(operation: string, request: unknown): object {
    const { type, name, versions } = this.#facts;
    if (operation === "GetInfo") return { type, name, endpoint: this.#endpoint, supportedVersions: [...versions] };
    if (operation === "NotifyRegistrationStatus") return {};
    return this.perform(operation, request);
  }
}
