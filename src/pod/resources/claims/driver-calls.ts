import { type ClaimAnswer, type ClaimRef, type DraDriver, PluginError } from "../../../connections/plugins/index.ts";
import { type Clock, cutText, messageOf, type TaskScope } from "../../../ground/base/index.ts";
import type { PodLedger, PodUid } from "../../../ground/model/index.ts";
import { type ClaimMethod, readAnswers } from "./claim-answers.ts";
import { claimKey } from "./claim-state.ts";

export interface DriverCallPorts {
  readonly scope: TaskScope;
  readonly clock: Clock;
  readonly ledger: PodLedger;
  readonly driver: (name: string) => DraDriver;
  readonly onCall?: (driver: string, method: string, code: string, ms: number) => void;
}

interface Batch {
  /** For whom it is. */
  readonly uid: PodUid;
  readonly driver: string;
  readonly claims: readonly ClaimRef[];
}

/** What was done of what a driver was asked for. */
type Done = ReadonlyMap<ClaimRef, ClaimAnswer>;

const longestError = 1024;

/**
 * What drivers are asked for right now. A call is never cut off but by its own deadline or the end of the agent: a
 * driver that is still at work on a claim must not be asked to undo it at the same time.
 */
export class DriverCalls {
  readonly #ports: DriverCallPorts;
  readonly #underWay = new Map<string, Promise<void>>();

  constructor(ports: DriverCallPorts) {
    this.#ports = ports;
  }

  /** Settles when the driver is not at work on the claim any more. */
  underWay(key: string, driver: string): Promise<void> | undefined {
    return this.#underWay.get(callKey(key, driver));
  }

  /** Rejects with what users are told; `onDone` is called with the claims that were done all the same. */
  run(method: ClaimMethod, batch: Batch, onDone: (done: Done) => void): Promise<void> {
    const keys = batch.claims.map((claim) => callKey(claimKey(claim), batch.driver));
    const call = this.#inScope((signal) => this.#ask(method, batch, onDone, signal)).finally(() => {
      for (const key of keys) this.#underWay.delete(key);
    });
    for (const key of keys) this.#underWay.set(key, call);
    return call;
  }

  async #ask(
    method: ClaimMethod,
    { uid, driver, claims }: Batch,
    onDone: (done: Done) => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { ledger, driver: find } = this.#ports;
    const found = find(driver);
    const names = claims.map(({ name }) => name).join(", ");
    const span = ledger.begin(uid, "claims", driver, `${method} of ${names}`);
    try {
      const call = () =>
        method === "NodePrepareResources" ? found.prepare(claims, signal) : found.unprepare(claims, signal);
      const answers = await this.#measured(method, driver, () => span.within(call));
      const { done, problem } = readAnswers(method, claims, answers);
      onDone(new Map(done.map((claim) => [claim, answers.get(claim.uid) ?? nothing])));
      if (problem !== undefined) throw new Error(problem);
      span.end();
    } catch (error) {
      span.fail(messageOf(error));
      throw error;
    }
  }

  async #measured<Result>(method: ClaimMethod, driver: string, call: () => Promise<Result>): Promise<Result> {
    const { clock, onCall } = this.#ports;
    const began = clock.monotonic();
    let code = "OK";
    try {
      return await call();
    } catch (error) {
      code = error instanceof PluginError ? error.code : "Unknown";
      throw new Error(`${method}: ${cutText(messageOf(error), longestError)}`, { cause: error });
    } finally {
      onCall?.(driver, method, code, clock.monotonic() - began);
    }
  }

  #inScope(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { scope } = this.#ports;
    return new Promise((resolve, reject) => {
      if (scope.signal.aborted) reject(scope.signal.reason);
      scope.spawn("a DRA driver is asked", (signal) => work(signal).then(resolve, reject));
    });
  }
}

const nothing: ClaimAnswer = { error: "", devices: [] };

function callKey(key: string, driver: string): string {
  return `${key} ${driver}`;
}
