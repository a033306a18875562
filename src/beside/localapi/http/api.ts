import type { Authenticator, ShownCredentials } from "../auth/authenticate.ts";
import type { Attributes, Authorizer } from "../auth/authorize.ts";
import { servedGroups } from "../discovery/served.ts";
import { kindByPath } from "../kinds/index.ts";
import { proxyTarget } from "../proxy/handlers.ts";
import { containerTarget, type ProxyTarget } from "../proxy/target.ts";
import type { User, World } from "../rest/world.ts";
import { parseFieldRequirements } from "../selectors/field-selector.ts";
import { noSuchPath } from "../status-error.ts";
import { parseBody, readBody } from "./body.ts";
import { plainText, type Reply } from "./reply.ts";
import { type PathRequest, type ResourceRequest, requestInfo } from "./request-info.ts";
import { handleResource, type ResourceCall } from "./resource-handler.ts";

/** A request as it came in. */
export interface ApiRequest {
  readonly method: string;
  readonly url: URL;
  readonly contentType: string;
  readonly accept: string;
  readonly credentials: ShownCredentials;
  readonly stream: AsyncIterable<unknown>;
  /** Sends a warning along with the answer. */
  warn(message: string): void;
  /** Aborted when the client is gone, whether answered or not. */
  clientLeft(): AbortSignal;
}

export interface SeenRequest {
  readonly user: string;
  readonly method: string;
  readonly path: string;
  readonly isWatch: boolean;
}

/** Answers a resource or subresource in a way of its own. */
export type SpecialHandler = (call: SpecialCall, world: World) => Promise<Reply> | Reply;

export interface SpecialCall extends Omit<ResourceCall, "kind"> {
  readonly method: string;
  readonly rest: string;
  /** The body as it comes. */
  readonly stream: AsyncIterable<unknown>;
  /** Aborted when the client is gone, whether answered or not. */
  clientLeft(): AbortSignal;
}

export interface ApiParts {
  readonly world: World;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** By `resource.group/subresource`. */
  readonly special: ReadonlyMap<string, SpecialHandler>;
  /** Told of every request, for those who count them. */
  readonly onRequest?: ((request: SeenRequest) => void) | undefined;
  /** What is not a resource: discovery, health, version. */
  handlePath(request: PathRequest, call: ApiRequest): Reply | undefined;
}

/** From a request to its answer: who is it, may they, and who answers. Refusals are thrown as ApiError. */
export class Api {
  readonly #parts: ApiParts;

  constructor(parts: ApiParts) {
    this.#parts = parts;
  }

  async serve(request: ApiRequest): Promise<Reply> {
    const { authenticator, authorizer, world } = this.#parts;
    const user = authenticator.authenticate(request.credentials);
    const { method, url } = request;
    const isWatch = url.searchParams.has("watch");
    this.#parts.onRequest?.({ user: user.name, method, path: url.pathname, isWatch });
    const info = requestInfo(method, url);
    authorizer.require(user, attributesOf(info, url.searchParams));
    if (info.type === "path") {
      const reply = this.#parts.handlePath(info, request);
      return reply ?? plainText("404 page not found\n", 404);
    }
    const reply = await this.#serveResource(info, request, user);
    if (!["get", "list", "watch"].includes(info.verb)) await world.store.flushed();
    return reply;
  }

  /** Where a request to change protocols goes on to. */
  upgrade({ credentials, method, url }: Pick<ApiRequest, "credentials" | "method" | "url">): ProxyTarget {
    const { authenticator, authorizer, world } = this.#parts;
    const user = authenticator.authenticate(credentials);
    const info = requestInfo(method, url);
    authorizer.require(user, attributesOf(info, url.searchParams));
    if (info.type === "path" || info.group !== "") throw noSuchPath();
    const call = { ...info, query: url.searchParams };
    switch (`${info.resource}/${info.subresource}`) {
      case "pods/exec":
      case "pods/attach":
      case "pods/portforward": {
        const target = containerTarget(world, info.namespace, info.name, info.subresource, call.query);
        if (target === undefined) throw noSuchPath();
        return target;
      }
      case "pods/proxy":
        return proxyTarget(call, world, "pod");
      case "nodes/proxy":
        return proxyTarget(call, world, "node");
      default:
        throw noSuchPath();
    }
  }

  async #serveResource(info: ResourceRequest, request: ApiRequest, user: User): Promise<Reply> {
    const { special, world } = this.#parts;
    const { group, version, resource, subresource } = info;
    const call: SpecialCall = {
      ...info,
      method: request.method,
      stream: request.stream,
      query: request.url.searchParams,
      contentType: request.contentType,
      accept: request.accept,
      user,
      body: async () => await parseBody(await readBody(request.stream), request.contentType),
      warn: (message: string) => request.warn(message),
      clientLeft: () => request.clientLeft(),
    };
    const handler = special.get(specialKey(resource, group, subresource));
    if (handler !== undefined) return await handler(call, world);
    const kind = kindByPath(group, version, resource);
    if (!servedGroups.some((served) => served.group === group && served.version === version)) {
      return plainText("404 page not found\n", 404);
    }
    if (kind === undefined || info.rest !== "") throw noSuchPath();
    if (subresource !== "" && !kind.subresources.some(({ name }) => name === subresource)) throw noSuchPath();
    return await handleResource(world, { ...call, kind });
  }
}

export function specialKey(resource: string, group: string, subresource: string): string {
  return `${resource}.${group}/${subresource}`;
}

function attributesOf(info: PathRequest | ResourceRequest, query: URLSearchParams): Attributes {
  if (info.type === "path") return info;
  const { verb, group, resource, subresource, namespace } = info;
  // A selector says something about lists alone: a request that names its object shows that one, whatever it selects.
  const isOfMany = ["list", "watch", "deletecollection"].includes(verb);
  const fieldSelector = isOfMany ? (query.get("fieldSelector") ?? "") : "";
  const name = info.name || selectedName(fieldSelector);
  // A namespace is its own namespace to the authorizer, as upstream.
  const scope = resource === "namespaces" && group === "" ? name : namespace;
  return { type: "resource", verb, group, namespace: scope, resource, subresource, name, fieldSelector };
}

/** The one object that a selector leaves of a list, if there is one. */
function selectedName(fieldSelector: string): string {
  const requirements = parseFieldRequirements(fieldSelector);
  return requirements.find(({ field, operator }) => field === "metadata.name" && operator === "=")?.value ?? "";
}
