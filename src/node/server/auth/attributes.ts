/** What a request wants to do, as the API server's authorisation sees it: a verb on sub-resources of this node. */
export interface NodeAttributes {
  readonly verb: string;
  /** Tried in this order; one that is allowed suffices. */
  readonly subresources: readonly string[];
}

/** Whether the narrow sub-resources of the gate KubeletFineGrainedAuthz are tried before `proxy`. */
export type AuthorizationGrain = "fine" | "coarse";

const verbs: ReadonlyMap<string, string> = new Map(
  Object.entries({
    GET: "get",
    POST: "create",
    PUT: "update",
    PATCH: "patch",
    DELETE: "delete",
  }),
);

const always: readonly (readonly [path: string, subresource: string])[] = [
  ["/stats", "stats"],
  ["/metrics", "metrics"],
  ["/logs", "log"],
  ["/checkpoint", "checkpoint"],
  ["/statusz", "statusz"],
  ["/flagz", "configz"],
];

const whenFine: typeof always = [
  ["/pods", "pods"],
  ["/runningpods", "pods"],
  ["/healthz", "healthz"],
  ["/configz", "configz"],
];

/** `path` is clean and decoded. Verbs that Kubernetes does not know are empty, so that only `*` allows them. */
export function attributesOf(method: string, path: string, grain: AuthorizationGrain): NodeAttributes {
  const verb = verbs.get(method) ?? "";
  const under = ([prefix]: readonly [string, string]): boolean => path === prefix || path.startsWith(`${prefix}/`);
  const own = always.find(under);
  if (own !== undefined) return { verb, subresources: [own[1]] };
  const fine = grain === "fine" ? whenFine.find(under) : undefined;
  return { verb, subresources: fine === undefined ? ["proxy"] : [fine[1], "proxy"] };
}
