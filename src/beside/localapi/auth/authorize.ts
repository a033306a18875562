import { goQuote } from "../../../ground/base/index.ts";
import type { User } from "../rest/world.ts";
import { StatusError } from "../status-error.ts";
import type { Store } from "../store/store.ts";
import { NodeAuthorizer } from "./node-authorizer.ts";

/** What someone wants to do. */
export type Attributes =
  | {
      readonly type: "resource";
      readonly verb: string;
      readonly group: string;
      readonly namespace: string;
      readonly resource: string;
      readonly subresource: string;
      readonly name: string;
      readonly fieldSelector: string;
    }
  | { readonly type: "path"; readonly verb: string; readonly path: string };

/** Something that members of a group, or one user, may do. "*" stands for anything. */
export interface Grant {
  readonly to: string;
  readonly verbs: readonly string[];
  /** Such as `pods`, `pods/log` or `leases.coordination.k8s.io`. */
  readonly resources?: readonly string[];
  /** Such as `/version` or `/openapi/*`. */
  readonly paths?: readonly string[];
}

export interface Decision {
  readonly allowed: boolean;
  readonly reason: string;
}

const discovery = ["/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/version", "/version/"];
const health = ["/healthz", "/livez", "/readyz"];
const selfReviews = ["selfsubjectaccessreviews.authorization.k8s.io", "selfsubjectreviews.authentication.k8s.io"];
const issuerDiscovery = ["/.well-known/openid-configuration", "/openid/v1/jwks"];

const standingGrants: readonly Grant[] = [
  { to: "system:unauthenticated", verbs: ["get", "head"], paths: [...health, "/version", "/version/"] },
  { to: "system:authenticated", verbs: ["get", "head"], paths: [...health, ...discovery] },
  { to: "system:authenticated", verbs: ["create"], resources: selfReviews },
  { to: "system:serviceaccounts", verbs: ["get"], paths: issuerDiscovery },
  {
    to: "system:bootstrappers",
    verbs: ["create", "get", "list", "watch"],
    resources: ["certificatesigningrequests.certificates.k8s.io"],
  },
];

/** Who may do what: masters anything, nodes what their pods need, others what they are granted. */
export class Authorizer {
  readonly #grants: readonly Grant[];
  readonly #nodes: NodeAuthorizer;

  constructor(store: Store, grants: readonly Grant[]) {
    this.#grants = [...standingGrants, ...grants];
    this.#nodes = new NodeAuthorizer(store);
  }

  decide(user: User, attributes: Attributes): Decision {
    if (user.groups.includes("system:masters")) return { allowed: true, reason: "" };
    if (this.#grants.some((grant) => grants(grant, user, attributes))) return { allowed: true, reason: "" };
    return this.#nodes.decide(user, attributes);
  }

  /** Throws what a client reads when it may not. */
  require(user: User, attributes: Attributes): void {
    const { allowed, reason } = this.decide(user, attributes);
    if (!allowed) throw refusal(user, attributes, reason);
  }
}

function grants({ to, verbs, resources = [], paths = [] }: Grant, user: User, attributes: Attributes): boolean {
  if (to !== user.name && !user.groups.includes(to)) return false;
  if (!verbs.includes("*") && !verbs.includes(attributes.verb)) return false;
  if (attributes.type === "path") return paths.some((path) => covers(path, attributes.path));
  const wanted = resourceName(attributes);
  return resources.some((resource) => resource === "*" || resource === wanted);
}

function covers(pattern: string, path: string): boolean {
  return pattern === "*" || pattern === path || (pattern.endsWith("/*") && path.startsWith(pattern.slice(0, -1)));
}

function resourceName({ resource, group, subresource }: Attributes & { type: "resource" }): string {
  return `${resource}${group === "" ? "" : `.${group}`}${subresource === "" ? "" : `/${subresource}`}`;
}

function refusal(user: User, attributes: Attributes, reason: string): StatusError {
  const who = `User ${goQuote(user.name)} cannot ${attributes.verb}`;
  const why = reason === "" ? "" : `: ${reason}`;
  if (attributes.type === "path") {
    return new StatusError(403, "Forbidden", `forbidden: ${who} path ${goQuote(attributes.path)}${why}`, {});
  }
  const { group, resource, subresource, namespace, name } = attributes;
  const full = subresource === "" ? resource : `${resource}/${subresource}`;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace ${goQuote(namespace)}`;
  const subject = `${group === "" ? resource : `${resource}.${group}`}${name === "" ? "" : ` ${goQuote(name)}`}`;
  const message = `${subject} is forbidden: ${who} resource ${goQuote(full)} in API group ${goQuote(group)} ${where}${why}`;
  const details = { ...(name !== "" && { name }), ...(group !== "" && { group }), kind: resource };
  return new StatusError(403, "Forbidden", message, details);
}
