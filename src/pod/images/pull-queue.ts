import { allEnded, type Clock, onAbort, SharedWork } from "../../ground/base/index.ts";
import { pullSlots } from "./pull-slots.ts";

export interface PullJobRequest<Result> {
  /** Requests with the same key are one pull. */
  readonly key: string;
  readonly image: string;
  readonly podUid: string;
  /** Whether the pod is content with the image once any pull has brought it. */
  readonly onceArrived: "use" | "pull";
  pull(signal: AbortSignal): Promise<Result>;
  /** Called when the pull has to wait for its turn. */
  onQueued(): void;
  /** Called when the pull runs: at once if another pod's request already does. Time is of the monotonic clock. */
  onStart(startedAt: number): void;
}

export type PullJobResult<Result> =
  | { readonly type: "pulled"; readonly result: Result; readonly durationMs: number }
  /** While this request waited for its turn, another pull brought the image. */
  | { readonly type: "arrived" };

export interface PullInProgress {
  readonly image: string;
  readonly podUids: readonly string[];
  /** How long the pull has been running; undefined while it waits for its turn. */
  readonly ageMs: number | undefined;
}

/**
 * How long others wait for a pull. Runtimes give up what makes no progress for half that time; what takes longer either
 * belongs to a registry that sends a byte now and then, or to a runtime that has forgotten it.
 */
export const longestTurnMs = 10 * 60_000;

/** Runs pulls, a limited number at once, fairly between pods, the same pull once for all who want it. */
export class PullQueue<Result> {
  readonly #clock: Clock;
  readonly #slots: ReturnType<typeof pullSlots>;
  readonly #shared = new SharedWork<string, PullJobResult<Result>>();
  readonly #jobs = new Map<string, Job<Result>>();

  constructor(limit: number, clock: Clock) {
    this.#slots = pullSlots(limit);
    this.#clock = clock;
  }

  list(): readonly PullInProgress[] {
    const now = this.#clock.monotonic();
    return [...this.#jobs.values()].map(({ image, owners, startedAt }) => ({
      image,
      podUids: [...owners],
      ageMs: startedAt === undefined ? undefined : now - startedAt,
    }));
  }

  async run(request: PullJobRequest<Result>, signal: AbortSignal): Promise<PullJobResult<Result>> {
    signal.throwIfAborted();
    const job = this.#jobs.get(request.key) ?? newJob<Result>(request);
    this.#jobs.set(request.key, job);
    const membership = new AbortController();
    const waiter: Waiter<Result> = {
      request,
      leave: (reason) => {
        this.#leave(job, waiter);
        membership.abort(reason);
      },
    };
    using _ = onAbort(signal, () => waiter.leave(signal.reason));
    job.waiters.add(waiter);
    job.owners.add(request.podUid);
    if (job.startedAt !== undefined) request.onStart(job.startedAt);
    try {
      const ended = this.#shared.join(job.key, (jobSignal) => this.#pull(job, request, jobSignal), membership.signal);
      if (job.startedAt === undefined) request.onQueued();
      return await ended;
    } catch (error) {
      if (error === arrived) return { type: "arrived" };
      throw error;
    } finally {
      this.#leave(job, waiter);
    }
  }

  async #pull(job: Job<Result>, request: PullJobRequest<Result>, signal: AbortSignal): Promise<PullJobResult<Result>> {
    const work = async (): Promise<PullJobResult<Result>> => {
      const startedAt = this.#clock.monotonic();
      job.startedAt = startedAt;
      for (const waiter of job.waiters) waiter.request.onStart(startedAt);
      const result = await request.pull(signal);
      return { type: "pulled", result, durationMs: this.#clock.monotonic() - startedAt };
    };
    try {
      const pulled = await this.#inTurn(job, work, signal);
      this.#announce(job.image);
      return pulled;
    } finally {
      this.#close(job);
    }
  }

  /** A pull goes on for as long as it takes, but its turn does not: one that never ends would be the last of the node. */
  async #inTurn<Outcome>({ owners }: Job<Result>, work: () => Promise<Outcome>, signal: AbortSignal): Promise<Outcome> {
    const turn = async (): Promise<{ readonly outcome: Promise<Outcome> }> => {
      const outcome = work();
      let giveUpTurn = (): void => {};
      const overdue = new Promise<void>((resolve) => {
        giveUpTurn = resolve;
      });
      const timer = this.#clock.after(longestTurnMs, giveUpTurn);
      await Promise.race([allEnded([outcome]), overdue]);
      timer.cancel();
      return { outcome };
    };
    return await (await this.#slots.run(owners, turn, signal)).outcome;
  }

  /** Lets those go who still wait for their turn to pull what is now here. */
  #announce(image: string): void {
    for (const job of this.#jobs.values()) {
      if (job.image !== image || job.startedAt !== undefined) continue;
      for (const waiter of job.waiters) if (waiter.request.onceArrived === "use") waiter.leave(arrived);
    }
  }

  #leave(job: Job<Result>, waiter: Waiter<Result>): void {
    job.waiters.delete(waiter);
    const { podUid } = waiter.request;
    if (![...job.waiters].some((other) => other.request.podUid === podUid)) job.owners.delete(podUid);
    if (job.waiters.size === 0) this.#close(job);
  }

  #close(job: Job<Result>): void {
    if (this.#jobs.get(job.key) === job) this.#jobs.delete(job.key);
  }
}

const arrived = Symbol("arrived");

interface Job<Result> {
  readonly key: string;
  readonly image: string;
  /** The pods that want it; a pod that joins may bring the job forward. */
  readonly owners: Set<string>;
  readonly waiters: Set<Waiter<Result>>;
  startedAt: number | undefined;
}

interface Waiter<Result> {
  readonly request: PullJobRequest<Result>;
  leave(reason: unknown): void;
}

function newJob<Result>({ key, image }: PullJobRequest<Result>): Job<Result> {
  return { key, image, owners: new Set(), waiters: new Set(), startedAt: undefined };
}
