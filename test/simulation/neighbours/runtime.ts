import { FakeRuntime } from "../../../src/beside/hollow/index.ts";
import { CgroupDriver, CriError } from "../../../src/connections/cri/index.ts";
import { onAbort } from "../../../src/ground/base/index.ts";
import { Dice } from "../machine/dice.ts";
import type { Machine, RuntimeCall } from "../machine/machine.ts";
import type { Life } from "../machine/timeline.ts";
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
const slowMs = [200, 8_000] as const;

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
  /** Told of every call that reaches the runtime, before it is carried out and when it has been. */
  onCall: (caller: Caller) => void = () => {};
  onDone: (caller: Caller, answer: unknown) => void = () => {};
  /** Told of every call that is never answered. */
  onHung: (caller: Caller) => void = () => {};
  readonly #machine: Machine;
  readonly #trace: Trace;
  readonly #dice: Dice;
  readonly #methods: Methods;
  /** Calls under way, which end with the process that made them. */
  readonly #underWay = new Map<AbortController, Life | undefined>();

  constructor(machine: Machine, seed: number, trace: Trace) {
    this.#machine = machine;
    this.#trace = trace;
    this.#dice = new Dice(seed, "runtime");
    this.fake = new FakeRuntime({
      clock: machine.timeline.clock(undefined),
      events: this.#dice.chance(0.8) ? "offered" : "absent",
      cgroupDriver: CgroupDriver.CGROUPFS,
      handlers: [{ name: "" }],
    });
    this.#methods = { ...this.fake.runtime, ...this.fake.images } as unknown as Methods;
  }

  call(operation: string, request: unknown, { signal, allowedMs }: RuntimeCall): Promise<unknown> {
    const { timeline, life } = this.#machine;
    const dice = this.#dice;
    const caller: Caller = { operation, request, life };
    const ending = new AbortController();
    this.#underWay.set(ending, life);
    return new Promise((resolve, reject) => {
      let isSettled = false;
      const settle = (act: () => void): void => {
        if (isSettled) return;
        isSettled = true;
        listening[Symbol.dispose]();
        timer?.cancel();
        this.#underWay.delete(ending);
        act();
      };
      const giveUp = (reason: unknown): void =>
        settle(() => {
          timeline.after(dice.between(0.2, 2), undefined, () => ending.abort(reason));
          reject(reason);
        });
      const listening = onAbort(signal, () => giveUp(signal?.reason));
      const timer =
        allowedMs === undefined
          ? undefined
          : timeline.after(allowedMs, life, () =>
              giveUp(new CriError("DeadlineExceeded", operation, "context deadline exceeded")),
            );
      if (isSettled) return;
      const fate = this.#fate();
      const back = (act: () => void): void => void timeline.after(this.#wireMs(), life, () => settle(act));
      const fail = (error: unknown): void => back(() => reject(error));
      timeline.after(this.#wireMs() + this.#workMs(operation), undefined, () => {
        if (fate === "refused") {
          this.#trace.add("fault", `runtime refuses ${operation}`);
          fail(new CriError(dice.pick(["Unavailable", "Unknown"]), operation, "made up"));
          return;
        }
        if (fate === "hung") {
          this.#trace.add("fault", `runtime never answers ${operation}`);
          this.onHung(caller);
          return;
        }
        if (ending.signal.aborted) return;
        this.onCall(caller);
        this.#perform(operation, request, ending.signal).then(
          (answer) => {
            this.onDone(caller, answer);
            if (fate === "lost") {
              this.#trace.add("fault", `the runtime's answer to ${operation} is lost`);
              fail(new CriError("Unavailable", operation, "Connection dropped"));
            } else back(() => resolve(answer));
          },
          (error: unknown) => fail(error),
        );
      });
    });
  }

  async *stream(operation: string, { signal }: RuntimeCall): AsyncGenerator<unknown> {
    const { timeline, life } = this.#machine;
    if (operation !== "getContainerEvents") throw new CriError("Unimplemented", operation, "unknown service");
    const ending = new AbortController();
    this.#underWay.set(ending, life);
    const queue: ({ readonly event: unknown } | { readonly error: unknown })[] = [];
    let wake = (): void => {};
    const hand = (item: (typeof queue)[number]): void =>
      void timeline.after(this.#wireMs(), life, () => {
        queue.push(item);
        wake();
      });
    timeline.after(this.#wireMs(), undefined, () => void this.#pump(ending.signal, hand));
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
      this.#underWay.delete(ending);
    }
  }

  /** The process that called is gone: so are its connections. */
  end(life: Life): void {
    for (const [ending, owner] of this.#underWay) {
      if (owner !== life) continue;
      this.#underWay.delete(ending);
      this.#machine.timeline.after(this.#dice.between(0.1, 20), undefined, () =>
        ending.abort(new CriError("Canceled", "", "the client is gone")),
      );
    }
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

  #fate(): "done" | "refused" | "lost" | "hung" {
    const { refused, lost, hung } = this.weather;
    if (refused + lost + hung === 0) return "done";
    const thrown = this.#dice.number();
    if (thrown < refused) return "refused";
    if (thrown < refused + lost) return "lost";
    return thrown < refused + lost + hung ? "hung" : "done";
  }

  #wireMs(): number {
    return this.#dice.between(0.05, 0.4);
  }

  #workMs(operation: string): number {
    if (this.#dice.chance(this.weather.slow)) return this.#dice.between(...slowMs);
    return this.#dice.between(...(usualMs[operation] ?? restMs));
  }
}
