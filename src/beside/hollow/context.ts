import { createHash } from "node:crypto";
import { CriError } from "../../connections/cri/index.ts";
import type { Clock } from "../../ground/base/index.ts";

/** What ends a call on the runtime's side. */
export interface CallContext {
  /** Aborted when the caller gave up, its deadline passed or the runtime died. */
  readonly caller: AbortSignal;
  /** Aborted only when the runtime died. */
  readonly life: AbortSignal;
}

/** The time of day in nanoseconds, set back with the clock; of two in one millisecond the later one sorts later. */
export class Stamps {
  readonly #clock: Clock;
  #last = 0n;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly next = (): bigint => {
    const now = BigInt(Math.floor(this.#clock.now())) * 1_000_000n;
    const isSameMoment = this.#last / 1_000_000n === now / 1_000_000n;
    this.#last = isSameMoment ? this.#last + 1n : now;
    return this.#last;
  };
}

/** Ids as runtimes make them, 64 hex digits, but the same in every run. */
export class Ids {
  #count = 0;

  next(): string {
    return createHash("sha256")
      .update(`hollow ${this.#count++}`)
      .digest("hex");
  }
}

/** Names in use, and by whom. */
export class Names {
  readonly #kind: "sandbox" | "container";
  readonly #reserved = new Map<string, string>();

  constructor(kind: "sandbox" | "container") {
    this.#kind = kind;
  }

  reserve(operation: string, name: string, id: string): void {
    const owner = this.#reserved.get(name);
    if (owner !== undefined) {
      const problem = `failed to reserve ${this.#kind} name "${name}": name "${name}" is reserved for "${owner}"`;
      throw new CriError("Unknown", operation, problem);
    }
    this.#reserved.set(name, id);
  }

  release(name: string): void {
    this.#reserved.delete(name);
  }

  clear(): void {
    this.#reserved.clear();
  }
}

/** Finds by id or by a prefix that fits only one; undefined when there is none. */
export function findById<Item>(
  items: ReadonlyMap<string, Item>,
  id: string,
  operation: string,
  what: string,
): Item | undefined {
  const exact = items.get(id);
  if (exact !== undefined) return exact;
  if (id === "") throw new CriError("Unknown", operation, `${what}: Prefix can't be empty`);
  const fitting = [...items.keys()].filter((key) => key.startsWith(id));
  if (fitting.length > 1) {
    throw new CriError("Unknown", operation, `${what}: Multiple IDs found with provided prefix: ${id}`);
  }
  return items.get(fitting[0] ?? "");
}
