import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { chmod, mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, FieldReader } from "../../../ground/base/index.ts";

export interface SessionPorts {
  readonly clock: Clock;
  /** Only root may read it: who can is root, or was let in by root. */
  readonly path: string;
  /** Where the pages are, for whoever reads the file. */
  readonly address: string;
  /** A session ends with the boot at the latest. */
  readonly bootId: string;
}

/**
 * What a login gets, in two halves. The cookie is out of reach of scripts, but browsers show it to whatever listens on
 * another port of this machine; the key stays with pages of this very port, which send it with each request.
 */
export interface Session {
  readonly cookie: string;
  readonly key: string;
}

const sessionMs = 12 * 3_600_000;
const mostSessions = 50;

/**
 * Who may see the dashboard of this machine. Root reads a token that is good for one login; the browser gets a session
 * for it. What is kept of that is a digest, in the same file, so that pages that are open outlive a restart of the agent
 * (docs/decisions/0083-a-dashboard-that-costs-nothing.md).
 */
export class Sessions {
  readonly #ports: SessionPorts;
  /** Digests of sessions, with the time until which they are good. */
  readonly #until = new Map<string, number>();
  #token: string | undefined;
  #exchange: Promise<unknown> = Promise.resolve();

  constructor(ports: SessionPorts) {
    this.#ports = ports;
  }

  /** False while nobody can log in, because no token could be written down. */
  get hasToken(): boolean {
    return this.#token !== undefined;
  }

  /** Takes over what the agent before has left: its sessions, and its token where that leads here. */
  async restore(): Promise<void> {
    // What can't be read lets nobody in.
    const text = await readFile(this.#ports.path, "utf8").catch(() => "");
    this.#take(text);
  }

  /** Writes a token that was not used yet; the one before is good until then. */
  async renewToken(): Promise<void> {
    const { path, address, bootId } = this.#ports;
    const token = secret();
    const sessions = Array.from(this.#until, ([digest, until]) => ({ digest, until }));
    await replacePrivateFile(path, JSON.stringify({ address, token, bootId, sessions }));
    this.#token = token;
  }

  /** The session for a token; undefined: the token is another, or was used already. */
  exchange(token: string): Promise<Session | undefined> {
    const exchange = this.#exchange.then(() => this.#exchangeNow(token));
    this.#exchange = exchange.catch(() => {});
    return exchange;
  }

  isKnown(session: Session): boolean {
    const until = this.#until.get(digestOfSession(session));
    return until !== undefined && this.#isGood(until);
  }

  async #exchangeNow(token: string): Promise<Session | undefined> {
    if (this.#token === undefined) return undefined;
    const [given, wanted] = [digestOf(token), digestOf(this.#token)];
    if (!timingSafeEqual(Buffer.from(given), Buffer.from(wanted))) return undefined;
    const session = { cookie: secret(), key: secret() };
    this.#until.set(digestOfSession(session), this.#ports.clock.now() + sessionMs);
    const [oldest] = this.#until.keys();
    if (this.#until.size > mostSessions && oldest !== undefined) this.#until.delete(oldest);
    // Where the disk is full people want to see the node more than ever: the token in the file stays good then.
    await this.renewToken().catch(() => {});
    return session;
  }

  #take(text: string): void {
    const problems: string[] = [];
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      return;
    }
    const file = FieldReader.of(value, "", problems);
    const { address, bootId } = this.#ports;
    const [token, madeFor] = [file.string("token"), file.string("address")];
    const sessions = file.objects("sessions").map((each) => [each.string("digest"), each.number("until")] as const);
    if (problems.length > 0 || file.string("bootId") !== bootId) return;
    for (const [digest, until] of sessions) if (this.#isGood(until)) this.#until.set(digest, until);
    if (token !== "" && madeFor === address) this.#token = token;
  }

  /** One that ends later than any could was made before the clock was set back. */
  #isGood(until: number): boolean {
    const now = this.#ports.clock.now();
    return now < until && until <= now + sessionMs;
  }
}

/**
 * Whole or not at all for whoever reads it, and not synced to the disk: what a loss of power takes away is of a boot that
 * is over, and people wait for their page meanwhile.
 */
async function replacePrivateFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const unfinished = `${path}.tmp`;
  await writeFile(unfinished, text, { mode: 0o600 });
  // What an earlier agent left unfinished keeps its own mode.
  await chmod(unfinished, 0o600);
  await rename(unfinished, path);
}

function secret(): string {
  return randomBytes(32).toString("base64url");
}

function digestOfSession({ cookie, key }: Session): string {
  return digestOf(`${cookie} ${key}`);
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
