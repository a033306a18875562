import type { IncomingMessage } from "node:http";
import { type Clock, explain, type Logger } from "../../../ground/base/index.ts";
import type { Gate, Refusal } from "../api/gate.ts";
import { type AuthorizationGrain, attributesOf } from "./attributes.ts";
import { bearerToken } from "./bearer.ts";
import { certificateVerdict } from "./client-certificate.ts";
import { anonymous, type Identity } from "./identity.ts";
import { TooManyQuestionsError } from "./reviews.ts";

export interface GatekeeperParts {
  /** undefined: tokens prove nothing here. */
  readonly tokens: { authenticate(token: string, from: string): Promise<Identity | undefined> } | undefined;
  /** Whether client certificates are looked at. */
  readonly certificates: boolean;
  readonly allowAnonymous: boolean;
  /** undefined: whoever is known may do all. */
  readonly access:
    | { isAllowed(identity: Identity, verb: string, subresource: string, from: string): Promise<boolean> }
    | undefined;
  readonly grain: AuthorizationGrain;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Lets in who can prove to be somebody that may do what is asked. */
export class Gatekeeper implements Gate {
  readonly #parts: GatekeeperParts;

  constructor(parts: GatekeeperParts) {
    this.#parts = parts;
  }

  async refuse(request: IncomingMessage, path: string): Promise<Refusal | undefined> {
    const identity = await this.#identify(request);
    if (identity === undefined) return { status: 401, text: "Unauthorized" };
    return await this.#forbid(identity, request, path);
  }

  /** The first proof that holds counts. A proof that does not is never taken for having shown none. */
  async #identify(request: IncomingMessage): Promise<Identity | undefined> {
    const { tokens, certificates, allowAnonymous, clock, log } = this.#parts;
    let hasFailed = false;
    const fail = (why: string): void => {
      hasFailed = true;
      log.debug(2, "Unable to authenticate the request", { why, from: request.socket.remoteAddress });
    };
    if (certificates) {
      const verdict = certificateVerdict(request, clock);
      if (verdict.type === "identity") return verdict.identity;
      if (verdict.type === "invalid") fail(verdict.why);
    }
    if (tokens !== undefined) {
      const bearer = bearerToken(request);
      if (bearer.type === "invalid") fail(bearer.why);
      else if (bearer.type === "token") {
        try {
          const identity = await tokens.authenticate(bearer.token, addressOf(request));
          if (identity !== undefined) return identity;
          fail("invalid bearer token");
        } catch (error) {
          if (error instanceof TooManyQuestionsError) fail(error.message);
          else log.error("Unable to authenticate the request", error);
          hasFailed = true;
        }
      }
    }
    return allowAnonymous && !hasFailed ? anonymous : undefined;
  }

  async #forbid(identity: Identity, request: IncomingMessage, path: string): Promise<Refusal | undefined> {
    const { access, grain, log } = this.#parts;
    if (access === undefined) return undefined;
    const { verb, subresources } = attributesOf(request.method ?? "", path, grain);
    const who = `user=${identity.name}, verb=${verb}, resource=nodes`;
    for (const subresource of subresources) {
      try {
        if (await access.isAllowed(identity, verb, subresource, addressOf(request))) return undefined;
      } catch (error) {
        const text = `Authorization error (${who}, subresource=${subresource})`;
        if (error instanceof TooManyQuestionsError) log.debug(2, text, { why: error.message });
        else log.error(text, explain(error));
        return { status: 500, text };
      }
    }
    return { status: 403, text: `Forbidden (${who}, subresource(s)=[${subresources.join(" ")}])\n` };
  }
}

function addressOf({ socket }: IncomingMessage): string {
  return socket.remoteAddress ?? "";
}
