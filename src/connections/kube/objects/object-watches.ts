import { FairLimiter, isAbort, onAbort, type TaskScope } from "../../../ground/base/index.ts";
import { type KubeObject, pathOf, type Resource } from "../resources.ts";
import { Informer, type ListWatchPorts, type WatchClient, withoutManagedFields } from "../watch/index.ts";

export interface NamedObject {
  /** Undefined for a cluster-wide kind. */
  readonly namespace?: string | undefined;
  readonly name: string;
}

// There may be hundreds of these watches and most never see a change; bookmarks tell that they live.
const watchSeconds = [900, 1_800] as const;
/**
 * Requests of these watches under way at once, and those of one user of them: a pod may name thousands of objects, and
 * whatever else the node has to tell the API server waits in the same line, first come, first served.
 */
const turns = { limit: 16, share: 4, patienceMs: 1_000 };

/** One watch for each object in use, however many use it. The watches live in the scope. */
export class ObjectWatches {
  readonly #scope: TaskScope;
  readonly #ports: ListWatchPorts;
  readonly #turns: FairLimiter<string>;
  readonly #entries = new Map<string, Entry>();

  constructor(scope: TaskScope, ports: ListWatchPorts) {
    this.#scope = scope;
    this.#ports = ports;
    this.#turns = new FairLimiter(ports.clock, turns);
  }

  /** Watches running now. */
  get size(): number {
    return this.#entries.size;
  }

  /**
   * Tells the object as it is (undefined: there is none) as soon as that is known, then every change, until disposed of.
   * Trouble on the way is mended here. Each `who` has its turn, however many objects another one watches.
   */
  watch<Kind extends KubeObject>(
    resource: Resource<Kind>,
    object: NamedObject,
    onObject: (object: Kind | undefined) => void,
    who: string,
  ): Disposable {
    const path = pathOf(resource, object);
    const entry = this.#entries.get(path) ?? this.#start(path, resource, object, who);
    const listener = (told: KubeObject | undefined): void => onObject(told as Kind | undefined);
    entry.listeners.add(listener);
    if (entry.known) listener(entry.object);
    return {
      [Symbol.dispose]: () => {
        entry.listeners.delete(listener);
        if (entry.listeners.size > 0 || this.#entries.get(path) !== entry) return;
        this.#entries.delete(path);
        entry.stop.abort(new DOMException("nobody watches any more", "AbortError"));
      },
    };
  }

  #start(path: string, resource: Resource<KubeObject>, { namespace, name }: NamedObject, who: string): Entry {
    const entry: Entry = { listeners: new Set(), stop: new AbortController(), known: false, object: undefined };
    const fieldSelector = `metadata.name=${name}`;
    const settings = { resource, namespace, fieldSelector, keep: withoutManagedFields<KubeObject>, watchSeconds };
    const informer = new Informer(settings, { ...this.#ports, client: this.#inTurn(who) });
    const tell = (object: KubeObject | undefined): void => {
      entry.known = true;
      entry.object = object;
      for (const listener of [...entry.listeners]) listener(object);
    };
    informer.onChange((change) => tell(change.type === "deleted" ? undefined : change.object));
    this.#scope.spawn(`watch ${path}`, async (signal) => {
      const { stop } = entry;
      using _ = onAbort(signal, () => stop.abort(signal.reason));
      try {
        const tellAbsence = async (): Promise<void> => {
          await informer.synced(stop.signal);
          if (!entry.known) tell(undefined);
        };
        await Promise.all([informer.run(stop.signal), tellAbsence()]);
      } catch (error) {
        if (!isAbort(error, stop.signal)) throw error;
      }
    });
    this.#entries.set(path, entry);
    return entry;
  }

  /** A watch has its turn until it is open. */
  #inTurn(who: string): WatchClient {
    const { client } = this.#ports;
    return {
      list: (resource, ref, options, signal) =>
        this.#turns.run(who, () => client.list(resource, ref, options, signal), signal),
      openWatch: (resource, ref, options, signal) =>
        this.#turns.run(who, () => client.openWatch(resource, ref, options, signal), signal),
    };
  }
}

interface Entry {
  readonly listeners: Set<(object: KubeObject | undefined) => void>;
  readonly stop: AbortController;
  known: boolean;
  object: KubeObject | undefined;
}
