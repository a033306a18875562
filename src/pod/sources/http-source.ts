import { createHash } from "node:crypto";
import { isAbort, isShortage, messageOf } from "../../ground/base/index.ts";
import { type IdentifiedPod, isError, maxManifestBytes, type Problem } from "../../ground/model/index.ts";
import { getManifest } from "./get-manifest.ts";
import { LastGoodManifests } from "./last-good-manifests.ts";
import type { StaticPodSettings } from "./make-static-pod.ts";
import { podsOfManifest } from "./manifest-pods.ts";
import type { SourcePorts } from "./ports.ts";
import { ProblemReports } from "./problem-reports.ts";

export interface HttpSourceSettings extends StaticPodSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, readonly string[]>>;
  readonly checkFrequencyMs: number;
  readonly lastGoodDirectory: string;
}

const timeoutMs = 10_000;
const failuresLogged = 3;

/**
 * Pods from a URL that answers with a pod or a list of pods. What cannot be fetched or is bad changes nothing: the
 * last good answer stays, also over a restart of the agent. An empty answer means that no pod is wanted any more.
 */
export class HttpSource {
  readonly #settings: HttpSourceSettings;
  readonly #ports: SourcePorts;
  readonly #lastGood: LastGoodManifests;
  readonly #reports: ProblemReports;
  #lastBody: string | undefined;
  #delivered: readonly IdentifiedPod[] | undefined;
  #lastProblems: readonly Problem[] = [];
  #failures = 0;

  constructor(settings: HttpSourceSettings, ports: SourcePorts) {
    this.#settings = settings;
    this.#ports = ports;
    this.#lastGood = new LastGoodManifests(settings.lastGoodDirectory, "http", ports.log);
    this.#reports = new ProblemReports(ports.reportProblem);
  }

  async run(signal: AbortSignal): Promise<never> {
    await this.#lastGood.keepOnly(new Set([this.#settings.url]));
    for (;;) {
      await this.#check(signal);
      await this.#ports.clock.sleep(this.#settings.checkFrequencyMs, signal);
    }
  }

  async #check(signal: AbortSignal): Promise<void> {
    const body = await this.#fetch(signal);
    if (body === undefined) return;
    const digest = createHash("sha256").update(body).digest("hex");
    if (digest === this.#lastBody) {
      // The same bad answer is bad still; the same good one is well again after failures to fetch it.
      this.#tellLastProblems();
      return;
    }
    this.#lastBody = digest;
    if (body.byteLength === 0) {
      await this.#deliver([], signal);
      await this.#lastGood.remove(this.#settings.url);
      this.#tell([error(`zero-length data received from ${this.#shownUrl()}`)]);
      return;
    }
    const { pods, problems } = await podsOfManifest(body, this.#origin(), this.#settings);
    if (problems.some(isError)) {
      await this.#keepLastGood(signal);
      this.#tell(problems);
      return;
    }
    this.#tell(problems);
    await this.#deliver(pods, signal);
    await this.#lastGood.save(this.#settings.url, body);
  }

  /** The body of a good answer; anything else is a failure that changes nothing. */
  async #fetch(signal: AbortSignal): Promise<Uint8Array | undefined> {
    const { url, headers } = this.#settings;
    let reason: string;
    try {
      const get = { url, headers, timeoutMs, maxBytes: maxManifestBytes };
      const { status, statusText, body } = await getManifest(get, this.#ports.clock, signal);
      if (status === 200) {
        this.#failures = 0;
        return body;
      }
      reason = `${this.#shownUrl()}: ${statusText}`;
    } catch (failure) {
      if (isAbort(failure, signal)) throw failure;
      reason = `Cannot read ${this.#shownUrl()}: ${messageOf(failure)}`;
    }
    this.#failures++;
    this.#logFailure(reason);
    await this.#keepLastGood(signal);
    this.#reports.tell(this.#report([error(reason)]));
    return undefined;
  }

  /** After a restart of the agent, the pods of the last good answer are still wanted, although nobody says so now. */
  async #keepLastGood(signal: AbortSignal): Promise<void> {
    if (this.#delivered !== undefined) return;
    const manifest = await this.#lastGood.load(this.#settings.url).catch((problem: unknown) => {
      // Nothing is said of any pod, and the next look is another try.
      if (isShortage(problem)) return undefined;
      throw problem;
    });
    if (manifest === undefined) return;
    const { pods, problems } = await podsOfManifest(manifest, this.#origin(), this.#settings);
    if (!problems.some(isError)) await this.#deliver(pods, signal);
  }

  async #deliver(pods: readonly IdentifiedPod[], signal: AbortSignal): Promise<void> {
    await this.#ports.deliver(pods, signal);
    this.#delivered = pods;
  }

  #tell(problems: readonly Problem[]): void {
    this.#lastProblems = problems;
    this.#tellLastProblems();
  }

  #tellLastProblems(): void {
    this.#reports.tell(this.#report(this.#lastProblems));
  }

  #report(problems: readonly Problem[]) {
    const keeping = problems.some(isError) ? (this.#delivered ?? []) : [];
    return { source: "http", file: this.#shownUrl(), problems, keeping } as const;
  }

  #logFailure(reason: string): void {
    const { log } = this.#ports;
    const message = "Failed to read pods from URL";
    if (this.#failures <= failuresLogged) log.warn(message, { reason, failures: this.#failures });
    else log.debug(4, message, { reason, failures: this.#failures });
  }

  #origin() {
    return { source: "http", url: this.#settings.url } as const;
  }

  /** The URL without a password in it. */
  #shownUrl(): string {
    const { url } = this.#settings;
    if (!url.includes("@") || !URL.canParse(url)) return url;
    const shown = new URL(url);
    if (shown.password !== "") shown.password = "xxxxx";
    return shown.href;
  }
}

function error(message: string): Problem {
  return { severity: "error", field: "", message };
}
