import { randomBytes } from "node:crypto";
import type { Clock, Logger, TaskScope } from "../base/index.ts";
import { Authenticator } from "./auth/authenticate.ts";
import { Authorizer, type Grant } from "./auth/authorize.ts";
import { CertificateAuthority } from "./auth/certificates.ts";
import { TokenSigner } from "./auth/tokens.ts";
import { bootstrap } from "./bootstrap.ts";
import { runNamespaces } from "./controllers/namespaces.ts";
import { Api } from "./http/api.ts";
import { pathHandler } from "./http/paths.ts";
import { ApiHttpServer } from "./http/server.ts";
import { kubeconfig } from "./kubeconfig.ts";
import type { World } from "./rest/world.ts";
import { specialHandlers } from "./special/index.ts";
import { Store } from "./store/store.ts";
import { strategyOf } from "./strategies/index.ts";

export interface LocalApiOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: TaskScope;
  /** What users other than masters and nodes may do. */
  readonly grants?: readonly Grant[];
  /** How many changes watches may resume from; older ones answer 410. */
  readonly keptChanges?: number;
}

export interface LocalApi {
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
  /** Cuts every connection, as a network failure would. */
  dropConnections(): void;
  stop(): Promise<void>;
}

export async function startLocalApi(options: LocalApiOptions): Promise<LocalApi> {
  const { clock, log, listen } = options;
  const authority = await CertificateAuthority.create("nodelet-local-ca");
  const hosts = [...new Set([listen.host, "127.0.0.1", "localhost", "kubernetes", "kubernetes.default.svc"])];
  const serving = await authority.issueServer({ commonName: "kube-apiserver" }, hosts);
  const signer = new TokenSigner(TokenSigner.newKey(), "https://kubernetes.default.svc.cluster.local");
  const store = new Store({ keptChanges: options.keptChanges ?? 5000 });
  const world: World = { store, clock, strategyOf };
  bootstrap(world);
  runNamespaces(world, authority.certPem);
  const bootstrapToken = `${randomBytes(3).toString("hex")}.${randomBytes(8).toString("hex")}`;
  const bootstrapper = { name: "system:bootstrap:nodelet", groups: ["system:bootstrappers"] };
  const staticTokens = new Map([[bootstrapToken, bootstrapper]]);
  const authenticator = new Authenticator({ clock, store, signer, staticTokens });
  const authorizer = new Authorizer(store, options.grants ?? []);
  const special = specialHandlers({ authenticator, authorizer, signer });
  const api = new Api({ world, authenticator, authorizer, special, handlePath: pathHandler(signer) });
  const server = new ApiHttpServer({ ...serving, clientCaPem: authority.certPem }, api, log);
  const { port } = await server.listen(listen.host, listen.port);
  const url = `https://${listen.host.includes(":") ? `[${listen.host}]` : listen.host}:${port}`;
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
    compact: () => store.compact(),
    dropConnections: () => server.dropConnections(),
    stop: () => server.close(),
  };
}
