import { mkdir, readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ifThere, SerialByKey, saveFile } from "../../../ground/base/index.ts";

/**
 * Portals of targets that somebody else had a session with before any volume did: theirs to end, not ours. On disk, for
 * the agent that lets go of the last volume is seldom the one that had the first.
 */
export class ForeignSessions {
  readonly #path: string;
  readonly #turns = new SerialByKey<"file">();

  constructor(path: string) {
    this.#path = path;
  }

  async of(target: string): Promise<readonly string[]> {
    return (await this.#read()).get(target) ?? [];
  }

  /** None: there are none, or no volume is left that they would have to be kept from. */
  async note(target: string, portals: readonly string[]): Promise<void> {
    await this.#turns.run("file", async () => {
      const noted = await this.#read();
      if (noted.has(target) === portals.length > 0 && sameTexts(noted.get(target) ?? [], portals)) return;
      if (portals.length > 0) noted.set(target, portals);
      else noted.delete(target);
      await mkdir(dirname(this.#path), { recursive: true, mode: 0o750 });
      await saveFile(this.#path, `${JSON.stringify(Object.fromEntries(noted))}\n`, 0o644);
    });
  }

  async #read(): Promise<Map<string, readonly string[]>> {
    const text = await ifThere(readFile(this.#path, "utf8"));
    try {
      const entries = Object.entries(JSON.parse(text ?? "{}") as Record<string, unknown>);
      return new Map(entries.map(([target, portals]) => [target, Array.isArray(portals) ? portals.map(String) : []]));
    } catch {
      return new Map();
    }
  }
}

function sameTexts(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((text, index) => text === b[index]);
}
