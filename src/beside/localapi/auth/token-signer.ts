import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomUUID,
  sign,
  verify,
} from "node:crypto";
import { isObject, type JsonObject } from "../json.ts";

/** Whom a service account's token speaks for, and with what it ends. */
export interface TokenClaims {
  readonly namespace: string;
  readonly serviceAccount: ObjectIdentity;
  readonly pod?: ObjectIdentity;
  readonly node?: ObjectIdentity;
  readonly secret?: ObjectIdentity;
  readonly audiences: readonly string[];
  readonly tokenId: string;
}

export interface ObjectIdentity {
  readonly name: string;
  readonly uid: string;
}

/** A clock that is set back a little must not make the tokens just issued worthless. */
const leewaySeconds = 60;

/** Signs and reads the tokens of service accounts (JWT, ES256). */
export class TokenSigner {
  readonly issuer: string;
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #keyId: string;

  constructor(keyPem: string, issuer: string) {
    this.issuer = issuer;
    this.#privateKey = createPrivateKey(keyPem);
    this.#publicKey = createPublicKey(keyPem);
    const der = this.#publicKey.export({ type: "spki", format: "der" });
    this.#keyId = createHash("sha256").update(der).digest("base64url");
  }

  static newKey(): string {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  }

  issue(claims: Omit<TokenClaims, "tokenId">, lifetime: { readonly fromMs: number; readonly toMs: number }): string {
    const { namespace, serviceAccount, pod, node, secret } = claims;
    const from = Math.floor(lifetime.fromMs / 1000);
    const header = { alg: "ES256", kid: this.#keyId };
    const payload = {
      aud: claims.audiences,
      exp: Math.floor(lifetime.toMs / 1000),
      iat: from,
      iss: this.issuer,
      jti: randomUUID(),
      "kubernetes.io": {
        namespace,
        ...(node !== undefined && { node }),
        ...(pod !== undefined && { pod }),
        ...(secret !== undefined && { secret }),
        serviceaccount: serviceAccount,
      },
      nbf: from,
      sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    };
    const text = `${encode(header)}.${encode(payload)}`;
    const signature = sign("sha256", Buffer.from(text), { key: this.#privateKey, dsaEncoding: "ieee-p1363" });
    return `${text}.${signature.toString("base64url")}`;
  }

  /** The claims of a token that this server signed and that is valid at this time. */
  read(token: string, nowMs: number): TokenClaims | undefined {
    const [header = "", body = "", signature = "", ...rest] = token.split(".");
    if (rest.length > 0 || signature === "") return undefined;
    const key = { key: this.#publicKey, dsaEncoding: "ieee-p1363" } as const;
    const isOurs = verify("sha256", Buffer.from(`${header}.${body}`), key, Buffer.from(signature, "base64url"));
    if (!isOurs) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(body, "base64url").toString());
    return isObject(claims) && claims["iss"] === this.issuer ? readClaims(claims, nowMs / 1000) : undefined;
  }

  /** The public key, for whoever checks tokens without asking. */
  keySet(): JsonObject {
    const key = { ...this.#publicKey.export({ format: "jwk" }), use: "sig", kid: this.#keyId, alg: "ES256" };
    return { keys: [key] };
  }
}

function encode(value: JsonObject): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function readClaims(claims: JsonObject, nowSeconds: number): TokenClaims | undefined {
  const { exp, nbf, aud, jti, "kubernetes.io": subject } = claims;
  if (typeof exp !== "number" || typeof nbf !== "number" || nowSeconds >= exp || nowSeconds < nbf - leewaySeconds)
    return undefined;
  if (!isObject(subject) || !Array.isArray(aud) || typeof jti !== "string") return undefined;
  const serviceAccount = identityOf(subject["serviceaccount"]);
  if (serviceAccount === undefined || typeof subject["namespace"] !== "string") return undefined;
  const pod = identityOf(subject["pod"]);
  const node = identityOf(subject["node"]);
  const secret = identityOf(subject["secret"]);
  return {
    namespace: subject["namespace"],
    serviceAccount,
    audiences: aud.map(String),
    tokenId: jti,
    ...(pod !== undefined && { pod }),
    ...(node !== undefined && { node }),
    ...(secret !== undefined && { secret }),
  };
}

function identityOf(value: unknown): ObjectIdentity | undefined {
  if (!isObject(value)) return undefined;
  const { name, uid } = value;
  return typeof name === "string" && typeof uid === "string" ? { name, uid } : undefined;
}
