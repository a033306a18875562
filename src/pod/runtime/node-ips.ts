import { isIPv6 } from "node:net";
import { type Clock, type Logger, messageOf, Pause, type TaskScope } from "../../ground/base/index.ts";
import { jsonEqual, type Node, type NodeAddress } from "../../ground/model/index.ts";

/** The network may come up after the agent, and pods on it should not have to wait for long. */
const retryMs = 1_000;
/** Addresses seldom change, and when they do (DHCP) people are used to a minute. */
const refreshMs = 60_000;

/**
 * The addresses of this node as its pods see them, primary family first; none while none is known. The Node's own count
 * once the API server has shown them; until then, and without an API server, those of this machine.
 */
export class NodeIps {
  readonly #ports: NodeIpPorts;
  readonly #pause: Pause;
  readonly #listeners = new Set<() => void>();
  #ofNode: readonly string[] = [];
  #ofMachine: readonly string[] = [];

  constructor(ports: NodeIpPorts) {
    this.#ports = ports;
    this.#pause = new Pause(ports.clock);
  }

  get current(): readonly string[] {
    return this.#ofNode.length > 0 ? this.#ofNode : this.#ofMachine;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  /** Something is known of the Node. Only what the API server has shown counts: a machine can have moved since. */
  learn(known: { readonly node: Node; readonly from: string } | undefined): void {
    if (known?.from !== "api") return;
    this.#change(() => {
      this.#ofNode = hostIpsOf(known.node.status?.addresses ?? []);
    });
  }

  /** Looks at the machine once, then for as long as the scope lives. */
  async start(scope: TaskScope): Promise<void> {
    await this.#look();
    scope.spawn("addresses of the node", async (signal) => {
      while (!signal.aborted) {
        await this.#pause.wait(this.current.length === 0 ? retryMs : refreshMs, signal);
        // While the Node has addresses, whoever keeps the Node looks at the machine's.
        if (this.#ofNode.length === 0) await this.#look();
      }
    });
  }

  async #look(): Promise<void> {
    try {
      const found = await this.#ports.find();
      this.#change(() => {
        this.#ofMachine = found;
      });
    } catch (error) {
      this.#ports.log.warn("Cannot find the node's addresses; trying again", { err: messageOf(error) });
    }
  }

  #change(change: () => void): void {
    const before = this.current;
    change();
    if (jsonEqual(before, this.current)) return;
    this.#ports.log.info("The node's addresses have changed", { addresses: this.current, before });
    for (const listener of this.#listeners) listener();
  }
}

export interface NodeIpPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** The machine's addresses as it has them now; none is an answer. */
  readonly find: () => Promise<readonly string[]>;
}

/** The first internal address, else the first external one, and one of the other family if there is any. */
function hostIpsOf(addresses: readonly NodeAddress[]): readonly string[] {
  const ofType = (wanted: string): readonly string[] =>
    addresses.filter(({ type }) => type === wanted).map(({ address }) => address);
  const all = [...ofType("InternalIP"), ...ofType("ExternalIP")];
  const [first] = all;
  if (first === undefined) return [];
  const other = all.find((ip) => isIPv6(ip) !== isIPv6(first));
  return other === undefined ? [first] : [first, other];
}
