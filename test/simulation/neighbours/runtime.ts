import { FakeRuntime } from "../../../src/beside/hollow/index.ts";
import { CgroupDriver, CriError } from "../../../src/connections/cri/index.ts";
import { onAbort } from "../../../src/ground/base/index.ts";
import { Dice } from "../machine/dice.ts";
import type { LocalCall, Machine } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
import { type Callee, callThrough, endCallsOf, wireMs } from "./call.ts";
import type { Trace } from "./trace.ts";
import { calm, type Weather } from "./weather.ts";

/** Milliseconds that the runtime takes, at least and at most, on a good day. */
const usualMs: Readonly<Record<string, readonly [number, number]>> = {
  runPodSandbox: [40, 400],
  createContainer: [5, 60],
  startContainer: [10, 120],
  stopPodSandbox: [10, 100],
  removePodSandbox: [5, 60],
  removeContainer: [3, 40],
  execSync: [5, 30],
};
const restMs = [0.3, 3] as const;
/** Nobody gives a pull a deadline, as nobody knows how long one takes; containerd ends one that makes no progress. */
const hungMs: Readonly<Record<string, number>> = { pullImage: 5 * 60_000 };

type Methods = Readonly<Record<string, (request: unknown, options: { signal: AbortSignal }) => Promise<unknown>>>;

export interface Caller {
  readonly operation: string;
  readonly request: unknown;
  readonly life: Life | undefined;
}

/** The simulated runtime behind a connection on which anything can go wrong. */
export class RuntimeNeighbour {
  readonly fake: FakeRuntime;
  weather: Weather = { ...calm };
  /** One operation that goes wrong while the others are as the weather. */
  ailing: { readonly operation: string; readonly weather: Weather } | undefined;
  /** Told of every call that reaches the runtime, before it is carried out and when it has been. */
  onCall: (caller: Caller) => void = () => {};
  onDone: (caller: Caller) => void = () => {};
  /** Told of every call that is never answered. */
  onHung: (caller: Caller) => void = () => {};
  readonly #machine: Machine;
  readonly #dice: Dice;
  readonly #methods: Methods;
  readonly #callee: Callee;

  constructor(machine: Machine, seed: number, trace: Trace) {
    this.#machine = machine;
    this.#dice = new Dice(seed, "runtime");
    this.fake = new FakeRuntime({
      clock: machine.timeline.clock(undefined),
      events: this.#dice.chance(0.8) ? "offered" : "absent",
      cgroupDriver: CgroupDriver.CGROUPFS,
      handlers: [{ name: "" }],
    });
    this.#callee = {
      ...{ name: "the runtime", machine, trace, dice: this.#dice, underWay: new Map() },
      weather: (operation) => (this.ailing?.operation === operation ? this.ailing.weather : this.weather),
      errorOf: (code, operation, text) => new CriError(code, operation, text),
    };
    this.#methods = { ...this.fake.runtime, ...this.fake.images } as unknown as Methods;
  }

  call(operation: string, request: unknown, call: LocalCall): Promise<unknown> {
    const caller: Caller = { operation, request, life: this.#machine.life };
    return callThrough(this.#callee, {
      ...call,
      operation,
      usualMs: usualMs[operation] ?? restMs,
      onHung: () => this.onHung(caller),
      hungMs: hungMs[operation],
      perform: async (signal) => {
        this.onCall(caller);
        const answer = await this.#perform(operation, request, signal);
        this.onDone(caller);
        return answer;
      },
    });
  }

  async *stream(operation: string, { signal }: LocalCall): AsyncGenerator<unknown> {
    const { timeline, life } = this.#machine;
    if (operation !== "getContainerEvents") throw new CriError("Unimplemented", operation, "unknown service");
    const ending = new AbortController();
    this.#callee.underWay.set(ending, life);
    const queue: ({ readonly event: unknown } | { readonly error: unknown })[] = [];
    let wake = (): void => {};
    const hand = (item: (typeof queue)[number]): void =>
      void timeline.after(wireMs(this.#dice), life, () => {
        queue.push(item);
        wake();
      });
    timeline.after(wireMs(this.#dice), undefined, () => void this.#pump(ending.signal, hand));
    using _ = onAbort(signal, () => {
      ending.abort(signal?.reason);
      wake();
    });
    try {
      for (;;) {
        signal?.throwIfAborted();
        const item = queue.shift();
        if (item === undefined) {
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
        } else if ("error" in item) throw item.error;
        else yield item.event;
      }
    } finally {
      this.#callee.underWay.delete(ending);
    }
  }

  end(life: Life): void {
    endCallsOf(life, this.#callee, () => new CriError("Canceled", "", "the client is gone"));
  }

  async #pump(
    signal: AbortSignal,
    hand: (item: { readonly event: unknown } | { readonly error: unknown }) => void,
  ): Promise<void> {
    try {
      const request = {} as Parameters<FakeRuntime["runtime"]["getContainerEvents"]>[0];
      for await (const event of this.fake.runtime.getContainerEvents(request, { signal })) {
        if (this.#dice.chance(this.weather.dropped)) continue;
        hand({ event });
        if (this.#dice.chance(this.weather.doubled)) hand({ event });
      }
    } catch (error) {
      hand({ error });
    }
  }

  async #perform(operation: string, request: unknown, signal: AbortSignal): Promise<unknown> {
    const method = this.#methods[operation];
    if (method === undefined) throw new CriError("Unimplemented", operation, `unknown method ${operation}`);
    return await method(request, { signal });
  }
}
