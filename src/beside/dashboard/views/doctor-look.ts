import { type Clock, ProgramError, SharedWork } from "../../../ground/base/index.ts";
import type { DashboardPorts } from "../ports.ts";
import type { DoctorView, FindingView } from "../wire.ts";

type DoctorPorts = Pick<DashboardPorts, "runDoctor"> & { readonly clock: Clock };

/** The worst first. */
const states: readonly FindingView["state"][] = ["fail", "unknown", "warn", "manual", "pass", "n/a"];
/** Who comes while one goes on, or right after, gets the same. */
const goodForMs = 5_000;

/**
 * The doctor's report. He looks from outside, as a process of his own: what he loads and reads never weighs on the agent,
 * and all viewers together have one of him.
 */
export class DoctorLook {
  readonly #ports: DoctorPorts;
  readonly #examinations = new SharedWork<string, DoctorView>();
  #last: { readonly at: number; readonly view: DoctorView } | undefined;

  constructor(ports: DoctorPorts) {
    this.#ports = ports;
  }

  /** The worst of the last report, whatever its age. */
  get worst(): { readonly title: string; readonly state: FindingView["state"] } | undefined {
    const findings = this.#last?.view.findings ?? [];
    const worst = states.flatMap((state) => findings.find((finding) => finding.state === state) ?? [])[0];
    return worst && { title: worst.title, state: worst.state };
  }

  async view(signal: AbortSignal): Promise<DoctorView> {
    const { clock } = this.#ports;
    if (this.#last !== undefined && clock.monotonic() - this.#last.at < goodForMs) return this.#last.view;
    return await this.#examinations.join("doctor", (shared) => this.#examine(shared), signal);
  }

  async #examine(signal: AbortSignal): Promise<DoctorView> {
    const { at, tookMs, subject, findings } = JSON.parse(await this.#printed(signal));
    const view = { at: Date.parse(at), tookMs, subject, findings: (findings as readonly FindingView[]).map(shown) };
    this.#last = { at: this.#ports.clock.monotonic(), view };
    return view;
  }

  /** He ends with 1 or 3 when he has found something. */
  async #printed(signal: AbortSignal): Promise<string> {
    try {
      return await this.#ports.runDoctor(signal);
    } catch (error) {
      if (error instanceof ProgramError && (error.exitCode === 1 || error.exitCode === 3)) return error.stdout;
      throw error;
    }
  }
}

function shown({ id, group, title, state, seen, from, why, fix }: FindingView): FindingView {
  return { id, group, title, state, seen, from, why, fix };
}
