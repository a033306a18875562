import { useEffect, useState } from "preact/hooks";
import type { Figure, HealthView, HistoryView, NodeOverview, PodRow, SampleView } from "../wire.ts";
import { followLive } from "./live-client.ts";
import { isOutdated } from "./own-version.ts";
import { useTick } from "./ticking.ts";
import { parseVisible } from "./visible.ts";

/** How the page and the agent do. */
export type Link =
  | { readonly state: "connecting" }
  | { readonly state: "live" }
  | { readonly state: "lost"; readonly since: number; readonly status: number; readonly message: string };

const mostRows = 450;

/** All that the page knows without asking. */
class Store {
  link: Link = { state: "connecting" };
  /** How often the agent was there again: other connections from before may be dead without knowing it. */
  regained = 0;
  node: NodeOverview | undefined;
  health: readonly HealthView[] = [];
  readonly pods = new Map<string, PodRow>();
  /** How often each pod was told of, so that its page knows when to ask again. */
  readonly podTold = new Map<string, number>();
  sample: SampleView | undefined;
  /** Of the node, the oldest first; those of an earlier agent too. */
  history: (readonly Figure[])[] = [];
  /** Rows before this time are of an agent that is gone. */
  historyFrom = 0;
  sampledSince: number | undefined;
  /** How far the agent's clock is ahead of ours. */
  clockAheadMs = 0;
  /** When another agent than before was met. */
  restart: { readonly at: number } | undefined;
  /** The agent is of another version now than this page. */
  isOutdated = false;
  readonly #listeners = new Set<() => void>();
  #isTelling = false;
  #epoch = "";

  now(): number {
    return Date.now() + this.clockAheadMs;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Whatever came in one go is drawn in one go. */
  #tell(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    queueMicrotask(() => {
      this.#isTelling = false;
      for (const listener of this.#listeners) listener();
    });
  }

  follow(): void {
    void followLive({
      onOpen: () => {
        if (this.link.state === "lost") this.regained++;
        this.link = { state: "live" };
        this.#tell();
      },
      onLost: (status, message) => {
        const since = this.link.state === "lost" ? this.link.since : this.now();
        this.link = { state: "lost", since, status, message };
        this.#tell();
      },
      onEvent: (event, _id, data) => {
        this.#take(event, data);
        this.#tell();
      },
    });
  }

  #take(event: string, data: string): void {
    switch (event) {
      case "begin": {
        const [agent] = parseVisible<string>(data).split("x");
        if (this.#epoch !== "" && agent !== this.#epoch) this.#restarted();
        this.#epoch = agent ?? "";
        this.pods.clear();
        return;
      }
      case "set":
        this.#set(...parseVisible<[string, unknown]>(data));
        return;
      case "history":
        this.#takeHistory(parseVisible<HistoryView>(data));
        return;
      case "sample":
        this.#takeSample(parseVisible<SampleView>(data));
    }
  }

  #restarted(): void {
    this.restart = { at: this.now() };
    void isOutdated().then((is) => {
      this.isOutdated = is;
      this.#tell();
    });
  }

  #set(key: string, value: unknown): void {
    if (key === "node") {
      this.node = value as NodeOverview;
      if (this.restart !== undefined) this.restart = { at: this.node.startedAt };
    } else if (key === "health") this.health = value as readonly HealthView[];
    else {
      const uid = key.slice("pod/".length);
      if (value === null) {
        this.pods.delete(uid);
        // Back to none, which is a change too: what is gone is not remembered for ever.
        this.podTold.delete(uid);
        return;
      }
      this.pods.set(uid, value as PodRow);
      this.podTold.set(uid, (this.podTold.get(uid) ?? 0) + 1);
    }
  }

  #takeHistory({ since, node }: HistoryView): void {
    this.sampledSince = since;
    const first = node[0]?.[0] ?? since;
    // What an agent before this one has told stays, and is drawn as such.
    this.history = [...this.history.filter(([at]) => (at ?? 0) < first), ...node].slice(-mostRows);
    this.historyFrom = since;
  }

  #takeSample(sample: SampleView): void {
    this.sample = sample;
    const [at] = sample.node;
    if (at !== null && at !== undefined) this.clockAheadMs = at - Date.now();
    const last = this.history.at(-1)?.[0] ?? 0;
    // A clock that was set back begins a new chart: what was measured in a time to come is no past.
    if ((at ?? 0) < last) this.history = this.history.filter(([then]) => (then ?? 0) < (at ?? 0));
    if (at !== last) this.history = [...this.history.slice(1 - mostRows), sample.node];
  }
}

export const store = new Store();

/** Draws again whenever something new is known. */
export function useStore(): Store {
  const [, redraw] = useState(0);
  useEffect(() => store.subscribe(() => redraw((count) => count + 1)), []);
  return store;
}

/** The agent's time, once a second while the page is seen. */
export function useNow(): number {
  useTick();
  return store.now();
}
