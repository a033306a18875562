import { fstatSync } from "node:fs";
import { hasCode, isMissing } from "../../ground/base/index.ts";
import {
  type DirectoryEntry,
  type DirectoryReader,
  type FileName,
  type HeldDirectory,
  MountCrossedError,
} from "./held-directory.ts";

export interface TreeVisitor {
  /** Some entries of a directory; returns the names of those to be entered. */
  readonly entries: (directory: HeldDirectory, entries: readonly DirectoryEntry[]) => Promise<readonly FileName[]>;
  /** A directory is entered for the first time. */
  readonly enter?: (directory: HeldDirectory) => Promise<void>;
  /** All below the directory has been seen. */
  readonly leave?: (directory: HeldDirectory) => Promise<void>;
  /** What to do about a directory that somebody has removed or moved away since it was listed. */
  readonly whenGone: "skip" | "fail";
  /** Waited for before each step, so that long walks don't hold up short ones. */
  readonly pace?: () => Promise<void>;
}

const entriesAtOnce = 256;
const entriesWhenFull = 16;

/** What a walk may hold, whatever the tree is like. */
export interface WalkLimits {
  /**
   * So many levels hold a descriptor, or two while they are being read; those above are found again from below. As many
   * of those keep their place in a list that they have not read to its end.
   */
  readonly levels: number;
  /** Names of directories that wait to be entered, in all levels. */
  readonly names: number;
}

// A pod may nest directories far deeper than descriptors go, and have more of them in one place than memory.
const usualLimits: WalkLimits = { levels: 32, names: 20_000 };

/**
 * Sees everything below a directory, on its mount, and follows no link. Costs a bounded number of descriptors and
 * bounded memory whatever the shape of the tree, and copes with trees that change meanwhile.
 */
export async function walkTree(
  root: HeldDirectory,
  visitor: TreeVisitor,
  signal: AbortSignal,
  limits = usualLimits,
): Promise<void> {
  const walk = new TreeWalk(root, visitor, limits);
  try {
    await visitor.enter?.(root);
    do {
      signal.throwIfAborted();
      await visitor.pace?.();
    } while (await walk.step());
  } finally {
    await walk.close();
  }
}

interface Level {
  readonly name: FileName;
  /** Undefined: let go, to be found again by its identity. */
  held: HeldDirectory | undefined;
  identity: string;
  reader: DirectoryReader | undefined;
  /** Entries that were read, so that reading can go on there after the level was let go. */
  read: number;
  isRead: boolean;
  /** Directories that wait to be entered. */
  readonly waiting: FileName[];
}

class TreeWalk {
  readonly #visitor: TreeVisitor;
  readonly #limits: WalkLimits;
  /** From the root, which is held all the time and belongs to the caller, to where we are. */
  readonly #levels: Level[];
  #waiting = 0;
  /** Levels that were let go and are still being read: who begins anew reads all of a large directory each time. */
  readonly #keptReaders = new Set<Level>();

  constructor(root: HeldDirectory, visitor: TreeVisitor, limits: WalkLimits) {
    this.#visitor = visitor;
    this.#limits = limits;
    this.#levels = [newLevel(root, Buffer.alloc(0))];
  }

  /** True while there is more to see. */
  async step(): Promise<boolean> {
    const level = this.#levels.at(-1);
    if (level === undefined) return false;
    const { held } = level;
    if (held === undefined) throw new Error("the walk has lost its place");
    const isFull = this.#waiting >= this.#limits.names;
    if (!level.isRead && (level.waiting.length === 0 || !isFull)) {
      await this.#read(level, held, isFull ? entriesWhenFull : entriesAtOnce);
      return true;
    }
    const next = level.waiting.pop();
    if (next === undefined) {
      await this.#leave(level, held);
      return this.#levels.length > 0;
    }
    this.#waiting--;
    await this.#descend(held, next);
    return true;
  }

  async close(): Promise<void> {
    for (let level = this.#levels.pop(); level !== undefined; level = this.#levels.pop()) {
      await stopReading(level);
      // The root is the caller's.
      if (this.#levels.length > 0) level.held?.close();
    }
  }

  async #read(level: Level, held: HeldDirectory, atMost: number): Promise<void> {
    level.reader ??= await readFrom(held, level.read);
    const entries = await level.reader.next(atMost);
    level.read += entries.length;
    if (entries.length === 0) {
      level.isRead = true;
      await stopReading(level);
      return;
    }
    const found = await this.#visitor.entries(held, entries);
    level.waiting.push(...found);
    this.#waiting += found.length;
  }

  async #descend(directory: HeldDirectory, name: FileName): Promise<void> {
    let child: HeldDirectory;
    try {
      child = await directory.enterSameMount(name);
    } catch (error) {
      if (error instanceof MountCrossedError) return;
      if (isGone(error) && this.#visitor.whenGone === "skip") return;
      throw error;
    }
    this.#levels.push(newLevel(child, name));
    const { levels } = this.#limits;
    const far = this.#levels.at(-1 - levels);
    if (far?.held !== undefined && this.#levels.length > levels + 1) {
      far.identity = identityOf(far.held);
      if (far.reader !== undefined) await this.#keepReader(far);
      far.held.close();
      far.held = undefined;
    }
    await this.#visitor.enter?.(child);
  }

  /** As many as there are levels; those that have come far are dearest to begin anew. */
  async #keepReader(level: Level): Promise<void> {
    this.#keptReaders.add(level);
    if (this.#keptReaders.size <= this.#limits.levels) return;
    let least = level;
    for (const kept of this.#keptReaders) if (kept.read < least.read) least = kept;
    this.#keptReaders.delete(least);
    await stopReading(least);
  }

  async #leave(level: Level, held: HeldDirectory): Promise<void> {
    await this.#visitor.leave?.(held);
    if (this.#levels.length > 1) {
      const above = this.#levels.at(-2);
      if (above !== undefined && above.held === undefined) await this.#returnTo(above, level, held);
      held.close();
    }
    // The levels above it may have gone, too.
    this.#levels.splice(this.#levels.indexOf(level), 1);
  }

  /** Up to a level that was let go: the directory above, if it is still the one that it was. */
  async #returnTo(above: Level, level: Level, held: HeldDirectory): Promise<void> {
    const parent = await held.parent();
    if (identityOf(parent) === above.identity) {
      above.held = parent;
      this.#keptReaders.delete(above);
      return;
    }
    parent.close();
    if (this.#visitor.whenGone === "fail") {
      throw new Error("a directory was moved away while what it holds was being looked at");
    }
    await this.#findFromTop(level);
  }

  /** Somebody has moved a directory that we were in; what can't be found under its old names any more is left out. */
  async #findFromTop(leaf: Level): Promise<void> {
    const [root, ...lost] = this.#levels.slice(0, -1);
    if (root === undefined) return;
    const found = [root];
    for (const level of lost) {
      const above = found.at(-1)?.held;
      const place = await above?.enterSameMount(level.name).catch(() => undefined);
      if (place === undefined) break;
      if (identityOf(place) !== level.identity) {
        place.close();
        break;
      }
      const passed = found.length > 1 ? found.at(-1) : undefined;
      if (passed !== undefined) {
        passed.held?.close();
        passed.held = undefined;
      }
      level.held = place;
      found.push(level);
    }
    for (const level of lost.slice(found.length - 1)) {
      this.#waiting -= level.waiting.length;
      this.#keptReaders.delete(level);
      await stopReading(level);
    }
    this.#levels.splice(0, this.#levels.length, ...found, leaf);
  }
}

function newLevel(held: HeldDirectory, name: FileName): Level {
  return { name, held, identity: "", reader: undefined, read: 0, isRead: false, waiting: [] };
}

async function readFrom(held: HeldDirectory, position: number): Promise<DirectoryReader> {
  const reader = await held.read();
  for (let skipped = 0; skipped < position; ) {
    const entries = await reader.next(Math.min(entriesAtOnce, position - skipped));
    if (entries.length === 0) break;
    skipped += entries.length;
  }
  return reader;
}

async function stopReading(level: Level): Promise<void> {
  await level.reader?.[Symbol.asyncDispose]();
  level.reader = undefined;
}

/** ELOOP: a link has taken its place. */
function isGone(error: unknown): boolean {
  return isMissing(error) || hasCode(error, "ELOOP");
}

function identityOf({ fd }: HeldDirectory): string {
  const { dev, ino } = fstatSync(fd, { bigint: true });
  return `${dev}:${ino}`;
}
