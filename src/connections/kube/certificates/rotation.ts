import { type Clock, isAbort, LinkedSignal, type Logger, messageOf, Pause } from "../../../ground/base/index.ts";
import { jsonEqual } from "../../../ground/model/index.ts";
import { type CertificateTemplate, covers, type KeptCertificate } from "./facts.ts";
import type { CertificateFileStore } from "./file-store.ts";
import { type IssueOrder, isServerAnswer } from "./issue.ts";
import { makeKey, makeSigningRequest } from "./signing-request.ts";

export interface CertificateUse {
  /** For the log. */
  readonly name: "client" | "server";
  readonly signerName: string;
  readonly usages: readonly string[];
}

export const clientUse: CertificateUse = {
  name: "client",
  signerName: "kubernetes.io/kube-apiserver-client-kubelet",
  usages: ["digital signature", "client auth"],
};

export const serverUse: CertificateUse = {
  name: "server",
  signerName: "kubernetes.io/kubelet-serving",
  usages: ["digital signature", "server auth"],
};

export interface CertificateRotationPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Between 0 and 1. */
  readonly random: () => number;
  readonly store: CertificateFileStore;
  /** Whom the certificate is to name; undefined while that is not known. `templateChanged` tells of changes. */
  readonly template: () => CertificateTemplate | undefined;
  /** Has a request signed; `current` is what we could prove who we are with. */
  readonly issue: (order: IssueOrder, current: KeptCertificate | undefined, signal: AbortSignal) => Promise<string>;
}

/** For metrics. */
export interface CertificateFigures {
  /** Seconds until the certificate expires; Infinity when there is none. */
  ttlSeconds(): number;
  readonly renewErrors: number;
  readonly state: CertificateState;
  /** Told how old a certificate was, in seconds, when another took its place; returns how to stop that. */
  onRotated(listener: (ageSeconds: number) => void): () => void;
}

/** What is kept and what is asked for; times in milliseconds since 1970. */
export interface CertificateState {
  /** undefined: there is none. */
  readonly kept: { readonly notBefore: number; readonly notAfter: number; readonly dueAt: number } | undefined;
  /** Since when another one is asked for; undefined: it is not. */
  readonly askingSince: number | undefined;
  /** Attempts in a row that came to nothing. */
  readonly failures: number;
}

const firstRetryMs = 2_000;
const longestRetryMs = 32_000;
const retryJitter = 0.1;
const earliestShare = 0.7;
const shareSpread = 0.2;
/** The machine's time may be set: look now and then how much is left. */
const longestNapMs = 3_600_000;

/**
 * Has a certificate at all times: asks for the first, and for the next when 70 to 90 % of its life is over or it no
 * longer names all that it should. What has expired is not handed out.
 */
export class CertificateRotation implements CertificateFigures {
  readonly #use: CertificateUse;
  readonly #ports: CertificateRotationPorts;
  readonly #pause: Pause;
  readonly #listeners = new Set<() => void>();
  readonly #rotated = new Set<(ageSeconds: number) => void>();
  #kept: KeptCertificate | undefined;
  /** When the kept certificate is to be replaced. */
  #dueAt = 0;
  #lastTemplate: CertificateTemplate | undefined;
  #attempt: { readonly template: CertificateTemplate; readonly stop: LinkedSignal } | undefined;
  #failures = 0;
  #askingSince: number | undefined;
  #renewErrors = 0;
  #serverAnswers = false;

  constructor(use: CertificateUse, ports: CertificateRotationPorts) {
    this.#use = use;
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  /** Reads what earlier runs have kept. */
  async load(): Promise<void> {
    const kept = await this.#ports.store.read();
    if (kept !== undefined) this.#take(kept);
  }

  /** Starts with a certificate that is not ours to stay with: it is kept, and replaced at once. */
  async borrow(certificate: string, key: string): Promise<void> {
    this.#take(await this.#ports.store.save(certificate, key));
    this.#dueAt = 0;
  }

  get current(): KeptCertificate | undefined {
    return this.hasExpired ? undefined : this.#kept;
  }

  get hasExpired(): boolean {
    return this.#kept !== undefined && this.#ports.clock.now() >= this.#kept.facts.notAfter;
  }

  /** The API server has signed something, or refuses us: either way it is there. */
  get serverAnswers(): boolean {
    return this.#serverAnswers;
  }

  get renewErrors(): number {
    return this.#renewErrors;
  }

  get state(): CertificateState {
    const facts = this.#kept?.facts;
    const kept = facts && { notBefore: facts.notBefore, notAfter: facts.notAfter, dueAt: this.#dueAt };
    return { kept, askingSince: this.#askingSince, failures: this.#failures };
  }

  ttlSeconds(): number {
    if (this.#kept === undefined) return Number.POSITIVE_INFINITY;
    return (this.#kept.facts.notAfter - this.#ports.clock.now()) / 1_000;
  }

  onRotated(listener: (ageSeconds: number) => void): () => void {
    this.#rotated.add(listener);
    return () => this.#rotated.delete(listener);
  }

  /** Told whenever there is another certificate; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The template may differ from what it was. A request that no longer fits is given up. */
  templateChanged(): void {
    const template = this.#ports.template();
    if (jsonEqual(template, this.#lastTemplate)) return;
    this.#lastTemplate = template;
    if (template !== undefined && this.#attempt !== undefined && !covers(this.#attempt.template, template)) {
      this.#attempt.stop.abort(new DOMException("the certificate is to name something else by now", "AbortError"));
    }
    this.#pause.cutShort();
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const template = this.#ports.template();
      const waitMs = template === undefined ? longestNapMs : this.#waitMs(template);
      if (template === undefined || waitMs > 0) await this.#pause.wait(Math.min(waitMs, longestNapMs), signal);
      else await this.#replace(template, signal);
    }
  }

  #waitMs(template: CertificateTemplate): number {
    const { current } = this;
    return current === undefined || !covers(current.facts, template) ? 0 : this.#dueAt - this.#ports.clock.now();
  }

  async #replace(template: CertificateTemplate, signal: AbortSignal): Promise<void> {
    const { log, random } = this.#ports;
    const { name } = this.#use;
    using attempt = new LinkedSignal(signal);
    this.#attempt = { template, stop: attempt };
    this.#askingSince ??= this.#ports.clock.now();
    try {
      await this.#rotate(template, attempt.signal);
      this.#failures = 0;
      this.#askingSince = undefined;
    } catch (error) {
      if (signal.aborted) {
        if (isAbort(error, signal)) return;
        throw error;
      }
      if (attempt.signal.aborted) return;
      this.#failures++;
      this.#renewErrors++;
      const waitMs = Math.min(firstRetryMs * 2 ** (this.#failures - 1), longestRetryMs) * (1 + random() * retryJitter);
      log.error("Could not get a certificate; trying again", error, { certificate: name, waitMs: Math.round(waitMs) });
      await this.#pause.wait(waitMs, signal);
    } finally {
      this.#attempt = undefined;
    }
  }

  async #rotate(template: CertificateTemplate, signal: AbortSignal): Promise<void> {
    const { store, issue, clock, log } = this.#ports;
    const { signerName, usages, name } = this.#use;
    const { request, key } = await makeSigningRequest(template, await makeKey());
    signal.throwIfAborted();
    const certificate = await this.#noting(issue({ request, signerName, usages }, this.current, signal));
    const before = this.#kept;
    const kept = await store.save(certificate, key);
    this.#take(kept);
    log.info("Got a certificate", {
      certificate: name,
      expires: new Date(kept.facts.notAfter).toISOString(),
      rotation: new Date(this.#dueAt).toISOString(),
    });
    if (before !== undefined) {
      const ageSeconds = (clock.now() - before.facts.notBefore) / 1_000;
      for (const listener of this.#rotated) listener(ageSeconds);
    }
    for (const listener of this.#listeners) listener();
    if (!covers(kept.facts, template)) throw new Error("the certificate does not name all that was asked for");
    // The server's clock is behind ours, or it grants next to no time: the next try may be as vain, and is not made at once.
    if (this.#waitMs(template) <= 0) throw new Error("the certificate is due for renewal as soon as it is issued");
  }

  async #noting(issuing: Promise<string>): Promise<string> {
    try {
      const certificate = await issuing;
      this.#serverAnswers = true;
      return certificate;
    } catch (error) {
      this.#serverAnswers = isServerAnswer(error);
      this.#ports.log.debug(2, "No certificate was issued", { err: messageOf(error) });
      throw error;
    }
  }

  #take(kept: KeptCertificate): void {
    const { notBefore, notAfter } = kept.facts;
    const share = earliestShare + shareSpread * this.#ports.random();
    this.#kept = kept;
    this.#dueAt = notBefore + (notAfter - notBefore) * share;
  }
}
