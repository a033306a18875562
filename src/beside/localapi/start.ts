import { join } from "node:path";
import { type Clock, type Logger, silentLogger, systemClock, TaskScope } from "../../ground/base/index.ts";
import { Authenticator } from "./auth/authenticate.ts";
import { Authorizer, type Grant } from "./auth/authorize.ts";
import { TokenSigner } from "./auth/token-signer.ts";
import { announceApi, bootstrap } from "./bootstrap.ts";
import { runBinder } from "./controllers/binder.ts";
import { runEventExpiry } from "./controllers/events.ts";
import { runGarbageCollection } from "./controllers/garbage.ts";
import { runNamespaces } from "./controllers/namespaces.ts";
import { runPressureTaints } from "./controllers/pressure-taints.ts";
import { runSigner } from "./controllers/signer.ts";
import { runVolumeBinder } from "./controllers/volume-binder.ts";
import { Api, type SeenRequest } from "./http/api.ts";
import { pathHandler } from "./http/paths.ts";
import { ApiHttpServer } from "./http/server.ts";
import { keptIdentity, newIdentity } from "./identity.ts";
import { kubeconfig } from "./kubeconfig.ts";
import type { World } from "./rest/world.ts";
import { specialHandlers } from "./special/index.ts";
import { LevelDisk } from "./store/level-disk.ts";
import { Store } from "./store/store.ts";
import { strategyOf } from "./strategies/index.ts";

export interface LocalApiOptions {
  /** Where objects, keys and certificates are kept; without it all is forgotten at the end. */
  readonly dir?: string;
  /** Loopback and any free port, unless told otherwise. */
  readonly listen?: { readonly host: string; readonly port: number };
  /** The address under which nodes and pods reach the server, when it listens on all. */
  readonly advertise?: string;
  readonly clock?: Clock;
  readonly log?: Logger;
  /** Ends what the server does in the background when it ends before `stop`. */
  readonly scope?: TaskScope;
  /** What users other than masters and nodes may do. */
  readonly grants?: readonly Grant[];
  /** "off" leaves pods that are on no node to a scheduler. */
  readonly binder?: "on" | "off";
  /** "off" leaves the signing requests of kubelets to be approved by hand. */
  readonly approveKubelets?: "on" | "off";
  /** Where every kubelet is reached, whatever address its node tells: on one machine they may listen on loopback only. */
  readonly kubeletHost?: string;
  /** How many changes watches may resume from; older ones answer 410. */
  readonly keptChanges?: number;
  /** Told of every request, for those who count them. */
  readonly onRequest?: (request: SeenRequest) => void;
}

export interface LocalApi extends AsyncDisposable {
  readonly url: string;
  readonly caPem: string;
  /** Everything is allowed to who holds this. */
  adminKubeconfig(): Promise<string>;
  /** For the node of this name, with the rights of a node. */
  nodeKubeconfig(name: string): Promise<string>;
  /** For a node that has no certificate yet and asks for one. */
  bootstrapKubeconfig(): string;
  /** Forgets the changes so far: watches and continued lists that start before now answer 410. */
  compact(): void;
  /** How many watches are open; for tests that look for what was left behind. */
  readonly watcherCount: number;
  /** Aborted when the server has stopped, or has come to where it can only be started again; the reason says why. */
  readonly failed: AbortSignal;
  /** Cuts every connection, as a network failure would. */
  dropConnections(): void;
  stop(): Promise<void>;
}

export async function startLocalApi(options: LocalApiOptions = {}): Promise<LocalApi> {
  const { clock = systemClock, log = silentLogger, listen = { host: "127.0.0.1", port: 0 } } = options;
  const scope = new TaskScope(options.scope?.signal);
  const { authority, tokenKeyPem, bootstrapToken } = await (options.dir === undefined
    ? newIdentity()
    : keptIdentity(options.dir));
  const address = options.advertise ?? reachable(listen.host);
  const names = ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
  const hosts = [...new Set([address, "127.0.0.1", ...names])];
  const serving = await authority.issueServer({ commonName: "kube-apiserver" }, hosts);
  const signer = new TokenSigner(tokenKeyPem, "https://kubernetes.default.svc.cluster.local");
  const opened = options.dir === undefined ? undefined : await LevelDisk.open(join(options.dir, "objects"));
  const store = new Store({
    ...opened,
    keptChanges: options.keptChanges ?? 5000,
    onListenerError: (error) => log.error("A controller of the local API failed", error),
    onDisk(error) {
      if (error === undefined) log.info("Objects can be stored again");
      else log.error("Nothing can be stored; what is stored can be read, and writing is tried again", error);
    },
  });
  if (opened !== undefined) {
    scope.spawn("objects on disk", async (signal) => await opened.disk.keepWritable(clock, signal));
  }
  const { kubeletHost } = options;
  const world: World = { store, clock, strategyOf, ...(kubeletHost !== undefined && { kubeletHost }) };
  bootstrap(world);
  const stops = [runNamespaces(world, authority.certPem), runGarbageCollection(world)];
  // Before the binder, so that it sees what a node is short of.
  if (options.binder !== "off") stops.push(runPressureTaints(world), runBinder(world), runVolumeBinder(world));
  const approvesKubelets = options.approveKubelets !== "off";
  stops.push(runSigner({ world, authority, scope, log, approvesKubelets, ownHosts: hosts }));
  runEventExpiry(world, scope);
  const bootstrapper = { name: "system:bootstrap:nodelet", groups: ["system:bootstrappers"] };
  const staticTokens = new Map([[bootstrapToken, bootstrapper]]);
  const authenticator = new Authenticator({ clock, store, signer, staticTokens });
  const authorizer = new Authorizer(store, options.grants ?? []);
  const kubeletIdentity = await authority.issueClient({
    commonName: "kube-apiserver-kubelet-client",
    organizations: ["system:masters"],
  });
  const special = specialHandlers({ authenticator, authorizer, signer, kubeletIdentity });
  const api = new Api({
    world,
    authenticator,
    authorizer,
    special,
    onRequest: options.onRequest,
    handlePath: pathHandler(signer),
  });
  const server = new ApiHttpServer({ ...serving, clientCaPem: authority.certPem, kubeletIdentity }, api, log);
  const { port } = await server.listen(listen.host, listen.port);
  announceApi(world, address, port);
  // A disk that can't be written is told now, not to the first client.
  await store.flushed();
  const stop = async (): Promise<void> => {
    await server.close();
    for (const stopController of stops) stopController();
    await scope.stop();
    await opened?.disk.close();
  };
  const url = `https://${address.includes(":") ? `[${address}]` : address}:${port}`;
  return {
    url,
    caPem: authority.certPem,
    async adminKubeconfig() {
      const pair = await authority.issueClient({ commonName: "kubernetes-admin", organizations: ["system:masters"] });
      return kubeconfig(url, authority.certPem, { name: "kubernetes-admin", ...pair });
    },
    async nodeKubeconfig(name) {
      const commonName = `system:node:${name}`;
      const pair = await authority.issueClient({ commonName, organizations: ["system:nodes"] });
      return kubeconfig(url, authority.certPem, { name: commonName, ...pair });
    },
    bootstrapKubeconfig: () => kubeconfig(url, authority.certPem, { name: bootstrapper.name, token: bootstrapToken }),
    compact: () => store.published.compact(),
    get watcherCount() {
      return store.published.watcherCount;
    },
    failed: scope.signal,
    dropConnections: () => server.dropConnections(),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function reachable(host: string): string {
  return host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
}
