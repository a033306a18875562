import type { Clock } from "../../../ground/base/index.ts";
import { type Kind, nodes, pods, secrets, serviceAccounts } from "../kinds/index.ts";
import { keyOf } from "../object.ts";
import type { User } from "../rest/world.ts";
import { StatusError } from "../status-error.ts";
import type { Store } from "../store/store.ts";
import type { ObjectIdentity, TokenClaims, TokenSigner } from "./token-signer.ts";

/** What a connection and a request say about who is calling. */
export interface ShownCredentials {
  /** From a client certificate that this server's authority signed. */
  readonly certificate?: CertificateIdentity;
  readonly authorization?: string;
}

export interface CertificateIdentity {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** When the certificate ends; a connection may outlive it. */
  readonly expiresAtMs: number;
}

/** What waits for its end past its time is as good as gone; a minute is what clocks may differ by, as upstream. */
const leewayMs = 60_000;

export interface AuthenticatorParts {
  readonly clock: Clock;
  readonly store: Store;
  readonly signer: TokenSigner;
  /** Users who show a fixed token. */
  readonly staticTokens: ReadonlyMap<string, User>;
}

export interface TokenUser {
  readonly user: User;
  readonly audiences: readonly string[];
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /** Who is calling. A credential that is wrong is refused, never taken for none. */
  authenticate({ certificate, authorization }: ShownCredentials): User {
    if (certificate !== undefined && certificate.commonName !== "") {
      if (this.#parts.clock.now() > certificate.expiresAtMs) throw unauthorized();
      return authenticated({ name: certificate.commonName, groups: certificate.organizations });
    }
    const [, token = ""] = /^Bearer +([^ ]+)/i.exec(authorization ?? "") ?? [];
    if (token === "") return { name: "system:anonymous", groups: ["system:unauthenticated"] };
    const found = this.readToken(token, [this.#parts.signer.issuer]);
    if (found === undefined) throw unauthorized();
    return found.user;
  }

  /** Whom a token speaks for, and for which of the audiences it is meant; undefined when for none. */
  readToken(token: string, audiences: readonly string[]): TokenUser | undefined {
    const { staticTokens, signer, clock } = this.#parts;
    const fixed = staticTokens.get(token);
    if (fixed !== undefined) return { user: authenticated(fixed), audiences };
    const claims = signer.read(token, clock.now());
    if (claims === undefined || !this.#stillStands(claims)) return undefined;
    // Both lists are as long as others like.
    const named = new Set(claims.audiences);
    const meant = audiences.filter((audience) => named.has(audience));
    return meant.length === 0 ? undefined : { user: authenticated(userOf(claims)), audiences: meant };
  }

  /** A token ends with its service account and with what it is bound to. */
  #stillStands({ namespace, serviceAccount, pod, node, secret }: TokenClaims): boolean {
    const stands = (kind: Kind, bound: ObjectIdentity | undefined): boolean => {
      if (bound === undefined) return true;
      const key = kind.namespaced ? keyOf(namespace, bound.name) : bound.name;
      const found = this.#parts.store.get(kind.storage, key)?.metadata;
      if (found?.uid !== bound.uid) return false;
      const deletedAt = Date.parse(found.deletionTimestamp ?? "");
      return Number.isNaN(deletedAt) || deletedAt >= this.#parts.clock.now() - leewayMs;
    };
    if (!stands(serviceAccounts, serviceAccount) || !stands(pods, pod) || !stands(secrets, secret)) return false;
    // A pod's token only tells of its node; the pod goes when that node does, not with a node that registers anew.
    return pod !== undefined || stands(nodes, node);
  }
}

function unauthorized(): StatusError {
  return new StatusError(401, "Unauthorized", "Unauthorized");
}

function authenticated(user: User): User {
  return { ...user, groups: [...user.groups, "system:authenticated"] };
}

function userOf({ namespace, serviceAccount, pod, node, tokenId }: TokenClaims): User {
  const prefix = "authentication.kubernetes.io";
  return {
    name: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    uid: serviceAccount.uid,
    groups: ["system:serviceaccounts", `system:serviceaccounts:${namespace}`],
    extra: {
      [`${prefix}/credential-id`]: [`JTI=${tokenId}`],
      ...(node !== undefined && { [`${prefix}/node-name`]: [node.name], [`${prefix}/node-uid`]: [node.uid] }),
      ...(pod !== undefined && { [`${prefix}/pod-name`]: [pod.name], [`${prefix}/pod-uid`]: [pod.uid] }),
    },
  };
}
